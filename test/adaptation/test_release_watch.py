"""When the machine counts as another, faster one."""

from __future__ import annotations

import math

import pytest

from mmedge_ros.adaptation.release_watch import ReleaseWatch


class Machine:
    """Is looked at ten times a second."""

    def __init__(self) -> None:
        self.watch = ReleaseWatch()
        self.now = 100.0
        self.watch.configured(self.now)

    def run(self, seconds: float, slowness: float = 1.0, load: float = math.nan) -> list[float]:
        """Return how long after the beginning it was released, each time."""
        begin, released = self.now, []
        for _ in range(round(10 * seconds)):
            self.now += 0.1
            if self.watch.update(slowness, load, self.now):
                released.append(self.now - begin)
        return released


def test_a_machine_that_does_all_in_less_time_is_released_in_a_moment() -> None:
    machine = Machine()
    assert not machine.run(5.0, 3.0)
    assert machine.run(5.0, 1.0) == pytest.approx([0.4], abs=0.11)


def test_processors_that_others_leave_are_a_release_as_well() -> None:
    machine = Machine()
    assert not machine.run(5.0, 1.0, 0.6)
    assert machine.run(5.0, 1.0, 0.1) == pytest.approx([0.4], abs=0.11)


def test_units_that_are_faster_because_less_is_asked_for_are_no_release() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    machine.watch.configured(machine.now)
    assert not machine.run(10.0, 1.8)


def test_a_machine_that_got_slower_meanwhile_is_compared_with_what_it_was_last() -> None:
    machine = Machine()
    machine.run(5.0, 1.0)
    machine.run(5.0, 2.0)
    assert len(machine.run(5.0, 1.0)) == 1


def test_a_machine_that_is_fast_for_moments_only_is_the_same() -> None:
    machine = Machine()
    machine.run(5.0, 2.0)
    for _ in range(20):
        assert not machine.run(0.2, 1.0)
        assert not machine.run(0.2, 2.0)


def test_one_that_wanders_is_believed_ever_more_rarely() -> None:
    machine, released = Machine(), 0
    for _ in range(20):
        released += len(machine.run(2.0, 2.0)) + len(machine.run(2.0, 1.0))
    assert 1 <= released <= 7


@pytest.mark.parametrize(('faster', 'released'), [(10.0, 1), (40.0, 0)])
def test_what_no_machine_can_become_is_no_release(faster: float, released: int) -> None:
    machine = Machine()
    machine.run(5.0, 2.0)
    machine.watch.configured(machine.now)
    assert len(machine.run(0.8, 2.0 / faster)) == released


def test_without_any_figure_there_is_no_release() -> None:
    assert not Machine().run(20.0, math.nan)


def test_a_change_just_after_the_release_does_not_hide_it() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    assert not machine.run(0.2, 1.0)
    machine.watch.configured(machine.now)
    assert machine.run(1.0, 1.0)


def test_a_change_just_before_the_release_does_not_hide_it_where_it_is_a_large_one() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    machine.watch.configured(machine.now)
    assert machine.run(2.0, 1.0)
    assert not machine.run(20.0, 1.0)

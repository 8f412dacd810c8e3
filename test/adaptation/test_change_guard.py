"""What the machine keeps up with, and when a change that is only worth more is made."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.adaptation.change_guard import ChangeGuard

STRIDE = 0.1
LOADS = np.array([0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0])


class Drone:
    """Keeps up with any load up to a capacity; wants the largest that is allowed."""

    def __init__(self) -> None:
        self.guard = ChangeGuard()
        self.now, self.load = 100.0, -1.0
        self.changes: list[float] = []

    def fly(self, seconds: float, capacity: float, slowness: float = 1.0) -> list[bool]:
        """Return which decisions came late."""
        late = []
        for _ in range(round(seconds / STRIDE)):
            self.now += STRIDE
            self.guard.watch(slowness, self.now)
            wanted = float(LOADS[self.guard.within(LOADS)].max())
            forced = wanted < self.load or self.load < 0.0
            if wanted == self.load:
                self.guard.content()
            elif forced or self.guard.allows(self.now):
                self.load = wanted
                self.guard.changed(wanted, forced, self.now)
                self.changes.append(self.now)
            late.append(self.load > capacity)
            self.guard.decided(late[-1], self.now)
        return late


def test_nothing_is_forbidden_while_decisions_come_in_time() -> None:
    drone = Drone()
    assert not any(drone.fly(60.0, capacity=5.0))
    assert (drone.load, drone.guard.bound, len(drone.changes)) == (2.0, math.inf, 1)


def test_late_decisions_lower_the_load_until_they_come_in_time() -> None:
    drone = Drone()
    drone.fly(10.0, capacity=0.6)
    assert drone.load == 0.5
    assert not any(drone.fly(5.0, capacity=0.6))


@pytest.mark.parametrize('capacity', [0.3, 0.6, 0.9, 1.2])
def test_what_failed_is_tried_ever_more_rarely(capacity: float) -> None:
    drone = Drone()
    first, later = drone.fly(60.0, capacity), drone.fly(180.0, capacity)
    assert sum(later[-600:]) < sum(first)
    assert sum(later[-600:]) <= 0.03 * 600


def test_the_load_rises_again_when_the_machine_is_free() -> None:
    drone = Drone()
    drone.fly(15.0, capacity=0.3)
    drone.fly(100.0, capacity=5.0)
    assert drone.load == 2.0


def test_without_a_known_load_nothing_is_bounded() -> None:
    guard = ChangeGuard()
    for load in (math.nan, 0.0, -1.0):
        guard.changed(load, True, 0.0)
        for number in range(20):
            guard.decided(True, 1.0 + number)
    assert guard.bound == math.inf


def test_the_least_load_is_always_allowed() -> None:
    guard = ChangeGuard()
    assert fails(guard, 'XXX')
    assert guard.within(np.array([3.0, 5.0])).tolist() == [True, False]


def test_decisions_right_after_a_change_are_not_judged() -> None:
    guard = ChangeGuard()
    guard.changed(1.0, True, 0.0)
    for number in range(6):
        guard.decided(True, 0.09 * number)
    assert guard.bound == math.inf
    guard.decided(True, 0.7)
    guard.decided(True, 0.8)
    assert guard.bound == pytest.approx(0.8)


def fails(guard: ChangeGuard, late: str) -> bool:
    """Whether decisions bound the load; L is one in time, X one that is late."""
    guard.changed(1.0, True, 0.0)
    for number, kind in enumerate('LLLLLLLLLLLL' + late):
        guard.decided(kind == 'X', 1.0 + STRIDE * number)
    return guard.bound < math.inf


@pytest.mark.parametrize(('late', 'failed'), [('XLLX', False), ('XX', True), ('XLXLX', True)])
def test_one_late_decision_between_others_in_time_is_left_out(late: str, failed: bool) -> None:
    assert fails(ChangeGuard(), late) is failed


@pytest.mark.parametrize(('in_time', 'bounded'), [(20, False), (0, True)])
def test_unit_times_excuse_a_load_that_once_kept_up(in_time: int, bounded: bool) -> None:
    guard = ChangeGuard()
    guard.changed(1.0, True, 0.0)
    for number in range(in_time + 20):
        guard.decided(number >= in_time, STRIDE * number, explained=True)
    assert (guard.bound < 1.0) is bounded


def waits(guard: ChangeGuard, begin: float) -> float:
    """Return how long a change that is worth more from ``begin`` on is held back, s."""
    now = begin
    while not guard.allows(now):
        now += 0.05
    return now - begin


def test_what_is_worth_more_for_a_moment_only_changes_nothing() -> None:
    guard = ChangeGuard()
    for number in range(20):
        assert not guard.allows(0.1 * number)
        guard.content()
    assert waits(guard, 5.0) == pytest.approx(0.25, abs=0.06)


def test_after_a_late_decision_no_more_is_asked_for_a_while() -> None:
    guard = ChangeGuard()
    guard.changed(1.0, True, 0.0)
    guard.decided(True, 10.0)
    assert waits(guard, 10.0) == pytest.approx(3.0, abs=0.06)


def test_after_a_forced_change_nothing_more_is_asked_for_a_second() -> None:
    guard = ChangeGuard()
    guard.changed(1.0, True, 0.0)
    assert waits(guard, 0.0) == pytest.approx(1.0, abs=0.06)


def test_a_change_that_has_to_be_undone_is_tried_ever_more_rarely() -> None:
    guard, now, waited = ChangeGuard(), 100.0, []
    for _ in range(6):
        waited.append(waits(guard, now))
        now += waited[-1]
        guard.changed(2.0, False, now)
        now += 2.0
        guard.changed(1.0, True, now)
    assert waited[1:] == pytest.approx([5.0, 10.0, 20.0, 40.0, 60.0], abs=0.1)


def test_a_trial_that_lasts_shortens_the_next_wait_again() -> None:
    guard = ChangeGuard()
    for now in (0.0, 20.0):
        guard.changed(2.0, False, now)
        guard.changed(1.0, True, now + 1.0)
    guard.changed(2.0, False, 60.0)
    guard.changed(3.0, False, 80.0)
    guard.changed(1.0, True, 81.0)
    # Half of the 20 s that it would have been.
    assert waits(guard, 81.0) == pytest.approx(10.0, abs=0.1)


class Machine:
    """Is looked at ten times a second; what failed before is forgotten when it is released."""

    def __init__(self) -> None:
        self.guard, self.now = ChangeGuard(), 100.0
        self.guard.changed(1.0, True, self.now)

    def run(self, seconds: float, slowness: float) -> list[float]:
        """Return how long after the beginning it was released, each time."""
        begin, released = self.now, []
        for _ in range(round(10 * seconds)):
            self.now += 0.1
            self.guard.bound = 0.5
            self.guard.watch(slowness, self.now)
            if self.guard.bound == math.inf:
                released.append(self.now - begin)
        return released


def test_a_machine_that_does_all_in_less_time_is_released_in_a_moment() -> None:
    machine = Machine()
    assert not machine.run(5.0, 3.0)
    assert machine.run(5.0, 1.0) == pytest.approx([0.4], abs=0.11)
    assert waits(machine.guard, machine.now) == pytest.approx(0.25, abs=0.06)


def test_on_a_released_machine_what_failed_is_tried_at_once() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    for at in (0.0, 1.0):
        machine.guard.changed(2.0, at == 1.0, machine.now + at)
    machine.now += 1.0
    machine.run(0.5, 1.0)
    assert waits(machine.guard, machine.now) == 0.0


def test_units_that_are_faster_because_less_is_asked_for_are_no_release() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    machine.guard.changed(0.5, True, machine.now)
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
    machine.guard.changed(0.5, True, machine.now)
    assert len(machine.run(0.8, 2.0 / faster)) == released


def test_without_any_figure_there_is_no_release() -> None:
    assert not Machine().run(20.0, math.nan)


def test_a_change_just_after_the_release_does_not_hide_it() -> None:
    machine = Machine()
    machine.run(5.0, 3.0)
    assert not machine.run(0.2, 1.0)
    machine.guard.changed(0.5, True, machine.now)
    assert machine.run(1.0, 1.0)

"""When a change that is only worth more is made."""

from __future__ import annotations

import pytest

from mmedge_ros.adaptation.steadiness import Steadiness


def waits(steady: Steadiness, begin: float) -> float:
    """Return how long a change that is worth more from ``begin`` on is held back, s."""
    now = begin
    while not steady.allows(now):
        now += 0.05
    return now - begin


def test_what_is_worth_more_for_a_moment_only_changes_nothing() -> None:
    steady = Steadiness()
    for number in range(20):
        assert not steady.allows(0.1 * number)
        steady.content()
    assert waits(steady, 5.0) == pytest.approx(0.25, abs=0.06)


def test_a_change_that_has_to_be_undone_is_tried_ever_more_rarely() -> None:
    steady, now, waited = Steadiness(), 100.0, []
    for _ in range(6):
        waited.append(waits(steady, now))
        now += waited[-1]
        steady.changed(False, now)
        now += 2.0
        steady.changed(True, now)
    assert waited[1:] == pytest.approx([5.0, 10.0, 20.0, 40.0, 60.0], abs=0.1)


def test_a_steady_machine_near_a_limit_changes_at_most_six_times_a_minute() -> None:
    steady, high, changes = Steadiness(), False, []
    for number in range(1200):
        now = 0.1 * number
        # The better one fails half a second after it was taken.
        if high and now - changes[-1] > 0.5:
            steady.changed(True, now)
            high, changes = False, [*changes, now]
        elif not high and steady.allows(now):
            steady.changed(False, now)
            high, changes = True, [*changes, now]
    assert sum(now >= 60.0 for now in changes) <= 6


def test_a_trial_that_lasts_shortens_the_next_wait_again() -> None:
    steady = Steadiness()
    for now in (0.0, 20.0):
        steady.changed(False, now)
        steady.changed(True, now + 1.0)
    steady.changed(False, 60.0)
    steady.changed(False, 80.0)
    steady.changed(True, 81.0)
    # Half of the 20 s that it would have been.
    assert waits(steady, 81.0) == pytest.approx(10.0, abs=0.1)


def test_on_another_machine_what_failed_is_tried_at_once() -> None:
    steady = Steadiness()
    steady.changed(False, 0.0)
    steady.changed(True, 1.0)
    steady.forget(1.1)
    assert waits(steady, 1.1) == 0.0
    steady.content()
    assert waits(steady, 4.2) == pytest.approx(0.25, abs=0.06)


def test_after_a_forced_change_nothing_more_is_asked_for_a_second() -> None:
    steady = Steadiness()
    steady.changed(True, 0.0)
    assert waits(steady, 0.0) == pytest.approx(1.0, abs=0.06)

"""What load the machine keeps up with, learned from late decisions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mmedge_ros.adaptation.load_guard import LoadGuard, LoadGuardParameters

STRIDE = 0.1


class Drone:
    """Keeps up with any load up to a capacity; asks for the largest that is allowed."""

    def __init__(self, guard: LoadGuard, loads: list[float]) -> None:
        self.guard, self.loads = guard, sorted(loads)
        self.now, self.load = 0.0, -1.0
        self.late: list[bool] = []
        self.changes = 0

    def fly(self, seconds: float, capacity: float) -> list[bool]:
        """Return which decisions came late."""
        late = []
        for _ in range(round(seconds / STRIDE)):
            self.now += STRIDE
            allowed = [load for load in self.loads if load <= self.guard.allowed(self.now)]
            load = allowed[-1] if allowed else self.loads[0]
            if load != self.load:
                self.load = load
                self.guard.configured(load, self.now)
                self.changes += 1
            late.append(self.load > capacity)
            self.guard.decided(late[-1], self.now)
        return late


LOADS = [0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0]


def test_nothing_is_forbidden_while_decisions_come_in_time() -> None:
    drone = Drone(LoadGuard(), LOADS)
    assert not any(drone.fly(60.0, capacity=5.0))
    assert drone.guard.bound == math.inf
    assert drone.load == 2.0
    assert drone.changes == 1


def test_late_decisions_lower_the_load_until_they_come_in_time() -> None:
    drone = Drone(LoadGuard(), LOADS)
    drone.fly(10.0, capacity=0.6)
    assert drone.load == 0.5
    assert not any(drone.fly(5.0, capacity=0.6))


@pytest.mark.parametrize('capacity', [0.3, 0.6, 0.9, 1.2])
def test_what_failed_is_tried_ever_more_rarely(capacity: float) -> None:
    drone = Drone(LoadGuard(), LOADS)
    first, later = drone.fly(60.0, capacity), drone.fly(120.0, capacity)
    assert sum(later[-600:]) < sum(first)
    assert sum(later[-600:]) <= 0.03 * 600


def test_the_load_rises_again_when_the_machine_is_free() -> None:
    drone = Drone(LoadGuard(), LOADS)
    drone.fly(15.0, capacity=0.3)
    drone.fly(60.0, capacity=5.0)
    assert drone.load == 2.0


def test_a_single_late_decision_is_nothing() -> None:
    guard = LoadGuard()
    guard.configured(1.0, 0.0)
    for number in range(200):
        guard.decided(number % 20 == 0, 1.0 + STRIDE * number)
    assert guard.bound == math.inf


def test_decisions_right_after_a_change_are_not_judged() -> None:
    guard = LoadGuard(LoadGuardParameters(settling=1.0))
    guard.configured(1.0, 0.0)
    for number in range(10):
        guard.decided(True, 0.09 * number)
    assert guard.bound == math.inf


def test_without_a_known_load_nothing_is_learned() -> None:
    guard = LoadGuard()
    for load in (math.nan, 0.0, -1.0):
        guard.configured(load, 0.0)
        for number in range(20):
            guard.decided(True, 1.0 + number)
    assert guard.bound == math.inf


def test_a_clock_that_jumps_does_not_raise_the_bound_at_once() -> None:
    drone = Drone(LoadGuard(), LOADS)
    drone.fly(10.0, capacity=0.3)
    bound = drone.guard.bound
    drone.now += 1e6
    drone.fly(STRIDE, capacity=0.3)
    assert drone.guard.bound <= 1.11 * bound


def test_a_late_decision_starts_the_calm_anew_and_a_change_to_more_does_not() -> None:
    guard = LoadGuard(LoadGuardParameters(calm=3.0))
    guard.configured(0.4, 0.0)
    guard.decided(True, 1.0)
    assert guard.allowed(3.9) == 0.4
    assert guard.allowed(4.1) == math.inf
    guard.configured(0.7, 5.0)
    assert guard.allowed(5.1) == math.inf


def test_a_clock_that_goes_back_does_not_prolong_the_calm() -> None:
    guard = LoadGuard(LoadGuardParameters(calm=3.0))
    guard.configured(0.4, 0.0)
    guard.decided(True, 1000.0)
    assert guard.allowed(10.0) == math.inf


def test_loads_are_climbed_by_steps_and_the_next_one_is_always_a_step() -> None:
    guard, loads = LoadGuard(LoadGuardParameters(climb=1.6)), np.array([0.1, 0.3, 0.4, 0.6, 2.0])
    assert guard.within(loads, 0.0).all()
    for number, (load, largest) in enumerate(((0.1, 0.3), (0.3, 0.4), (0.4, 0.6), (0.6, 2.0))):
        guard.configured(load, float(number))
        assert loads[guard.within(loads, number + 0.5)].max() == largest


def test_the_longer_decisions_are_in_time_the_longer_a_step_may_be() -> None:
    guard, loads = LoadGuard(LoadGuardParameters(climb=1.6)), np.array([0.1, 0.15, 0.25, 0.4, 0.6])
    guard.configured(0.1, 0.0)
    for more, largest in ((9, 0.15), (1, 0.25), (10, 0.4), (10, 0.6)):
        for _ in range(more):
            guard.decided(False, 1.0)
        assert loads[guard.within(loads, 5.0)].max() == largest


def test_hours_of_decisions_in_time_allow_every_load() -> None:
    guard, loads = LoadGuard(), np.array([0.1, 0.6, 50.0])
    guard.configured(0.1, 0.0)
    for _ in range(20_000):
        guard.decided(False, 1.0)
    assert guard.within(loads, 5.0).all()


def test_during_the_calm_no_step_is_taken_and_the_least_load_is_always_allowed() -> None:
    guard, loads = LoadGuard(), np.array([0.2, 0.3, 0.4])
    guard.configured(0.3, 0.0)
    guard.decided(True, 1.0)
    assert guard.within(loads, 1.5).tolist() == [True, True, False]
    guard.configured(0.1, 2.0)
    assert guard.within(loads, 2.1).tolist() == [True, False, False]


def test_a_load_that_is_left_for_late_decisions_before_it_was_judged_is_not_tried_soon() -> None:
    guard = LoadGuard(LoadGuardParameters(settling=0.6, patience=15.0))
    guard.configured(0.5, 0.0)
    guard.configured(1.0, 10.0)
    for instant in (10.2, 10.3):
        guard.decided(True, instant)
    assert guard.bound == math.inf
    guard.configured(0.5, 10.4)
    assert 0.5 < guard.bound < 1.0


def test_one_late_decision_or_a_change_to_more_says_nothing_of_a_load() -> None:
    guard = LoadGuard()
    guard.configured(1.0, 0.0)
    guard.decided(True, 0.1)
    guard.configured(0.5, 0.2)
    guard.decided(True, 0.3)
    guard.decided(True, 0.4)
    guard.configured(0.7, 0.5)
    assert guard.bound == math.inf


def test_a_least_load_that_recovers_does_not_forgive_the_load_that_failed() -> None:
    parameters = LoadGuardParameters(decisions=4, settling=0.0, patience=15.0)
    guard = LoadGuard(parameters)
    now = 0.0

    def decide(count: int, late: bool) -> None:
        nonlocal now
        for _ in range(count):
            now += STRIDE
            guard.decided(late, now)

    for load, late in ((1.0, True), (0.2, True), (0.2, False), (1.0, True)):
        guard.configured(load, now)
        decide(2 if late else 6, late)
    guard.configured(0.2, now)
    failed, bound = now, guard.bound
    while guard.bound == bound:
        decide(1, False)
    # Twice the patience, as if nothing had been between.
    assert now - failed == pytest.approx(30.0, abs=1.0)


def test_the_calm_after_a_late_start_ends_with_the_first_decisions_in_time() -> None:
    guard = LoadGuard(LoadGuardParameters(calm=3.0, decisions=10))
    guard.configured(0.4, 0.0)
    guard.decided(True, 0.1)
    for number in range(10):
        assert guard.allowed(0.2 + STRIDE * number) == 0.4
        guard.decided(False, 0.2 + STRIDE * number)
    assert guard.allowed(1.2) == math.inf


def test_only_the_first_calm_is_shortened_by_decisions_in_time() -> None:
    guard = LoadGuard(LoadGuardParameters(calm=3.0, decisions=10))
    guard.configured(0.4, 0.0)
    for instant in (0.1, 10.0):
        guard.decided(True, instant)
        for number in range(1, 16):
            guard.decided(False, instant + STRIDE * number)
    assert guard.allowed(12.9) == 0.4
    assert guard.allowed(13.1) == math.inf


def test_decisions_in_time_that_another_configuration_made_do_not_end_the_calm() -> None:
    guard = LoadGuard(LoadGuardParameters(calm=3.0, decisions=10))
    guard.configured(0.4, 0.0)
    guard.decided(True, 0.1)
    for number in range(6):
        guard.decided(False, 0.2 + STRIDE * number)
    guard.configured(0.3, 0.75)
    for number in range(6):
        guard.decided(False, 0.8 + STRIDE * number)
    assert guard.allowed(1.4) == 0.3


def fails(guard: LoadGuard, late: str) -> bool:
    """Whether decisions bound the load; L is one in time, X one that is late."""
    guard.configured(1.0, 0.0)
    for number, kind in enumerate('LLLLLLLLLLLL' + late):
        guard.decided(kind == 'X', 1.0 + STRIDE * number)
    return guard.bound < math.inf


@pytest.mark.parametrize(('late', 'failed'), [('XLLX', False), ('XX', True), ('XLXLX', True)])
def test_one_late_decision_between_others_in_time_is_left_out(late: str, failed: bool) -> None:
    assert fails(LoadGuard(), late) is failed


def test_a_machine_that_gets_slower_is_no_failure_of_a_load_it_kept_up_with() -> None:
    guard = LoadGuard()
    guard.configured(1.0, 0.0)
    for number in range(20):
        guard.decided(False, STRIDE * number)
    for number in range(20, 30):
        guard.decided(True, STRIDE * number, explained=True)
    guard.configured(0.5, 3.0, explained=True)
    assert guard.bound == math.inf


def test_a_load_that_never_kept_up_fails_even_where_unit_times_explain_it() -> None:
    guard = LoadGuard()
    guard.configured(1.0, 0.0)
    for number in range(20):
        guard.decided(True, STRIDE * number, explained=True)
    assert guard.bound < 1.0


def test_on_another_machine_nothing_is_bounded() -> None:
    guard = LoadGuard()
    assert fails(guard, 'XXX')
    guard.lift(2.4)
    assert guard.allowed(2.5) == math.inf
    # A machine of its own is asked for all at once, later by steps again.
    loads = np.array([1.0, 1.5, 9.0])
    assert guard.within(loads, 2.5).all()
    assert guard.within(loads, 5.5).tolist() == [True, True, False]

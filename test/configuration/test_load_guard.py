"""What load the machine keeps up with, learned from late decisions."""

from __future__ import annotations

import math

import pytest

from mmedge_ros.configuration.load_guard import LoadGuard, LoadGuardParameters

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
            allowed = [load for load in self.loads if load <= self.guard.bound]
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


def test_a_machine_that_became_much_faster_is_tried_at_once() -> None:
    drone = Drone(LoadGuard(), LOADS)
    drone.guard.machine(2.0)
    drone.fly(10.0, capacity=0.3)
    drone.guard.machine(1.8)
    assert drone.guard.bound < 0.5
    drone.guard.machine(1.0)
    assert drone.guard.bound == math.inf


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


def test_a_guard_that_is_switched_off_forbids_nothing() -> None:
    drone = Drone(LoadGuard(LoadGuardParameters(enabled=False)), LOADS)
    assert all(drone.fly(10.0, capacity=0.1))
    assert drone.guard.bound == math.inf


def test_a_clock_that_jumps_does_not_raise_the_bound_at_once() -> None:
    drone = Drone(LoadGuard(), LOADS)
    drone.fly(10.0, capacity=0.3)
    bound = drone.guard.bound
    drone.now += 1e6
    drone.fly(STRIDE, capacity=0.3)
    assert drone.guard.bound <= 1.11 * bound

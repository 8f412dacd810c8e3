from __future__ import annotations

import pytest

from mmedge_ros.monitoring.cpu_limit.cpu_budget import CpuBudget


class Machine:
    """Processes on some processors, stopped and continued by a budget, in simulated time."""

    def __init__(self, cpus: int, busy: float, tick: float = 0.0, late: float = 0.0) -> None:
        self.budget = CpuBudget(cpus)
        self.now = 0.0
        self.used = 0.0
        self.stops = 0
        self._busy, self._tick, self._late = busy, tick, late
        self._running, self._booked, self._seen = True, 0.0, 0.0

    def run(self, seconds: float, share: float) -> float:
        """Return the processors used on average."""
        end, before = self.now + seconds, self.used
        while self.now < end:
            # A running process is booked only at ticks, a stopped one exactly.
            if not self._running or self._tick == 0.0 or self.now - self._booked >= self._tick:
                self._seen, self._booked = self.used, self.now
            verdict = self.budget.update(self.now, self._seen, share)
            self.stops += self._running and not verdict.run
            self._running = verdict.run
            step = verdict.wait + self._late
            self.now += step
            self.used += self._busy * step if self._running else 0.0
        return (self.used - before) / seconds


@pytest.mark.parametrize('share', [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize(('cpus', 'tick', 'late'), [(2, 0, 0), (2, 0.01, 0), (8, 0.004, 0.0005)])
def test_who_wants_everything_gets_the_share(
    share: float, cpus: int, tick: float, late: float
) -> None:
    machine = Machine(cpus, cpus, tick, late)
    machine.run(0.5, share)
    assert machine.run(5.0, share) / cpus == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize('share', [0.3, 0.5, 0.7])
def test_under_full_load_the_period_is_short(share: float) -> None:
    machine = Machine(2, 2.0, tick=0.01)
    machine.run(0.5, share)
    before = machine.stops
    machine.run(2.0, share)
    assert machine.stops - before > 2.0 / 0.0125


def test_who_uses_less_than_the_share_is_never_stopped() -> None:
    machine = Machine(4, 1.0, tick=0.01)
    assert machine.run(3.0, 0.3) == pytest.approx(1.0, rel=0.01)
    assert machine.stops == 0


def test_one_busy_process_may_fill_the_share_of_a_larger_machine() -> None:
    machine = Machine(4, 1.0, tick=0.004)
    machine.run(0.5, 0.2)
    assert machine.run(4.0, 0.2) == pytest.approx(0.8, abs=0.03)


def test_a_new_share_holds_at_once() -> None:
    machine = Machine(2, 2.0)
    machine.run(1.0, 0.9)
    assert machine.run(0.5, 0.3) / 2 == pytest.approx(0.3, abs=0.03)
    assert machine.run(0.5, 1.0) / 2 == pytest.approx(1.0, abs=0.03)


def test_a_pause_of_the_limiter_is_paid_back_but_not_for_ever() -> None:
    machine = Machine(2, 2.0)
    machine.run(1.0, 0.5)
    machine.now += 30.0
    machine.used += 60.0
    machine.run(1.0, 0.5)
    assert machine.run(1.0, 0.5) / 2 == pytest.approx(0.5, abs=0.02)


def test_a_clock_that_stands_still_or_goes_back_changes_nothing() -> None:
    budget = CpuBudget(2)
    for now in (5.0, 5.0, 4.0, 5.0):
        assert budget.update(now, 0.0, 0.5).wait > 0.0

"""How often the graph decides, as a person is told."""

from __future__ import annotations

import pytest

from mmedge_ros.ros.sessions.status_listener import DecisionRate


class Clock:
    """Seconds, set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def decide(rate: DecisionRate, clock: Clock, times: int, period: float) -> None:
    for _ in range(times):
        rate.add()
        clock.now += period


@pytest.mark.parametrize('seconds', [2, 60])
def test_the_rate_is_that_of_the_last_seconds_and_sinks_when_decisions_stop(seconds: int) -> None:
    clock = Clock()
    rate = DecisionRate(clock)
    decide(rate, clock, 10 * seconds, 0.1)
    assert rate.value() == pytest.approx(10.0, abs=0.6)
    decide(rate, clock, 100, 0.2)
    assert rate.value() == pytest.approx(5.0, abs=0.3)
    decide(rate, clock, 100, 0.1)
    clock.now += 2.5
    assert rate.value() == pytest.approx(5.0, abs=0.5)
    clock.now += 60.0
    assert rate.value() == 0.0

"""Which windows are audited, and what follows from what they show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.windows.audits import AuditParameters, AuditPlan, DriftMonitor

STRIDE, WINDOW = NS_PER_S // 10, NS_PER_S // 2
ENDS = range(STRIDE, 10_000 * STRIDE, STRIDE)


def plan(share: float, seed: int = 0) -> AuditPlan:
    return AuditPlan(AuditParameters(share, seed), STRIDE, WINDOW)


def test_the_wanted_share_is_audited_and_no_pattern_is_repeated() -> None:
    drawn = [plan(0.05).is_audited(end) for end in ENDS]
    assert np.mean(drawn) == pytest.approx(0.05, abs=0.01)
    assert drawn == [plan(0.05).is_audited(end) for end in ENDS]
    assert drawn != [plan(0.05, 1).is_audited(end) for end in ENDS]
    assert not any(plan(0.0).is_audited(end) for end in ENDS)
    assert all(plan(1.0).is_audited(end) for end in ENDS)


@given(st.integers(0, 200), st.integers(0, WINDOW), st.integers(0, 2**31 - 1))
def test_no_unit_of_an_audited_window_rests(number: int, ahead: int, seed: int) -> None:
    subject = plan(0.1, seed)
    now = number * 7_000_001
    until = now + ahead
    free = subject.free_until(now, until)
    assert now <= free <= until
    for end in range(0, until + WINDOW + STRIDE, STRIDE):
        if end > now and subject.is_audited(end):
            # Its units are received in (end - WINDOW, end]; a rest is [now, free).
            assert free <= max(end - WINDOW, now)


def test_the_usual_loss_raises_no_alarm() -> None:
    monitor = DriftMonitor(6.0, 0.05)
    losses = [0.5 * (number % 10 == 0) for number in range(500)]
    assert not any(monitor.observe(loss) for loss in losses)
    assert monitor.loss == pytest.approx(0.05)
    assert monitor.audits == 500


def test_many_small_losses_are_as_bad_as_few_large_ones() -> None:
    small, large = (DriftMonitor(6.0, 0.05) for _ in range(2))
    while not small.is_off:
        small.observe(0.25)
        large.observe(float(small.audits % 4 == 0))
        assert small.audits < 60
    assert small.loss == 0.25


@pytest.mark.parametrize('usual', [0.0, 0.02, 0.3, 1.0])
def test_drift_switches_off_once_and_for_good(usual: float) -> None:
    monitor = DriftMonitor(6.0, usual)
    alarms = [monitor.observe(1.0) for _ in range(200)]
    assert sum(alarms) == 1
    for _ in range(1000):
        monitor.observe(0.0)
    assert monitor.is_off

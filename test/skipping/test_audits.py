"""Which windows are audited, and what follows from what they show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.skipping.audits import AuditParameters, AuditPlan, DriftMonitor

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
    monitor = DriftMonitor(AuditParameters(), 0.05)
    losses = [0.5 * (number % 10 == 0) for number in range(500)]
    assert not any(monitor.observe(loss) for loss in losses)
    assert monitor.alarms == 0
    assert monitor.tightened(0.9) == pytest.approx(0.9)
    assert monitor.loss == pytest.approx(0.05)


def test_many_small_losses_are_as_bad_as_few_large_ones() -> None:
    small, large = (DriftMonitor(AuditParameters(), 0.05) for _ in range(2))
    audits = 0
    while not small.alarms:
        audits += 1
        small.observe(0.25)
        large.observe(float(audits % 4 == 0))
        assert audits < 60
    assert large.alarms <= 1
    assert small.loss == 0.25


def test_drift_tightens_the_threshold_step_by_step_and_then_switches_off() -> None:
    monitor = DriftMonitor(AuditParameters(), 0.05)
    thresholds = [monitor.tightened(0.9)]
    while not monitor.is_off:
        if monitor.observe(1.0):
            thresholds.append(monitor.tightened(0.9))
        assert monitor.audits < 30
    assert thresholds == sorted(thresholds)
    assert len(set(thresholds)) == len(thresholds) == 4
    assert thresholds[-1] == math.inf
    # It stays off, whatever audits say then: a person has to look at it.
    for _ in range(1000):
        monitor.observe(0.0)
    assert monitor.is_off


def test_after_a_false_alarm_the_threshold_comes_back() -> None:
    monitor = DriftMonitor(AuditParameters(relief=20), 0.05)
    while not monitor.observe(1.0):
        pass
    tight = monitor.tightened(0.9)
    for _ in range(20):
        monitor.observe(0.0)
    assert monitor.tightened(0.9) == pytest.approx(0.9)
    assert tight > 0.95

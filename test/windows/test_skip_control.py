"""When the gate is evaluated, and what may rest how long."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hand_made_units import MS, at, features, unit

from mmedge_ros.core.data_types import CAMERA, RADAR, SkipDecision, Unit
from mmedge_ros.windows.audits import AuditParameters
from mmedge_ros.windows.gate_features import OpenWindow
from mmedge_ros.windows.skip_control import SkipControl, SkipParameters, Verdict

NEVER = AuditParameters(share=0.0)
PERIODS = {CAMERA: round(33.3 * MS), RADAR: 50 * MS}


class Bench:
    """A camera at 30 Hz whose units take 12 ms, and a radar at 20 Hz whose units take 1 ms."""

    def __init__(self, threshold: float = 0.5, audits: AuditParameters = NEVER, **more: Any):
        parameters = SkipParameters(audits=audits)
        self.control = SkipControl(
            replace(parameters, **more.pop('parameters', {})), threshold, **more
        )
        self.rested: SkipDecision | None = None

    def play(self, begin: float, end: float, **content: Any) -> None:
        """Units received in (begin, end], but for what rests."""
        events = []
        for modality, period, taken in ((CAMERA, 33.3, 12.0), (RADAR, 50.0, 1.0)):
            for number in range(int(begin / period), int(end / period) + 1):
                when = 3.0 + number * period
                if begin < when <= end:
                    events.append((when, modality, number, taken))
        for when, modality, number, taken in sorted(events):
            of = unit(when, modality, number)
            if not self.rests(of):
                self.control.unit_arrived(features(of, **content), at(when + taken))

    def rests(self, of: Unit) -> bool:
        lease = self.rested
        if lease is None or of.modality != lease.modality:
            return False
        return lease.issued_ns <= of.stamp_ns < lease.skip_until_ns

    def window(self, now: float, end: float) -> OpenWindow | None:
        return self.control.open_window(at(end), at(now))

    def yes(self, now: float, end: float) -> SkipDecision | None:
        window = self.window(now, end)
        assert window is not None
        ruling = self.control.rule(window, 1.0)
        assert ruling.verdict is Verdict.DECIDE
        self.control.window_decided(at(end))
        self.rested = ruling.skip or self.rested
        return ruling.skip


def test_it_is_evaluated_once_half_of_the_slow_units_were_sensed() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 210.0)
    assert bench.window(215.0, 500.0) is None  # seven of fifteen
    bench.play(210.0, 240.0)
    window = bench.window(255.0, 500.0)
    assert window is not None
    assert (window.slow, window.sensed, window.expected) == (CAMERA, 8, 15)


def test_it_is_evaluated_once_after_each_unit_of_either_modality() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 260.0)
    assert bench.window(262.0, 500.0) is not None
    assert bench.window(263.0, 500.0) is None
    bench.control.unit_arrived(features(unit(263.0, RADAR, 900)), at(264.0))
    assert bench.window(264.0, 500.0) is not None
    # A repetition is no news.
    bench.control.unit_arrived(features(unit(263.0, RADAR, 900)), at(265.0))
    assert bench.window(265.0, 500.0) is None


def test_only_windows_that_end_later_and_soon_are_evaluated() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 500.0)
    assert bench.window(500.0, 500.0) is None
    bench = Bench(periods_ns=PERIODS, parameters={'sensed_share': 0.0, 'longest_lease': 0.2})
    bench.play(0.0, 260.0)
    assert bench.window(262.0, 500.0) is None
    bench.play(260.0, 310.0)
    assert bench.window(312.0, 500.0) is not None
    assert Bench().control.open_window(None, at(0)) is None


def test_a_yes_is_a_lease_until_the_windows_end() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 240.0)
    lease = bench.yes(252.0, 500.0)
    assert lease is not None
    assert (lease.modality, lease.issued_ns, lease.window_end_ns) == (CAMERA, at(252), at(500))
    # Units measured 5 ms before they are received, up to 500 ms.
    assert lease.skip_until_ns == at(495)
    assert lease.fraction == pytest.approx(8 / 15)


def test_a_confidence_below_the_threshold_or_none_at_all_waits() -> None:
    for confidence in (0.89, math.nan, -math.inf):
        bench = Bench(0.9, periods_ns=PERIODS)
        bench.play(0.0, 260.0)
        window = bench.window(262.0, 500.0)
        assert window is not None
        assert bench.control.rule(window, confidence).verdict is Verdict.WAIT


def test_either_modality_may_be_the_slow_one() -> None:
    control = SkipControl(SkipParameters(audits=NEVER), 0.5, periods_ns=PERIODS)
    for number in range(8):
        for modality, taken in ((CAMERA, 1.0), (RADAR, 20.0)):
            of = unit(3.0 + 50.0 * number, modality, number)
            control.unit_arrived(features(of), at(3.0 + 50.0 * number + taken))
    window = control.open_window(at(500), at(380))
    assert window is not None
    assert window.slow == RADAR
    # A gate that was trained to let the camera rest lets nothing else rest.
    control = SkipControl(SkipParameters(audits=NEVER), 0.5, modalities=(CAMERA,))
    control.unit_arrived(features(unit(3.0, RADAR)), at(30))
    assert control.open_window(at(500), at(380)) is None


def test_a_window_of_two_configurations_is_not_evaluated() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 240.0, level='small')
    bench.play(240.0, 480.0, level='large')
    assert bench.window(490.0, 500.0) is None
    bench.play(480.0, 580.0, level='large')
    assert bench.window(595.0, 800.0) is not None


# ---------------------------------------------------------------------- audits


def test_an_audited_window_is_not_decided_early_and_evaluated_no_more() -> None:
    bench = Bench(audits=AuditParameters(share=1.0), periods_ns=PERIODS)
    bench.play(0.0, 260.0)
    window = bench.window(262.0, 500.0)
    assert window is not None
    ruling = bench.control.rule(window, 1.0)
    assert (ruling.verdict, ruling.skip) == (Verdict.SHADOW, None)
    bench.play(260.0, 300.0)
    assert bench.window(312.0, 500.0) is None
    bench.play(300.0, 490.0)
    bench.control.window_decided(at(500))
    assert bench.window(505.0, 600.0) is not None


def test_a_rest_ends_where_an_audited_window_begins() -> None:
    seed = next(
        s
        for s in range(1000)
        if (plan := SkipControl(SkipParameters(audits=AuditParameters(0.2, s)), 0.5)).is_audited(
            at(900)
        )
        and not any(plan.is_audited(at(100.0 * n)) for n in range(1, 9))
    )
    bench = Bench(audits=AuditParameters(0.2, seed), periods_ns=PERIODS)
    bench.play(0.0, 240.0)
    lease = bench.yes(252.0, 500.0)
    assert lease is not None
    assert lease.skip_until_ns == at(395)  # the audited window is (400, 900]


def test_drift_switches_the_gate_off(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(0.8, periods_ns=PERIODS)
    assert bench.control.threshold == 0.8
    while not bench.control.status.is_off:
        bench.control.audited(1.0)
    assert 'nothing is skipped any more' in caplog.text
    bench.play(0.0, 260.0)
    assert bench.window(262.0, 500.0) is None
    # Starting over with the units does not forgive it.
    bench.control.reset()
    assert bench.control.status.is_off


# ---------------------------------------------------------------------- leases


def test_a_rest_can_be_taken_back() -> None:
    bench = Bench(periods_ns=PERIODS)
    bench.play(0.0, 240.0)
    assert bench.control.resume(at(250)) is None
    bench.yes(252.0, 500.0)
    resumed = bench.control.resume(at(300))
    assert resumed is not None
    assert resumed.modality == CAMERA
    assert resumed.skip_until_ns == resumed.issued_ns == at(300)
    assert bench.control.running(at(301)) is None
    assert bench.control.resume(at(301)) is None
    assert bench.control.status.resumed == 1


def test_no_rest_is_longer_than_the_forced_refresh() -> None:
    bench = Bench(
        periods_ns=PERIODS,
        window=5.0,
        stride=0.1,
        parameters={'sensed_share': 0.1, 'longest_lease': 0.3},
    )
    bench.play(0.0, 4900.0)
    lease = bench.yes(4912.0, 5000.0)
    assert lease is not None
    assert lease.skip_until_ns - lease.issued_ns <= 300 * MS


def test_nothing_is_evaluated_while_the_gate_is_off() -> None:
    for bench in (
        Bench(math.inf, periods_ns=PERIODS),
        Bench(periods_ns=PERIODS, parameters={'delta': 0.0}),
    ):
        bench.play(0.0, 260.0)
        assert bench.window(262.0, 500.0) is None

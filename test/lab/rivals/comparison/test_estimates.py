"""Figures are quotients and quantiles over flights; differences are paired."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_outcomes import better_ours, comparison, outcome

from mmedge_lab.rivals.comparison.estimates import FIGURES, P95, STREAMING, Bootstrap, Halves


def test_a_figure_over_flights_weighs_people_not_flights() -> None:
    few = outcome(1.0)
    few = type(few)(
        few.figures, {**few.totals, 'streamed': 1.0, 'stream_overlap': 1.0}, few.rows, few.levels
    )
    many = outcome(0.5)
    result = Bootstrap.of(range(2)).figure([few, many], STREAMING)
    assert result.value == pytest.approx((1.0 + 50.0) / 101.0)


def test_quantiles_are_those_of_all_windows_together_without_dropped_ones() -> None:
    flights = [outcome(latencies_ms=[1.0, 2.0, math.nan]), outcome(latencies_ms=[3.0, 100.0])]
    bootstrap = Bootstrap.of(range(2))
    assert bootstrap.figure(flights, 'latency_ms.p50').value == pytest.approx(2.5)
    assert bootstrap.figure(flights, 'latency_ms.max').value == pytest.approx(100.0)
    assert bootstrap.figure(flights, 'latency_ms.mean').value == pytest.approx(26.5)
    estimate = bootstrap.figure(flights, P95).estimate
    assert estimate.low <= estimate.value <= estimate.high


def test_without_a_decision_there_is_no_latency_and_no_error() -> None:
    flights = [outcome(latencies_ms=[math.nan, math.nan])] * 2
    bootstrap = Bootstrap.of(range(2))
    result = {name: bootstrap.figure(flights, name) for name in FIGURES}
    assert math.isnan(result[P95].value)
    assert math.isnan(result['deadline_miss_rate'].value)
    assert result['dropped_share'].value == 1.0


def test_a_paired_difference_is_surer_than_its_sides() -> None:
    made = comparison(better_ours)
    plan = made.plan
    ours, other = (made.figure(plan.base(name), STREAMING) for name in ('ours', 'blocking'))
    gap = ours.minus(other)
    assert gap.value == pytest.approx(0.1)
    assert gap.high - gap.low < 1e-9
    assert ours.estimate.high - ours.estimate.low > 0.02
    assert gap.excludes_zero


def test_accuracy_tracking_and_work_have_figures_of_their_own() -> None:
    flights = [
        outcome(
            0.6,
            cpu_s=0.2,
            seconds=0.4,
            true_boxes=10.0,
            result_boxes=10.0,
            matches=8.0,
            id_switches=1.0,
            idtp=7.0,
        )
    ] * 2
    bootstrap = Bootstrap.of(range(2))

    def value(name: str) -> float:
        return bootstrap.figure(flights, name).value

    assert value('tracking.mota') == pytest.approx(1.0 - (2 + 2 + 1) / 10)
    assert value('tracking.idf1') == pytest.approx(0.7)
    assert value('cpu_s_per_s') == pytest.approx(0.5)
    assert value('encoder_calls_per_unit.camera') == pytest.approx(1.0)
    assert value('power_w') == pytest.approx(8.0)


def test_halves_are_fixed_by_blocking_for_every_policy() -> None:
    blocking = [outcome(latencies_ms=[9.0] * 4, ious=[0.1, 0.9, 0.2, 0.8])]
    halves = Halves(blocking)
    assert halves.counts() == {'easy': 2, 'hard': 2}
    other = [outcome(latencies_ms=[1.0, 2.0, 3.0, 4.0], ious=[1.0, 0.0, 1.0, 0.0])]
    bootstrap = Bootstrap.of(range(1))
    easy, hard = (halves.share(bootstrap, other, h, 'overlap', 'people') for h in ('easy', 'hard'))
    assert (easy.value, hard.value) == (0.0, 1.0)
    assert halves.quantile(bootstrap, other, 'hard', 'latency', 0.5).value == pytest.approx(2.0)


def test_windows_without_people_are_neither_easy_nor_hard() -> None:
    blocking = outcome(latencies_ms=[9.0] * 4, ious=[0.1, 0.9, 0.2, 0.8])
    rows = blocking.rows.copy()
    rows[0, 4:6] = 0.0
    halves = Halves([type(blocking)(blocking.figures, blocking.totals, rows, blocking.levels)])
    assert sum(halves.counts().values()) == 3


def test_windows_another_policy_lacks_are_left_out() -> None:
    halves = Halves([outcome(latencies_ms=[9.0] * 4, ious=[0.1, 0.9, 0.2, 0.8])])
    short = outcome(latencies_ms=[1.0, 2.0], ious=[0.5, 0.5])
    assert halves.share(Bootstrap.of(range(1)), [short], 'easy', 'overlap', 'people').value == 0.5
    assert np.isnan(
        halves.share(
            Bootstrap.of(range(1)), [outcome(latencies_ms=[])], 'easy', 'overlap', 'people'
        ).value
    )

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.lab.bench.contention_worlds import draw_worlds
from mmedge_ros.lab.bench.table_latency import TableLatency

# Two axes of three values each, both listed from cheap to expensive.
WORLDS = draw_worlds([[0, 1, 2], [0, 1, 2]], 300)
TABLE = np.linspace(0.02, 0.05, 9)
STRIDE = 0.1


def model() -> TableLatency:
    return TableLatency(TABLE, WORLDS)


def run(latency: TableLatency, index: int, slower: float, begin: float, count: int) -> float:
    """Measure one configuration several times; return when that was over."""
    for step in range(count):
        latency.observe(index, slower * TABLE[index], begin + step * STRIDE)
    return begin + count * STRIDE


def believed(latency: TableLatency, now: float) -> np.ndarray:
    """How much slower than profiled each configuration is believed to be."""
    return latency.predict(now).quantiles(0.5) / TABLE


def test_until_something_happens_the_table_counts() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    assert believed(latency, now) == pytest.approx(np.ones(9), rel=0.01)
    assert latency.predict(now).chances(1.3 * TABLE[8])[8] > 0.99


def test_two_slow_decisions_in_a_row_are_a_step_and_one_is_not() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    now = run(latency, 8, 3.0, now, 1)
    assert believed(latency, now)[8] < 1.5
    now = run(latency, 8, 3.0, now, 1)
    assert believed(latency, now)[8] == pytest.approx(3.0, rel=0.05)


def test_what_was_never_run_is_believed_slow_the_more_the_more_it_is_like_what_is() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    now = run(latency, 8, 3.0, now, 3)
    ratios = believed(latency, now)
    assert ratios[7] > ratios[0]
    assert ratios[5] > ratios[0]
    spread = np.broadcast_to(latency.predict(now).spread, 9)
    assert spread[8] < spread[0]


def test_what_was_measured_fades_towards_what_is_possible() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    now = run(latency, 8, 3.0, now, 3)
    limit = 1.5 * TABLE[8]
    chances = [latency.predict(now + wait).chances(limit)[8] for wait in (0.0, 3.0, 10.0, 60.0)]
    assert chances[0] < 0.01
    assert chances == sorted(chances)
    assert chances[-1] > 0.3


def test_one_try_shows_that_it_is_over_and_then_the_others_are_fast_too() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    now = run(latency, 8, 3.0, now, 3)
    now = run(latency, 5, 2.5, now, 3)
    now = run(latency, 0, 1.0, now, 20)
    step = latency.observe(8, TABLE[8], now)
    assert step is not None
    assert step < -0.5
    assert believed(latency, now)[8] == pytest.approx(1.0, rel=0.02)
    assert believed(latency, now)[5] < 1.3


def test_after_a_step_to_the_worse_what_was_slow_stays_slow() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    now = run(latency, 8, 3.0, now, 3)
    now = run(latency, 4, 1.0, now, 20)
    now = run(latency, 4, 3.0, now, 2)
    ratios = believed(latency, now)
    assert ratios[8] > 2.0
    assert ratios[4] == pytest.approx(3.0, rel=0.1)


def test_a_slow_drift_is_followed() -> None:
    latency = model()
    now = 0.0
    for step in range(200):
        now = run(latency, 8, 1.0 + 0.001 * step, now, 1)
    assert believed(latency, now)[8] == pytest.approx(1.2, rel=0.05)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-2, 12), st.floats(), st.floats()), max_size=40))
def test_whatever_is_measured_whenever_predictions_stay_usable(
    samples: list[tuple[int, float, float]],
) -> None:
    latency = model()
    now = 0.0
    for index, seconds, when in samples:
        latency.observe(index, seconds, when)
        now = when
    quantiles = latency.predict(now).quantiles(0.95)
    assert np.all(np.isfinite(quantiles) & (quantiles > 0.0))


def test_clocks_may_jump() -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    for wrong in (1e18, -1e18, math.nan):
        latency.observe(8, TABLE[8], wrong)
    now = run(latency, 8, 3.0, now, 3)
    fresh = latency.predict(now).chances(1.5 * TABLE[8])[8]
    faded = latency.predict(now + 20.0).chances(1.5 * TABLE[8])[8]
    assert fresh < 0.01 < faded


@pytest.mark.parametrize('pause', [600.0, 3640.0, 3700.0, 7000.0])
def test_what_is_seen_again_after_an_hour_is_learned_as_ever(pause: float) -> None:
    latency = model()
    now = run(latency, 8, 1.0, 0.0, 30)
    latency.predict(now + 0.5 * pause)
    now = run(latency, 8, 1.05, now + pause, 30)
    assert math.isfinite(latency.noise)
    assert believed(latency, now)[8] == pytest.approx(1.05, rel=0.02)


@pytest.mark.parametrize('bad', [0.0, -1.0, math.nan, math.inf])
def test_a_table_must_hold_latencies(bad: float) -> None:
    table = TABLE.copy()
    table[3] = bad
    with pytest.raises(ConfigurationError, match='latencies must be between'):
        TableLatency(table, WORLDS)


def test_worlds_must_fit_the_table() -> None:
    with pytest.raises(ConfigurationError, match='do not fit'):
        TableLatency(TABLE[:5], WORLDS)

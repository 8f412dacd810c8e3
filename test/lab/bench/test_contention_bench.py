from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid
from mmedge_ros.lab.bench.contention_bench import (
    ContentionSettings,
    best_choice,
    run_contention,
)
from mmedge_ros.lab.bench.published_tables import PublishedTables

QUIET, BUSY = Path('quiet'), Path('busy')


def queueing_tables(seed: int) -> tuple[PublishedTables, float]:
    """Two modalities of three rates and levels with encoders that saturate, and a limit."""
    random = np.random.default_rng(seed)
    grid = ConfigurationGrid([Axis(name, ('1', '2', '3')) for name in 'abcd'])
    intervals = [1.0 / np.sort(random.uniform(8, 30, 3)) for _ in range(2)]
    costs = [np.sort(random.uniform(0.004, 0.03, 3)) for _ in range(2)]
    gains = [np.sort(random.uniform(0, 0.06, 3)) for _ in range(4)]

    def latency(slower: float) -> np.ndarray:
        parts = []
        for interval, cost in zip(intervals, costs, strict=True):
            service, gap = slower * cost[None, :], interval[:, None]
            parts.append((service + 8 * np.maximum(0.0, service - gap)).ravel())
        return np.maximum.outer(*parts).ravel() + 0.03 * slower

    accuracy = sum(np.meshgrid(*gains, indexing='ij')).ravel() + 0.6  # type: ignore[union-attr]
    quiet, busy = latency(1.0), latency(2.0)
    limit = float(1.2 * max(quiet[accuracy.argmax()], np.quantile(busy, 0.3)))
    return PublishedTables(grid, accuracy, {QUIET: quiet, BUSY: busy}), limit


@pytest.mark.parametrize('seed', range(6))
def test_it_adapts_on_tables_it_was_not_made_for(seed: int) -> None:
    tables, limit = queueing_tables(seed)
    settings = ContentionSettings(limit, 60)
    report = run_contention(tables, [QUIET, BUSY, QUIET], settings)
    for phase in report['phases']:
        assert phase['late'] <= 5
        assert phase['regret_at_end'] <= 2.0


def attainable(tables: PublishedTables, path: Path, limit: float, noise: float) -> bool:
    """Whether one who knew the phase would keep both bounds 19 times in 20.

    It takes two late decisions to notice a change, so three of the five are left.
    """
    latency = tables.latencies[path]
    best = best_choice(tables.accuracy, latency, limit)
    close = tables.accuracy >= tables.accuracy[best] - 0.02
    chance_of_late = norm.sf((limit / latency[close] - 1.0) / noise).min()
    return bool(binom.cdf(3, 60, chance_of_late) >= 0.95)


def test_under_noise_it_keeps_the_bounds_of_phases_in_which_they_can_be_kept() -> None:
    noise, phases = 0.15, [QUIET, BUSY, QUIET]
    made = [queueing_tables(seed) for seed in range(10)]
    made = [case for case in made if all(attainable(case[0], p, case[1], noise) for p in phases)]
    assert len(made) == 2
    busy = []
    for tables, limit in made:
        for seed in range(2):
            settings = ContentionSettings(limit, 60, noise, outliers=0.02, seed=seed)
            report = run_contention(tables, phases, settings)
            first, slow, last = report['phases']
            for phase in (first, last):
                assert phase['late'] <= 5
                assert phase['regret_at_end'] <= 2.0
            assert report['static_table']['phases'][1]['late'] > 20
            busy.append((slow['late'], slow['regret_at_end']))
    # What to change to has to be found out first, which noise makes cost more at times.
    late, regret = np.mean(busy, axis=0)
    assert late <= 5
    assert regret <= 2.0
    assert np.max(busy, axis=0)[0] <= 10


def test_where_nothing_is_possible_the_fastest_is_run_however_far_off_the_limit() -> None:
    for seed in (9, 12):
        tables, _ = queueing_tables(seed)
        latency = tables.latencies[QUIET]
        settings = ContentionSettings(0.3 * float(latency.min()), 3)
        [phase] = run_contention(tables, [QUIET], settings)['phases']
        for decision in phase['decisions']:
            assert decision['latency_ms'] < 1.2e3 * latency.min()


def test_a_phase_in_which_nothing_is_possible_has_no_regret() -> None:
    tables, _ = queueing_tables(0)
    impossible = 0.5 * float(tables.latencies[QUIET].min())
    [phase] = run_contention(tables, [QUIET], ContentionSettings(impossible, 3))['phases']
    assert not phase['feasible']
    assert phase['late'] == 3
    assert phase['best_accuracy'] is None
    assert phase['regret_at_end'] is None


def test_an_outlier_is_not_counted_as_late() -> None:
    tables, limit = queueing_tables(1)
    settings = ContentionSettings(limit, 50, outliers=1.0)
    [phase] = run_contention(tables, [QUIET], settings)['phases']
    assert (phase['outliers'], phase['late']) == (50, 0)


def test_the_best_choice_is_the_most_accurate_in_time_or_the_fastest() -> None:
    accuracy, latency = np.array([0.5, 0.9, 0.9, 0.99]), np.array([0.1, 0.3, 0.2, 0.8])
    assert best_choice(accuracy, latency, 0.4) == 2
    assert best_choice(accuracy, latency, 0.01) == 0

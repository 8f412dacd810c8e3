from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging.bench import BenchRequest, Sums, total_of
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.contention_bench import (
    LOOP,
    STATIC,
    ContentionSettings,
    bench,
    best_choice,
    contended,
)
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables
from mmedge_lab.rivals.mmedge.table_factors import table_factors, table_space
from mmedge_ros.adaptation.configuration_space import Axis, ConfigurationGrid

QUIET, BUSY = Path('quiet'), Path('busy')


def queueing_tables(seed: int) -> tuple[PublishedTables, float]:
    """Two modalities of three rates and levels with encoders that saturate, and a limit."""
    random = np.random.default_rng(seed)
    intervals = [1.0 / np.sort(random.uniform(8, 30, 3)) for _ in range(2)]
    axes = []
    for number, interval in enumerate(intervals):
        axes.append(Axis(f'rate {number}', tuple(f'{1.0 / gap:.4f}' for gap in interval)))
        axes.append(Axis(f'level {number}', ('small', 'medium', 'large')))
    grid = ConfigurationGrid(axes)
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


def flown(
    tables: PublishedTables, phases: list[Path], settings: ContentionSettings
) -> dict[str, list[Sums]]:
    space = table_space(tables.grid)
    factors = {path: table_factors(tables.latencies[path], space) for path in set(phases)}
    return contended(tables, phases, factors, settings)


@pytest.mark.parametrize('seed', range(6))
def test_it_adapts_on_tables_it_was_not_made_for(seed: int) -> None:
    tables, limit = queueing_tables(seed)
    for phase in flown(tables, [QUIET, BUSY, QUIET], ContentionSettings(limit, 60))[LOOP]:
        assert phase['late'] <= 5  # type: ignore[operator]
        assert phase['regret_at_end'] <= 3.0  # type: ignore[operator]


def test_noise_costs_few_late_decisions_and_a_static_table_many() -> None:
    for seed in (1, 3):
        tables, limit = queueing_tables(seed)
        settings = ContentionSettings(limit, 60, 0.15, outliers=0.02, seed=seed)
        found = flown(tables, [QUIET, BUSY, QUIET], settings)
        late = [total_of(phase, 'late') for phase in found[LOOP]]
        assert max(late) <= 10
        assert total_of(found[STATIC][1], 'late') > max(20, 3 * late[1])


def test_a_phase_in_which_nothing_is_possible_has_no_regret() -> None:
    tables, _ = queueing_tables(0)
    impossible = 0.5 * float(tables.latencies[QUIET].min())
    [phase] = flown(tables, [QUIET], ContentionSettings(impossible, 3))[LOOP]
    assert phase['late'] == 3
    assert 'regret_at_end' not in phase


def test_an_outlier_is_not_counted_as_late() -> None:
    tables, limit = queueing_tables(1)
    [phase] = flown(tables, [QUIET], ContentionSettings(limit, 50, outliers=1.0))[LOOP]
    assert (phase['outliers'], phase['late']) == (50, 0)


def test_the_best_choice_is_the_most_accurate_in_time_or_the_fastest() -> None:
    accuracy, latency = np.array([0.5, 0.9, 0.9, 0.99]), np.array([0.1, 0.3, 0.2, 0.8])
    assert best_choice(accuracy, latency, 0.4) == 2
    assert best_choice(accuracy, latency, 0.01) == 0


def test_the_published_tables_are_flown_without_options(data_folder: Path, tmp_path: Path) -> None:
    made = bench(BenchRequest(), noise=0.15, outliers=0.02, seeds=2)
    results = judge(made, tmp_path).results
    assert len(results) == 8
    loop = results[f'2: latency_table_C64: {LOOP}']
    assert max(total_of(of, 'late') for of in loop) <= 5
    assert loop[0] != loop[1]
    static = results[f'2: latency_table_C64: {STATIC}']
    assert min(total_of(of, 'late') for of in static) > 30

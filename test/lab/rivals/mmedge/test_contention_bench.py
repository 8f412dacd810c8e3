from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.rivals.mmedge.contention_bench import (
    ContentionSettings,
    best_choice,
    published_steps,
    run_contention,
    tables_folder,
)
from mmedge_lab.rivals.mmedge.published_tables import PublishedTables
from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_space import Axis, ConfigurationGrid

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


@pytest.mark.parametrize('seed', range(6))
def test_it_adapts_on_tables_it_was_not_made_for(seed: int) -> None:
    tables, limit = queueing_tables(seed)
    settings = ContentionSettings(limit, 60)
    report = run_contention(tables, [QUIET, BUSY, QUIET], settings)
    for phase in report['phases']:
        assert phase['late'] <= 5
        assert phase['regret_at_end'] <= 3.0


def test_noise_costs_few_late_decisions_and_a_static_table_many() -> None:
    for seed in (1, 3):
        tables, limit = queueing_tables(seed)
        settings = ContentionSettings(limit, 60, 0.15, outliers=0.02, seed=seed)
        report = run_contention(tables, [QUIET, BUSY, QUIET], settings)
        late = [phase['late'] for phase in report['phases']]
        assert max(late) <= 10
        assert report['static_table']['phases'][1]['late'] > max(20, 3 * late[1])


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


def test_the_report_says_by_phase_how_well_unit_times_explain_the_table() -> None:
    tables, limit = queueing_tables(1)
    report = run_contention(tables, [QUIET, BUSY], ContentionSettings(limit, 30))
    assert len(report['from_factors']['r2']) == 2
    assert report['from_factors']['numbers'] == 6 + 1 + 6


def write_tables(folder: Path) -> Path:
    """Two rates and two levels; under C50 the better level takes far too long."""
    folder.mkdir(parents=True)
    accuracy = {'10': {'small': 50.0, 'large': 70.0}, '30': {'small': 60.0, 'large': 90.0}}
    (folder / 'accuracy_table.json').write_text(json.dumps(accuracy))
    for name, slow in (('H', 1.0), ('C64', 1.5), ('C50', 3.0)):
        times = {rate: {'small': 30.0 * slow, 'large': 80.0 * slow} for rate in accuracy}
        (folder / f'latency_table_{name}.json').write_text(json.dumps(times))
    return folder


def test_every_published_phase_is_flown_and_the_static_table_beside_it(tmp_path: Path) -> None:
    steps = published_steps(write_tables(tmp_path / 'mmedge_tables'))
    assert steps['names'] == ['H', 'C64', 'C50', 'H']
    assert len(steps['phases']) == len(steps['static_phases']) == 4
    assert steps['static_phases'][2]['late'] == steps['decisions'] == 60
    assert max(phase['late'] for phase in steps['phases']) < 20
    assert '--limits 120ms --decisions 60' in steps['command']


def test_the_tables_are_looked_for_below_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    assert tables_folder() is None
    monkeypatch.setenv('MMEDGE_DATA', str(tmp_path))
    assert tables_folder() is None
    assert tables_folder() != write_tables(tmp_path / 'mmedge_tables') == tables_folder()


def test_tables_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / 'mmedge_tables')
    (folder / 'latency_table_C50.json').write_text('{')
    with pytest.raises(ConfigurationError, match='latency_table_C50'):
        published_steps(folder)

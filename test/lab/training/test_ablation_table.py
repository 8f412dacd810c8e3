"""What trainings with and without parts of fusion came to, beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_ablations import FLIGHTS, PEOPLE, TALL, run_of, runs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmedge_lab.training import TrainingError
from mmedge_lab.training.ablation_table import (
    FULL,
    VARIANTS,
    Run,
    load_run,
    save_run,
    tabulate,
)


def entry_of(table: dict[str, Any], variant: str, figure: str = 'worth') -> dict[str, Any]:
    result: dict[str, Any] = table['configurations'][FULL]['variants'][variant][figure]
    return result


def test_means_and_spreads_are_over_seeds() -> None:
    table = tabulate(runs(lambda _, seed: 44.0 + 11.0 * seed))
    worth = entry_of(table, 'no_shift')
    assert worth['seeds'] == [0.4, 0.5, 0.6]
    assert worth['mean'] == 0.5
    assert worth['deviation'] == 0.1
    assert entry_of(table, 'no_shift', 'recall')['mean'] == 0.7
    assert entry_of(table, 'no_shift', 'precision')['mean'] == 0.875
    assert entry_of(table, 'no_shift', 'range_error')['mean'] == 0.1
    assert entry_of(table, 'no_shift', 'mean_iou')['mean'] == pytest.approx(27.5 / TALL, abs=1e-4)


def test_flights_that_share_a_seed_are_one_draw() -> None:
    def table(flight_seeds: tuple[str, ...]) -> dict[str, Any]:
        made = runs(lambda _, seed: 44.0 + 11.0 * seed)
        return tabulate([run._replace(flight_seeds=flight_seeds) for run in made])

    *_, high = entry_of(table(('1', '1', '2', '2')), 'no_shift')['less_full']
    assert high == 0.0
    *_, high = entry_of(table(('1', '1', '1', '1')), 'no_shift')['less_full']
    assert high is None


def test_all_are_compared_at_the_best_threshold_of_the_newest_picture() -> None:
    table = tabulate(runs(lambda *_: 50.0))
    entry = table['configurations'][FULL]
    assert entry['threshold'] == 0.3
    assert entry['newest_picture']['worth'] == round(40.0 / 110.0, 4)
    assert entry['people'] == PEOPLE * len(FLIGHTS)
    assert entry_of(table, FULL, 'best_worth')['thresholds'] == [0.3] * 3


def test_who_is_better_in_every_flight_and_seed_is_surely_better() -> None:
    table = tabulate(runs(lambda name, seed: 50.0 + seed + 5.5 * (name == 'last_unit')))
    value, low, high = entry_of(table, 'last_unit')['less_full']
    assert value == low == high == 0.05
    assert entry_of(table, FULL)['less_full'] == [0.0, 0.0, 0.0]


def test_who_is_better_with_one_seed_and_worse_with_another_is_not() -> None:
    better = {('no_shift', 0): 6.0, ('no_shift', 1): -5.0}
    table = tabulate(runs(lambda name, seed: 50.0 + better.get((name, seed), 0.0)))
    _, low, high = entry_of(table, 'no_shift')['less_full']
    assert low < 0.0 < high


def test_one_seed_has_no_spread_and_nothing_found_no_figure() -> None:
    made = [run_of(v.name, 0, 0.0, hits=0, wrong=0, error=float('nan')) for v in VARIANTS]
    table = tabulate(made)
    assert entry_of(table, FULL)['deviation'] is None
    assert entry_of(table, FULL, 'range_error')['mean'] is None
    json.dumps(table, allow_nan=False)


@pytest.mark.parametrize(
    'spoil',
    [
        lambda made: made[1:],
        lambda made: [],
        lambda made: [made[0]._replace(flights=('others',)), *made[1:]],
    ],
    ids=['one missing', 'none', 'other flights'],
)
def test_runs_that_do_not_belong_together_are_refused(
    spoil: Callable[[list[Run]], list[Run]],
) -> None:
    with pytest.raises(TrainingError, match='not one of each variant and seed'):
        tabulate(spoil(runs(lambda *_: 50.0)))


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = run_of(FULL, 2, 50.0, error=float('nan'))
    save_run(tmp_path / 'run.json', run)
    result = load_run(tmp_path / 'run.json')
    assert result[:5] == run[:5]
    np.testing.assert_array_equal(result.counts('least'), run.counts('least'))
    assert [path.name for path in tmp_path.iterdir()] == ['run.json']


LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=3)
FIELDS = st.dictionaries(st.sampled_from(Run._fields), st.recursive(LEAVES, st.lists), max_size=6)


@given(FIELDS | LEAVES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_a_damaged_run_holds_it_is_told(tmp_path: Path, content: object) -> None:
    path = tmp_path / 'run.json'
    path.write_text(json.dumps(content))
    with pytest.raises(TrainingError, match=r'run\.json cannot be used .*--resume'):
        load_run(path)


def test_a_run_with_counts_of_another_shape_is_told(tmp_path: Path) -> None:
    run = run_of(FULL, 0, 50.0)
    save_run(tmp_path / 'run.json', run._replace(flights=('one',)))
    with pytest.raises(TrainingError, match='counts of full are not'):
        load_run(tmp_path / 'run.json')

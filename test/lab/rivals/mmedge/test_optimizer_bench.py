from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from configuration_examples import write_all

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.optimizer_bench import (
    bench,
    decision_times,
    exhaustive_choice,
    made_up,
)


@pytest.mark.parametrize(
    ('limit', 'expected'),
    [(0.05, (1, True)), (0.25, (2, True)), (9.0, (3, True)), (0.0, (1, False))],
)
def test_exhaustive_search_looks_at_each(limit: float, expected: tuple[int, bool]) -> None:
    accuracy, latency = [0.6, 0.5, 0.6, 0.9], [0.2, 0.04, 0.1, 0.5]
    assert exhaustive_choice(accuracy, latency, limit) == expected


def test_over_2401_configurations_the_answer_is_exact() -> None:
    times = decision_times(7, rounds=40)
    assert times['exact'] == times['compared'] == 2
    assert 0.0 < np.median(times['search']) < np.median(times['fresh'])


def test_made_up_configurations_are_all_different() -> None:
    space, latency = made_up(5)
    quantiles = latency.predict(0.0).quantiles(0.95)
    assert len(space) == 625
    assert len({space.parts(index) for index in range(625)}) == 625
    assert quantiles.max() > 3 * quantiles.min()


def test_every_limit_of_every_table_is_answered(tmp_path: Path) -> None:
    accuracy, quiet, busy = write_all(tmp_path)
    made = bench(BenchRequest((accuracy, quiet, busy)), limits_ms='50,1')
    results = judge(made.only(['50 ms', '1 ms', '400 limits']), tmp_path).results
    assert [of['feasible'] for of in results['quiet: 50 ms']] == [1]
    assert results['quiet: 1 ms'][0]['latency'] == pytest.approx(20.0)
    for sums in (results['quiet: 400 limits'][0], results['busy: 400 limits'][0]):
        assert set(sums['regret']) == {0.0}  # type: ignore[arg-type]
        assert (sums['wrong'], sums['answers']) == (0, 400)


def test_published_tables_are_answered_without_regret(data_folder: Path, tmp_path: Path) -> None:
    results = judge(bench(BenchRequest()).only(['120 ms']), tmp_path).results
    accuracy = [results[f'latency_table_{name}: 120 ms'][0]['accuracy'] for name in ('H', 'C50')]
    assert accuracy == pytest.approx([93.44, 90.64], abs=0.005)


def test_without_tables_their_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    with pytest.raises(EvaluationError, match='name an accuracy table and latency tables'):
        bench(BenchRequest())

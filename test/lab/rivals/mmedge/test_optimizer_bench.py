from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.optimizer_bench import (
    bench,
    decision_times,
    exhaustive_choice,
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


def test_every_limit_of_a_table_is_answered(tmp_path: Path) -> None:
    cells = list(product(range(2), range(3), range(2)))
    tables = {
        'accuracy': {c: {'left': f'{58 + 10 * c[0] + 5 * c[1]}', 'right': 62} for c in cells},
        'quiet': {c: 20.0 + 15 * c[0] + 10 * c[1] + 2 * c[2] for c in cells},
    }
    for name, of in tables.items():
        nested: dict[str, Any] = {}
        for (m, r, s), value in of.items():
            nested.setdefault(f'model {m}', {}).setdefault(f'{r} Hz', {})[f'sound {s}'] = value
        (tmp_path / f'{name}.json').write_text(json.dumps(nested))
    inputs = tuple(tmp_path / f'{name}.json' for name in tables)
    results = judge(bench(BenchRequest(inputs)).only(['60 ms', '400 limits']), tmp_path).results
    # The most accurate of the three rates and two models that take 60 ms at most.
    assert results['quiet: 60 ms'][0]['accuracy'] == pytest.approx((78 + 62) / 2)
    every = results['quiet: 400 limits'][0]
    assert set(every['regret']) == {0.0}  # type: ignore[arg-type]
    assert (every['wrong'], every['answers']) == (0, 400)
    with pytest.raises(EvaluationError, match='cannot be read together'):
        bench(BenchRequest(inputs[::-1]))


def test_published_tables_are_answered_without_regret(data_folder: Path, tmp_path: Path) -> None:
    results = judge(bench(BenchRequest()).only(['120 ms']), tmp_path).results
    accuracy = [results[f'latency_table_{name}: 120 ms'][0]['accuracy'] for name in ('H', 'C50')]
    assert accuracy == pytest.approx([93.44, 90.64], abs=0.005)


def test_without_tables_their_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    with pytest.raises(EvaluationError, match='name an accuracy table and latency tables'):
        bench(BenchRequest())

from __future__ import annotations

import pytest

from mmedge_lab.rivals.mmedge.optimizer_bench import (
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
    assert times['equal_to_exhaustive']
    assert 0.0 < times['search']['processor_p50'] < times['fresh']['processor_p50']


def test_made_up_configurations_are_all_different() -> None:
    space, latency = made_up(5)
    quantiles = latency.predict(0.0).quantiles(0.95)
    assert len(space) == 625
    assert len({space.parts(index) for index in range(625)}) == 625
    assert quantiles.max() > 3 * quantiles.min()

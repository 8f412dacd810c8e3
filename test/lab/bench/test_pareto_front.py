from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid
from mmedge_ros.configuration.optimizer import Optimizer
from mmedge_ros.lab.bench.pareto_front import ParetoFront

GRID = ConfigurationGrid([Axis('a', tuple('12345678'))])
coarse = st.sampled_from([0.1, 0.2, 0.3, 0.4, math.nan, math.inf])
columns = st.lists(coarse, min_size=8, max_size=8)


@settings(max_examples=200)
@given(
    columns,
    columns,
    st.lists(st.booleans(), min_size=8, max_size=8),
    columns,
    st.one_of(coarse, st.floats()),
)
def test_a_front_answers_what_the_search_answers(
    accuracy: list[float],
    latency: list[float],
    allowed: list[bool],
    energy: list[float],
    limit: float,
) -> None:
    mask = np.array(allowed)
    choice = Optimizer(GRID).choose(accuracy, latency, limit, mask, energy)
    front = ParetoFront(accuracy, latency, mask, energy)
    assert front.choose(limit) == (choice.index, choice.feasible)


def test_only_what_is_worth_its_latency_is_on_the_front() -> None:
    assert len(ParetoFront([0.5, 0.4, 0.9, 0.9], [1.0, 2.0, 3.0, 4.0])) == 2


@pytest.mark.parametrize(('accuracy', 'latency'), [([], []), ([0.1], [0.1, 0.2]), (0.1, 0.1)])
def test_a_front_of_nothing_is_refused(accuracy: object, latency: object) -> None:
    with pytest.raises(ConfigurationError, match='one accuracy and one latency'):
        ParetoFront(accuracy, latency)  # type: ignore[arg-type]

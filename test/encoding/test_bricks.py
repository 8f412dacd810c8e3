"""What bricks cost is written into device profiles, and read with mistrust."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bricks import (
    BrickCost,
    RunTime,
    costs_as_plain,
    costs_from_plain,
)

COST = BrickCost('camera.large', 'cuda', 0.12, 0.031, 40_000_000, 500_000, 'int8', 0.09)


def test_costs_survive_a_profile() -> None:
    without_rails = BrickCost('radar.small', 'cpu', 0.03, 0.002, 3_000_000)
    read = costs_from_plain(costs_as_plain([COST, without_rails]))
    assert read[0] == COST
    assert math.isnan(read[1].energy)
    assert read[1].name == 'radar.small'


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        ('brick', ''),
        ('device', 7),
        ('run_ms', -1.0),
        ('run_ms', math.nan),
        ('run_ms', math.inf),
        ('memory_mb', None),
        ('load_ms', True),
        ('run_mj', 'much'),
    ],
)
def test_a_cost_that_is_none_is_refused_by_name(name: str, value: Any) -> None:
    entry = {**costs_as_plain([COST])[0], name: value}
    with pytest.raises(EncodingError, match='mmedge profile'):
        costs_from_plain([entry])


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(['brick', 'device', 'run_ms', 'x']), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_whatever_a_profile_holds_is_read_or_refused(content: Any) -> None:
    try:
        costs = costs_from_plain(content)
    except EncodingError:
        return
    assert costs == []


def test_the_usual_run_time_follows_what_runs_take() -> None:
    run_time = RunTime()
    assert math.isnan(run_time.mean)
    run_time.add(0.010)
    assert run_time.mean == pytest.approx(0.010)
    for _ in range(60):
        run_time.add(0.030)
    assert run_time.mean == pytest.approx(0.030, rel=0.01)

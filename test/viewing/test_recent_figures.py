"""Figures of the last seconds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hand_made_decisions import NOW_NS, a_decision, a_unit

from mmedge_ros.viewing.recent_figures import RecentDecisions, RecentUnits


class Seconds:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def decided(latency: float):
    return replace(a_decision(), published_ns=NOW_NS + round(1e9 * latency))


def test_quantiles_are_those_of_the_last_ten_seconds(seconds: Seconds) -> None:
    recent = RecentDecisions(seconds)
    recent.add(decided(0.5), 0.05)
    seconds.now += 11.0
    for latency in (0.01, 0.02, 0.03):
        recent.add(decided(latency), 0.05)
    figures = recent.figures()
    assert figures['p50'] == pytest.approx(0.02)
    assert figures['newest'] == pytest.approx([0.01, 0.02, 0.03])
    assert figures['ages']['camera'] == pytest.approx(0.06)
    # Late ones are counted from the beginning.
    assert (figures['late'], figures['decisions']) == (1, 4)


def test_rates_follow_what_comes_and_sink_to_zero(seconds: Seconds) -> None:
    units = RecentUnits(seconds)
    for _ in range(60):
        units.add(replace(a_unit(), level='medium'))
        seconds.now += 0.05
    assert units.figures() == {'rate': pytest.approx(20.0, rel=0.05), 'level': 'medium'}
    seconds.now += 4.0
    assert units.figures()['rate'] == 0.0

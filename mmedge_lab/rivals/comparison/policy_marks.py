"""How policies look in figures: the same colour and mark in each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mmedge_lab.rivals.comparison.plan import OURS, ComparisonCase
from mmedge_lab.rivals.comparison.report import case_of
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    printable,
)

_COLOURS = (VERMILION, ORANGE, GREEN, PURPLE, SKY, INK, MUTED)
_MARKERS = ('s', '^', 'D', 'v', 'P', 'X', '<', '>', 'h', 'p')
# Rivals that panels with room for few show first.
_FIRST = ('blocking_cached', 'pipelined_max', 'pipelined_min', 'non_blocking', 'blocking')
MOST_IN_PANEL = 6


class Mark(NamedTuple):
    """Colour, marker and label of a policy."""

    colour: str
    marker: str
    label: str
    width: float


def marks(report: Mapping[str, Any]) -> dict[str, Mark]:
    """Return the mark of each policy by name; ours is blue and stands out."""
    labels = {p['name']: printable(p['short'], 26) for p in report['plan']['policies']}
    others = [name for name in labels if name != OURS]
    first = {OURS: Mark(BLUE, 'o', labels[OURS], 2.2)} if OURS in labels else {}
    return first | {
        name: Mark(
            _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)], labels[name], 1.1
        )
        for number, name in enumerate(others)
    }


def few(report: Mapping[str, Any]) -> list[str]:
    """Return the names of ours and few rivals, for panels without room for all."""
    names = [facts['name'] for facts in report['plan']['policies']]
    rivals = [name for name in names if name != OURS and not name.startswith(f'{OURS}_')]
    first = [name for name in _FIRST if name in rivals]
    ordered = [*first, *(name for name in rivals if name not in first)]
    chosen = ordered[: MOST_IN_PANEL - 1]
    return [name for name in names if name == OURS or name in chosen]


def base_case(
    report: Mapping[str, Any],
    policy: str,
    protocol: str = '',
    share: float = 0.0,
    limit: float = 0.0,
) -> dict[str, Any] | None:
    """Return a policy's case at the headline's protocol, share and limit, or at those named."""
    headline = report['plan']['headline']
    return case_of(
        report,
        ComparisonCase(
            policy,
            protocol or headline['protocol'],
            share or headline['share'],
            limit or headline['limit_ms'],
        ),
    )

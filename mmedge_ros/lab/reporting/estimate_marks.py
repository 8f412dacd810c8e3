"""How figures with their intervals are drawn, and called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from numpy.typing import NDArray

WORDS = {
    'mean_iou': 'mean IoU',
    'streaming_mean_iou': 'streaming mean IoU',
    'place_recall': 'share placed within 2 m',
}


def draw_points(
    axes: Axes,
    places: NDArray[Any],
    estimates: Sequence[Mapping[str, float | None]],
    colour: str,
    label: str,
    marker: str = 'o',
    *,
    line: bool = False,
) -> None:
    """Draw figures as marks with their intervals."""
    values = [value_of(estimate) for estimate in estimates]
    axes.plot(
        places,
        values,
        marker + ('-' if line else ''),
        color=colour,
        markersize=4.5,
        linewidth=1.2,
        label=label,
    )
    draw_whiskers(axes, places, estimates, colour)


def draw_whiskers(
    axes: Axes,
    places: NDArray[Any],
    estimates: Sequence[Mapping[str, float | None]],
    colour: str,
) -> None:
    """Draw intervals, where there are any."""
    for place, estimate in zip(places, estimates, strict=True):
        if estimate['low'] is not None and estimate['high'] is not None:
            axes.plot([place, place], [estimate['low'], estimate['high']], color=colour, lw=1.1)


def value_of(estimate: Mapping[str, float | None]) -> float:
    """Return the figure; NaN where there is none."""
    value = estimate['value']
    return math.nan if value is None else value


def capital(words: str) -> str:
    """Write words as a title."""
    return words[:1].upper() + words[1:]

"""Figure of bricks in events: when each is loaded, runs and goes, and the memory it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.encoding.bricks import BrickState
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    FigureFile,
    legend_above,
    printable,
    render,
)

BRICKS = 'bricks.png'
_COLOURS = {BrickState.LOADING: ORANGE, BrickState.RUNNING: GREEN, BrickState.RELEASED: MUTED}
_WORDS = {
    BrickState.LOADING: 'loading',
    BrickState.RUNNING: 'running',
    BrickState.RELEASED: 'releasing',
}
_BAR = 0.62


def draw_bricks(ways: Sequence[Mapping[str, Any]], runs: int) -> FigureFile:
    """Draw each way of the report of `brick_bench`: its bricks over time, and memory below.

    :param runs: of each brick in an event
    """
    caption = (
        f'An event after the other, each with {runs} runs of every brick. Above: what each brick '
        'does; below: memory beyond that of a process that has loaded networks before. In the '
        'titles: the most memory, and processor time.'
    )
    return FigureFile(
        BRICKS,
        render(lambda figure: _draw(figure, ways), 9.4, 6.4),
        'Bricks on demand, and staying loaded',
        caption,
        'Two columns of charts over time: states of bricks, and memory',
    )


def _draw(figure: Figure, ways: Sequence[Mapping[str, Any]]) -> None:
    charts = figure.subplots(2, len(ways), squeeze=False, sharex=True, sharey='row')
    for column, way in enumerate(ways):
        _draw_states(charts[0][column], way)
        _draw_memory(charts[1][column], way)
    charts[0][0].invert_yaxis()
    charts[1][0].set_ylabel('memory, MB')
    most = max(way['peak_mb'] for way in ways)
    charts[1][0].set_ylim(0.0, 1.08 * most)
    charts[0][0].set_xlim(0.0, max(way['memory'][-1][0] for way in ways if way['memory']))


def _draw_states(axes: Axes, way: Mapping[str, Any]) -> None:
    names = list(dict.fromkeys(span[0] for span in way['spans']))
    for state, colour in _COLOURS.items():
        spans = [span for span in way['spans'] if span[1] == state.name]
        axes.barh(
            [names.index(span[0]) for span in spans],
            [max(span[3] - span[2], 1e-3) for span in spans],
            _BAR,
            [span[2] for span in spans],
            color=colour,
            label=_WORDS[state] if spans else None,
        )
    axes.set_yticks(range(len(names)), [printable(name) for name in names])
    axes.grid(visible=False, axis='y')
    legend_above(
        axes,
        f'{way["way"]}: {way["peak_mb"]:.0f} MB, {1e3 * way["processor_s"]:.0f} ms an event',
    )


def _draw_memory(axes: Axes, way: Mapping[str, Any]) -> None:
    samples = np.array(way['memory'], float).reshape(-1, 2)
    axes.fill_between(samples[:, 0], samples[:, 1], color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(samples[:, 0], samples[:, 1], color=BLUE, linewidth=1.0)
    axes.set_xlabel('time, s', color=INK)

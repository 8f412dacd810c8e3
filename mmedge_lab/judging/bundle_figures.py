"""Figures of an evaluation of a bundle over a set of flights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.judging.bundle_cases import strategy_named
from mmedge_lab.judging.bundle_report import figure_words
from mmedge_lab.judging.configuration_maps import AXES, GRID, draw_axes, draw_grid
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    FigureFile,
    draw_difference,
    draw_points,
    draw_whiskers,
    label_columns,
    label_rows,
    legend_outside,
    printable,
    render,
    value_of,
)
from mmedge_ros.report.page import capital

STRATA = 'strata.png'
STRATEGIES, DIFFERENCES = 'strategies.png', 'differences.png'
BUNDLE_FIGURES = (GRID, AXES, STRATA, STRATEGIES, DIFFERENCES)
_COLOURS = {
    'fusion': BLUE,
    'decision_fusion': GREEN,
    'camera_only': ORANGE,
    'detector_only': PURPLE,
    'radar_only': VERMILION,
}
_MARKERS = {
    'fusion': 'o',
    'decision_fusion': 's',
    'camera_only': '^',
    'detector_only': 'D',
    'radar_only': 'v',
}
_PANELS = (
    ('size', 'Height in the picture [px]'),
    ('range', 'Range [m]'),
    ('occlusion', 'To be seen'),
    ('light', 'Light'),
    ('distance', 'Distance of the flight'),
    ('surroundings', 'Surroundings'),
)


def draw_bundle(report: Mapping[str, Any]) -> list[FigureFile]:
    """Draw every figure for which there is something, in their order, from report.json."""
    drawn = [draw_strategies(report), draw_differences(report), draw_strata(report)]
    if len(report['configurations']) > 1:
        drawn = [draw_grid(report), draw_axes(report), *drawn]
    return [figure for figure in drawn if figure is not None]


def draw_strata(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw the bundle's own accuracy by every factor."""
    strata = report['strategies']['fusion']['strata']
    panels = [(strata[factor], title) for factor, title in _PANELS if factor in strata]
    if not panels:
        return None

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes, (rows_of, title) in zip(drawn.ravel(), panels, strict=False):
            _draw_bars(axes, rows_of, title)
        for spare in drawn.ravel()[len(panels) :]:
            spare.set_visible(False)
        for first in drawn[:, 0]:
            first.set_ylabel('mean IoU')

    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    return FigureFile(
        STRATA,
        render(lambda figure: draw(figure, rows, columns), 9.4, 2.9 * rows),
        'Accuracy by factor',
        'Mean IoU at full rates and the highest level (0 for missed people) with 95 % intervals '
        'and the number of flights below each bar.',
        'Bars of mean IoU by size, range, occlusion, light, distance and surroundings',
        render(lambda figure: draw(figure, len(panels), 1), 4.6, 2.5 * len(panels)),
    )


def _draw_bars(axes: Axes, strata: Mapping[str, Mapping[str, Any]], title: str) -> None:
    rows = np.arange(len(strata))
    values = [value_of(row['mean_iou']) for row in strata.values()]
    axes.bar(rows, values, 0.6, color=BLUE, alpha=0.85)
    draw_whiskers(axes, rows, [row['mean_iou'] for row in strata.values()], INK)
    label_columns(axes, _with_flights(strata))
    axes.set_ylim(0.0, 1.02)
    axes.set_title(title)


def draw_strategies(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw all strategies beside each other, by light and by range."""
    strategies = report['strategies']
    own = strategies['fusion']['strata']
    factors = [factor for factor in ('light', 'range') if factor in own]
    if not factors:
        return None
    panels = [(factor, figure) for figure in ('mean_iou', 'place_recall') for factor in factors]

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (factor, name) in zip(drawn, panels, strict=True):
            _draw_rivals(axes, strategies, factor, name)
        _draw_legend(figure, drawn[0], columns)

    return FigureFile(
        STRATEGIES,
        render(lambda figure: draw(figure, 2, len(factors)), 9.4, 5.6),
        'Strategies beside each other',
        'Mean IoU of boxes and share of visible people with a track of their own within 2 m, with '
        'all sensors and with units of one withheld, in the same flights with 95 % intervals.',
        'Mean IoU and share of people placed, for each strategy, by light and by range',
        render(lambda figure: draw(figure, len(panels), 1), 4.6, 2.7 * len(panels)),
    )


def _draw_rivals(axes: Axes, strategies: Mapping[str, Any], factor: str, name: str) -> None:
    own = strategies['fusion']['strata'][factor]
    rows = np.arange(len(own))
    step = 0.7 / max(len(strategies), 1)
    for place, (strategy, entry) in enumerate(strategies.items()):
        strata = entry['strata'][factor]
        draw_points(
            axes,
            rows + step * (place - (len(strategies) - 1) / 2),
            [strata[stratum][name] for stratum in own],
            _COLOURS[strategy],
            strategy_named(strategy).short,
            _MARKERS[strategy],
        )
    for edge in rows[1:]:
        axes.axvline(edge - 0.5, color='#e4e8ec', linewidth=0.7)
    label_columns(axes, _with_flights(own), 0.5)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel('range [m]' if factor == 'range' else factor)
    axes.set_ylabel('IoU' if name == 'mean_iou' else 'share')
    axes.set_title(f'{capital(figure_words(name))} by {factor}')


def draw_differences(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw fusion minus each other strategy, with zero marked."""
    chosen = [
        row
        for row in report['differences']
        if row['factor'] in ('all', 'light', 'range', 'claims') and row['value'] is not None
    ]
    others = [name for name in report['strategies'] if name not in ('fusion', 'radar_only')]
    strata = list(dict.fromkeys((row['factor'], row['stratum']) for row in chosen))
    if not others or not strata:
        return None
    names = ('mean_iou', 'place_recall')

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, sharey=columns > 1, squeeze=False).ravel()
        for axes, name in zip(drawn, names, strict=True):
            for place, other in enumerate(others):
                by_stratum = {
                    (row['factor'], row['stratum']): row
                    for row in chosen
                    if row['figure'] == name and row['against'] == other
                }
                shift = 0.5 * (place - (len(others) - 1) / 2) / max(len(others), 1)
                short = strategy_named(other).short
                axes.plot([], [], _MARKERS[other], color=_COLOURS[other], label=f'minus {short}')
                for height, stratum in enumerate(strata):
                    if stratum in by_stratum:
                        draw_difference(
                            axes,
                            by_stratum[stratum],
                            height + shift,
                            _COLOURS[other],
                            _MARKERS[other],
                        )
            axes.axvline(0.0, color=INK, linewidth=1.0)
            label_rows(axes, [_stratum_words(*s) for s in strata])
            axes.locator_params(axis='x', nbins=5)
            axes.set_xlabel('difference (IoU, share)')
            axes.set_title(capital(figure_words(name)))
        _draw_legend(figure, drawn[0], columns)

    height = 1.4 + 0.3 * len(strata)
    return FigureFile(
        DIFFERENCES,
        render(lambda figure: draw(figure, 1, 2), 9.4, height),
        'What fusion adds',
        'Fusion minus another strategy in the same flights with 95 % intervals: right of the line '
        'fusion is better, and a filled mark is an interval that excludes zero.',
        'Differences of fusion and other strategies with intervals, by light and range',
        render(lambda figure: draw(figure, 2, 1), 4.6, 2 * height),
    )


def _draw_legend(figure: Figure, axes: Axes, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    across = len(labels) if columns > 1 else 2
    legend_outside(figure, 'upper center', handles=handles, labels=labels, ncol=across)


def _with_flights(strata: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [f'{printable(name, 14)}\n({row["flights"]})' for name, row in strata.items()]


def _stratum_words(factor: str, name: str) -> str:
    words = printable(name, 20)
    if factor == 'range':
        return f'{words} m'
    return 'all people' if factor == 'all' else words

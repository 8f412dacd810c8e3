"""Figures of accuracy over configurations, drawn from the report of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_lab.judging.bundle_report import figure_words
from mmedge_ros.data_types import FloatArray
from mmedge_ros.report.figure_style import (
    BLUE,
    INK,
    ORANGE,
    FigureFile,
    draw_points,
    label_columns,
    legend_outside,
    printable,
    render,
    value_of,
)
from mmedge_ros.report.page import capital

GRID, AXES = 'configurations.png', 'axes.png'
_AXIS_WORDS = {
    'camera_rate': 'camera rate [Hz]',
    'camera_level': 'camera level',
    'radar_rate': 'radar rate [Hz]',
    'radar_level': 'radar level',
}


def draw_grid(report: Mapping[str, Any]) -> FigureFile:
    """Draw accuracy over every configuration as maps of camera by radar."""
    figures = ('mean_iou', 'streaming_mean_iou')
    configurations = report['configurations']

    def maps(figure: Figure, rows: int, columns: int) -> None:
        panels = np.atleast_1d(figure.subplots(rows, columns, squeeze=False).ravel())
        for axes, name in zip(panels, figures, strict=True):
            _draw_map(axes, configurations, name)

    halves = [
        (c['mean_iou']['high'] - c['mean_iou']['low']) / 2
        for c in configurations
        if c['mean_iou']['high'] is not None
    ]
    noise = (
        f' (95 % intervals about ± {np.median(halves):.3f}, mostly shared by all cells)'
        if halves
        else ''
    )
    return FigureFile(
        GRID,
        render(lambda figure: maps(figure, 1, 2), 9.4, 4.3),
        f'Accuracy over {len(configurations)} configurations',
        'Each cell is one configuration over the whole set, rows what the camera does and columns '
        f'what the radar does{noise}.',
        'Two heat maps of accuracy, camera configurations by radar configurations',
        render(lambda figure: maps(figure, 2, 1), 4.6, 8.0),
    )


def _draw_map(axes: Axes, configurations: Sequence[Mapping[str, Any]], name: str) -> None:
    rows = list(dict.fromkeys(_label(c, 'camera') for c in configurations))
    columns = list(dict.fromkeys(_label(c, 'radar') for c in configurations))
    values = np.full((len(rows), len(columns)), np.nan)
    for c in configurations:
        place = rows.index(_label(c, 'camera')), columns.index(_label(c, 'radar'))
        values[place] = value_of(c[name])
    low, high = _limits(values)
    axes.imshow(values, cmap='Blues', aspect='auto', vmin=low, vmax=high)
    for (row, column), value in np.ndenumerate(values):
        if math.isfinite(value):
            colour = 'white' if value > 0.4 * low + 0.6 * high else INK
            text = f'{value:.3f}'.lstrip('0')
            axes.text(column, row, text, ha='center', va='center', fontsize=7.5, color=colour)
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha='right', rotation_mode='anchor')
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0, labelcolor=INK)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.invert_yaxis()
    axes.set_xlabel('radar')
    axes.set_ylabel('camera')
    axes.set_title(capital(figure_words(name)))


def _limits(values: FloatArray) -> tuple[float, float]:
    """Colours from somewhat below the least to the greatest; a flat map is not made of noise."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    room = max(high - low, 0.02)
    return low - 0.35 * room, max(high, low + room)


def _label(configuration: Mapping[str, Any], modality: str) -> str:
    level, rate = configuration[f'{modality}_level'], configuration[f'{modality}_rate']
    hertz = f'{rate:g} Hz'
    return hertz if level == 'any' else f'{printable(level, 12)}, {hertz}'


def draw_axes(report: Mapping[str, Any]) -> FigureFile:
    """Draw what each rate and level is worth, averaged over everything else."""
    axes_values = {axis: values for axis, values in report['axes'].items() if len(values) > 1}

    def panels(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for axes, (axis, values) in zip(drawn, axes_values.items(), strict=False):
            for shift, name, colour in (
                (-0.06, 'mean_iou', BLUE),
                (0.06, 'streaming_mean_iou', ORANGE),
            ):
                draw_points(
                    axes,
                    np.arange(len(values)) + shift,
                    [v[name] for v in values],
                    colour,
                    figure_words(name),
                    line=True,
                )
            names = [
                f'{v["value"]:g}' if 'rate' in axis else printable(v['value'], 12) for v in values
            ]
            label_columns(axes, names, 0.4)
            axes.set_title(capital(_AXIS_WORDS[axis]))
        for spare in drawn[len(axes_values) :]:
            spare.set_visible(False)
        handles, labels = drawn[0].get_legend_handles_labels()
        legend_outside(figure, 'upper right', handles=handles, labels=labels, ncol=2)

    count = max(len(axes_values), 1)
    return FigureFile(
        AXES,
        render(lambda figure: panels(figure, 1, count), 9.4, 2.9),
        'What a rate or a level is worth',
        'Averages over all configurations that share the rate or level, with 95 % intervals that '
        'move together in each panel.',
        'Accuracy by camera rate, camera level, radar rate and radar level',
        render(lambda figure: panels(figure, -(-count // 2), 2), 4.6, 2.6 * -(-count // 2)),
    )

"""What each policy costs, and what deciding costs (figure 14 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.lab.comparison.policy_marks import base_case, marks
from mmedge_ros.lab.comparison.report import figure_of
from mmedge_ros.lab.reporting.estimate_marks import value_of
from mmedge_ros.lab.reporting.figure_style import BLUE, INK, MUTED, VERMILION, FigureFile, render

COSTS = 'costs.png'
_COLOURS = {CAMERA: BLUE, RADAR: VERMILION}
# Of the paper, ms.
_PAPER = {'aggregation': 5.4, 'optimiser': 8.2, 'gate': 8.6}


def draw_costs(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw encoder calls and seconds of each policy, and overheads beside the paper's."""
    known = marks(report)
    names = [name for name in known if base_case(report, name) is not None]
    if not names:
        return None
    overheads = measured_overheads(report['machine'])
    labels = [known[name].label for name in names]

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        _bars(drawn[0], report, names, labels, 'encoder_calls_per_s', 'Encoder calls per second')
        _bars(
            drawn[1],
            report,
            names,
            labels if columns == 1 else [''] * len(labels),
            'encoder_busy',
            'Encoders at work, s per s',
        )
        if overheads:
            _overheads(drawn[2], overheads)
        handles = [
            entry
            for axes in (drawn[0], *([drawn[2]] if overheads else []))
            for entry in axes.get_legend_handles_labels()[0]
        ]
        figure.legend(handles=handles, loc='outside lower center', ncol=4 if columns > 1 else 2)

    count = 3 if overheads else 2
    height = 1.4 + 0.28 * len(names)
    return FigureFile(
        COSTS,
        render(lambda figure: draw(figure, 1, count), 9.4, height),
        'What it costs',
        'Left and middle: work of the encoders in the protocol and at the limits of the headline, '
        'by the service times of the profile. Right: what deciding costs on the machine that '
        'made this report, beside the paper’s on a Jetson Orin Nano.',
        'Encoder calls and seconds of every policy, and times of aggregation, optimiser and gate',
        render(lambda figure: draw(figure, count, 1), 4.6, count * height),
    )


def measured_overheads(machine: Mapping[str, Any] | None) -> dict[str, float]:
    """Return medians in ms of what the paper names, as far as they were timed."""
    if machine is None:
        return {}
    found = {
        'optimiser': machine['optimizer_us'][str(3**4)]['fresh']['p50'] / 1e3,
        'gate': machine['gate_us']['whole']['p50'] / 1e3,
    }
    if machine['aggregation_us'] is not None:
        steps = [times['p50'] for times in machine['aggregation_us'].values()]
        found = {'aggregation': sum(steps) / 1e3, **found}
    return found


def _bars(
    axes: Axes,
    report: Mapping[str, Any],
    names: Sequence[str],
    labels: Sequence[str],
    figure: str,
    title: str,
) -> None:
    rows = np.arange(len(names))
    begun = np.zeros(len(names))
    for modality in (CAMERA, RADAR):
        values = np.array(
            [
                value_of(figure_of(row, f'{figure}.{modality}'))
                if (row := base_case(report, name))
                else np.nan
                for name in names
            ]
        )
        axes.barh(rows, values, 0.62, left=begun, color=_COLOURS[modality], label=modality)
        begun = begun + np.nan_to_num(values)
    axes.set_yticks(rows, labels)
    axes.tick_params(axis='y', length=0, labelcolor=INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis='y', visible=False)
    axes.set_title(title)


def _overheads(axes: Axes, found: Mapping[str, float]) -> None:
    rows = np.arange(len(found))
    axes.barh(rows - 0.18, list(found.values()), 0.34, color=BLUE, label='this machine')
    axes.barh(rows + 0.18, [_PAPER[name] for name in found], 0.34, color='#b8c2cc', label='paper')
    for row, value in zip(rows, found.values(), strict=True):
        axes.annotate(
            f'{value:.2g} ms',
            (value, row - 0.18),
            xytext=(3, 0),
            textcoords='offset points',
            va='center',
            fontsize=8,
            color=MUTED,
        )
    axes.set_yticks(rows, list(found))
    axes.set_xscale('log')
    axes.tick_params(axis='y', length=0, labelcolor=INK)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.grid(axis='y', visible=False)
    axes.margins(x=0.25)
    axes.set_title('Deciding, ms (log.)')

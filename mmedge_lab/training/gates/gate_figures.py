"""Figures of the report of a gate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from mmedge_lab.training.gates.gate_report import BOTH, GATE, NAMES, REUSE, THINNED
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    FigureFile,
    legend_above,
    render,
)

CURVES = 'curves.png'
GATE_FIGURES = (CURVES,)
_COLOURS = {
    GATE: BLUE,
    BOTH: PURPLE,
    THINNED: GREEN,
    REUSE: ORANGE,
}
_PERCENT = 100.0


def draw_gate(report: Mapping[str, Any]) -> list[FigureFile]:
    """Draw what the gate and its rivals lose against what they save, from report.json."""
    rows = [*report['thresholds'], *report['rivals']]
    names = dict.fromkeys(row['name'] for row in rows)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhline(_PERCENT * report['delta'], ls=':', color=MUTED, lw=1.0)
        axes.axhline(0.0, color=MUTED, lw=0.6)
        for name in names:
            own = sorted(
                (row for row in rows if row['name'] == name), key=lambda row: row['saved']['value']
            )
            colour = _COLOURS.get(name, INK)
            places = [_PERCENT * row['saved']['value'] for row in own]
            losses = [_PERCENT * row['iou_loss']['value'] for row in own]
            axes.plot(places, losses, '.-', color=colour, lw=1.2, label=NAMES.get(name, name))
            for place, row in zip(places, own, strict=True):
                low, high = (_percent(row['iou_loss'][end]) for end in ('low', 'high'))
                axes.plot([place, place], [low, high], color=colour, lw=0.8, alpha=0.6)
        axes.set_xlim(left=0.0)
        axes.set_xlabel('camera encodes saved [%]')
        axes.set_ylabel('streaming IoU lost [points]')
        legend_above(axes, 'Loss over saving')

    return [
        FigureFile(
            CURVES,
            render(draw, 7.2, 4.4),
            'The gate beside other ways to save',
            'Down and to the right is better; bars are 95 % intervals, dotted what is promised.',
            'Streaming IoU lost over camera encodes saved, for the gate and its rivals',
        )
    ]


def _percent(value: float | None) -> float:
    return math.nan if value is None else _PERCENT * value

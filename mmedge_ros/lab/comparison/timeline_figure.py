"""One flight, window by window (figure 10 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.comparison.plan import OURS
from mmedge_ros.lab.comparison.policy_marks import few, marks
from mmedge_ros.lab.reporting.figure_style import (
    INK,
    MUTED,
    FigureFile,
    modality_colour,
    printable,
    render,
)

TIMELINE = 'timeline.png'
_MOST = 4
_BROAD = 6.0
_SMOOTHED = 5


def draw_timeline(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw accuracy, latency and configuration over one flight."""
    timeline = report['timeline']
    if timeline is None:
        return None
    names = [name for name in few(report) if name in timeline['policies']]
    names = [OURS] * (OURS in names) + [name for name in names if name != OURS][: _MOST - 1]
    if not names:
        return None
    known = marks(report)
    limit = report['plan']['headline']['limit_ms']

    def draw(figure: Figure) -> None:
        upper, middle, lower = figure.subplots(3, 1, sharex=True)
        for number, name in enumerate(names):
            above = len(names) - number + 2
            rows, mark = timeline['policies'][name], known[name]
            times = _values(rows['window_end_s'])
            quality = _smooth(_values(rows['streaming_mean_iou']))
            latency = 1e3 * _values(rows['latency'])
            upper.plot(
                times, quality, color=mark.colour, lw=mark.width, label=mark.label, zorder=above
            )
            middle.plot(times, latency, color=mark.colour, lw=mark.width, zorder=above)
        upper.set_title('Streaming IoU (mean over half a second)')
        upper.set_ylim(-0.02, 1.02)
        middle.axhline(limit, color=INK, lw=0.9, ls='--')
        middle.set_yscale('symlog', linthresh=10.0)
        middle.yaxis.set_major_formatter(ScalarFormatter())
        middle.set_title('Decision latency, ms')
        own = timeline['policies'][names[0]]
        _draw_rates(lower, own)
        lower.set_title(f'Rates of {known[names[0]].label}, Hz, and the camera’s level')
        lower.set_xlabel('time in the flight, s', color=MUTED)
        handles, labels = upper.get_legend_handles_labels()
        columns = 4 if figure.get_figwidth() > _BROAD else 2
        figure.legend(handles, labels, loc='outside upper center', ncol=columns)

    return FigureFile(
        TIMELINE,
        render(draw, 9.4, 5.8),
        f'One flight: {printable(timeline["flight"], 60)}',
        'The flight in which accuracy varies most, window by window. The dashed line is the '
        'latency limit; gaps are windows that were dropped.',
        'Streaming IoU, latency, rates and level over the time of a flight',
        render(draw, 4.6, 6.6),
    )


def _draw_rates(axes: Axes, rows: Mapping[str, Any]) -> None:
    times = _values(rows['window_end_s'])
    for number, modality in enumerate(('camera', 'radar')):
        axes.step(
            times,
            _values(rows[f'rate_{modality}']),
            where='post',
            color=modality_colour(modality, number),
            label=modality,
        )
    before = ''
    for time, level in zip(times, rows['camera_level'], strict=True):
        if level and level != before:
            axes.annotate(level, (time, 33.0), fontsize=8, color=MUTED)
            before = level
    axes.set_ylim(0.0, 38.0)
    axes.legend(loc='lower right', ncol=2)


def _values(values: Sequence[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _smooth(values: FloatArray) -> FloatArray:
    """Mean over neighbours that are known; NaN where there is none."""
    known = np.isfinite(values)
    kernel = np.ones(_SMOOTHED)
    middle = slice(_SMOOTHED // 2, _SMOOTHED // 2 + len(values))
    counts = np.convolve(known, kernel)[middle]
    sums = np.convolve(np.where(known, values, 0.0), kernel)[middle]
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(counts > 0, sums / counts, np.nan)

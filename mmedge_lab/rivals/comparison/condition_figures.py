"""Figures over conditions: what varies from flight to flight, and one flight over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from mmedge_lab.rivals.comparison.estimates import HALVES, P95, STREAMING
from mmedge_lab.rivals.comparison.plan import OURS
from mmedge_lab.rivals.comparison.policy_marks import Mark, base_case, few, marks
from mmedge_lab.rivals.comparison.report import FACTORS, figure_of
from mmedge_ros.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.report.figure_style import (
    INK,
    MUTED,
    FigureFile,
    label_columns,
    legend_outside,
    modality_colour,
    printable,
    render,
    render_over_time,
    value_of,
)
from mmedge_ros.report.readout import Series

ROBUSTNESS, TIMELINE = 'robustness.png', 'timeline.png'
_WIDE, _NARROW = 9.4, 4.6
_STREAMED, _LATENCY = 'streaming mean IoU', 'p95 latency [ms]'
_NO_ESTIMATE: Mapping[str, float | None] = {'value': None, 'low': None, 'high': None}
_MOST_IN_TIMELINE = 4
# Windows over which the timeline's streaming IoU is averaged.
_SMOOTHED = 5


class _Panel(NamedTuple):
    """Estimates of each policy at each of ``names``."""

    title: str
    names: list[str]
    series: Mapping[str, Sequence[Mapping[str, float | None]]]
    axis: str


def draw_robustness(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw streaming accuracy by factor, half and processor share (figure 12 of the paper)."""
    known = marks(report)
    panels = [panel for panel in _panels(report) if len(panel.names) > 1 and panel.series]
    if not panels:
        return None

    def draw(figure: Figure, columns: int) -> None:
        rows = -(-len(panels) // columns)
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(drawn, panels, strict=False):
            _draw_panel(axes, panel, known)
        for spare in drawn[len(panels) :]:
            spare.set_visible(False)
        handles, labels = drawn[0].get_legend_handles_labels()
        legend_outside(
            figure, 'lower center', handles=handles, labels=labels, ncol=3 if columns > 1 else 2
        )

    columns = 2 if len(panels) in (2, 4) else 3
    rows = -(-len(panels) // columns)
    return FigureFile(
        ROBUSTNESS,
        render(lambda figure: draw(figure, columns), _WIDE, 2.7 * rows + 0.6),
        'Robustness',
        'Streaming mean IoU by what varies from flight to flight, in the easy and the hard half '
        'of all windows (by what blocking makes of each alone) and with less processor, and last '
        'the p95 of the latency, all with 95 % intervals.',
        'Streaming mean IoU by distance, surroundings, light, half and share of the processor',
        render(lambda figure: draw(figure, 1), _NARROW, 2.4 * len(panels) + 0.8),
    )


def _panels(report: Mapping[str, Any]) -> list[_Panel]:
    rows = {name: row for name in few(report) if (row := base_case(report, name)) is not None}
    if not rows:
        return []
    panels = []
    for factor in FACTORS:
        strata = next(iter(rows.values()))['strata'].get(factor, {})
        series = {
            policy: [
                row['strata'].get(factor, {}).get(n, {}).get('streaming_mean_iou', _NO_ESTIMATE)
                for n in strata
            ]
            for policy, row in rows.items()
        }
        names = [f'{name}\n({entry["flights"]})' for name, entry in strata.items()]
        panels.append(_Panel(factor.capitalize(), names, series, _STREAMED))
    if report['halves'] is not None:
        series = {
            policy: [row['halves'][half]['streaming_mean_iou'] for half in HALVES]
            for policy, row in rows.items()
            if row['halves']
        }
        panels.append(_Panel('Half of the windows', list(HALVES), series, _STREAMED))
    shares = sorted(report['plan']['shares'], reverse=True)
    for figure, axis in ((STREAMING, _STREAMED), (P95, _LATENCY)):
        series = {policy: [_at(report, policy, s, figure) for s in shares] for policy in rows}
        names = [f'{share:g} %' for share in shares]
        panels.append(_Panel('Share of the processor', names, series, axis))
    return panels


def _at(
    report: Mapping[str, Any], policy: str, share: float, figure: str
) -> Mapping[str, float | None]:
    row = base_case(report, policy, share=share)
    return _NO_ESTIMATE if row is None else figure_of(row, figure)


def _draw_panel(axes: Axes, panel: _Panel, known: Mapping[str, Mark]) -> None:
    places = np.arange(len(panel.names))
    for number, (policy, estimates) in enumerate(panel.series.items()):
        mark = known[policy]
        shifted = places + 0.07 * (number - (len(panel.series) - 1) / 2)
        axes.plot(
            shifted,
            [value_of(estimate) for estimate in estimates],
            marker=mark.marker,
            color=mark.colour,
            label=mark.label,
            markersize=4.0 + mark.width / 2,
            lw=mark.width * 0.8,
        )
        for place, estimate in zip(shifted, estimates, strict=True):
            low, high = estimate['low'], estimate['high']
            if low is not None and high is not None:
                axes.plot([place, place], [low, high], color=mark.colour, lw=0.8, alpha=0.6)
    if panel.axis == _LATENCY:
        axes.set_yscale('symlog', linthresh=10.0)
        axes.yaxis.set_major_formatter(ScalarFormatter())
    names = ['\n'.join(printable(part, 14) for part in name.split('\n')) for name in panel.names]
    label_columns(axes, names, 0.5)
    axes.set_ylabel(panel.axis)
    axes.set_title(panel.title)


def draw_timeline(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw accuracy, latency and configuration over one flight (figure 10 of the paper)."""
    timeline = report['timeline']
    if timeline is None:
        return None
    names = [name for name in few(report) if name in timeline['policies']]
    names.sort(key=lambda name: name != OURS)
    names = names[:_MOST_IN_TIMELINE]
    if not names:
        return None
    known = marks(report)

    def draw(figure: Figure) -> None:
        upper, middle, lower = figure.subplots(3, 1, sharex=True)
        for number, name in enumerate(names):
            rows, mark = timeline['policies'][name], known[name]
            times = _values(rows['window_end_s'])
            style = {'color': mark.colour, 'lw': mark.width, 'zorder': len(names) - number + 2}
            upper.plot(
                times, _smooth(_values(rows['streaming_mean_iou'])), label=mark.label, **style
            )
            middle.plot(times, 1e3 * _values(rows['latency']), **style)
        upper.set_title('Streaming IoU (mean over half a second)')
        upper.set_ylabel('IoU')
        upper.set_ylim(-0.02, 1.02)
        middle.axhline(report['plan']['headline']['limit_ms'], color=INK, lw=0.9, ls='--')
        middle.set_yscale('symlog', linthresh=10.0)
        middle.yaxis.set_major_formatter(ScalarFormatter())
        middle.set_title('Decision latency')
        middle.set_ylabel('ms')
        middle.set_ylim(bottom=min(0.0, middle.dataLim.y0))
        _draw_rates(lower, timeline['policies'][names[0]])
        lower.set_title(f'Rates of {known[names[0]].label}, and the camera’s level')
        lower.set_ylabel('Hz')
        lower.set_xlabel('time in the flight [s]', color=MUTED)
        handles, labels = upper.get_legend_handles_labels()
        columns = 4 if figure.get_figwidth() > _NARROW else 2
        legend_outside(figure, 'upper center', handles=handles, labels=labels, ncol=columns)

    (wide, narrow), readout = render_over_time(
        draw, ((_WIDE, 5.8), (_NARROW, 6.6)), *_readings(timeline['policies'], names, known)
    )
    return FigureFile(
        TIMELINE,
        wide,
        f'One flight: {printable(timeline["flight"], 60)}',
        'The flight in which accuracy varies most, window by window: the dashed line is the '
        'latency limit, and gaps are windows that were dropped.',
        'Streaming IoU, latency, rates and level over the time of a flight',
        narrow,
        readout,
    )


def _readings(
    policies: Mapping[str, Any], names: Sequence[str], known: Mapping[str, Mark]
) -> tuple[FloatArray, list[Series]]:
    """Return the times of all policies, and IoU and latency of each at them."""
    own = {name: _values(policies[name]['window_end_s']) for name in names}
    times = np.unique(np.concatenate(list(own.values())))
    series = []
    for name in names:
        for figure, words, unit, scale in (
            ('streaming_mean_iou', 'IoU', '', 1.0),
            ('latency', 'latency', ' ms', 1e3),
        ):
            values = np.full(len(times), np.nan)
            values[np.searchsorted(times, own[name])] = scale * _values(policies[name][figure])
            series.append(Series(f'{known[name].label}: {words}', unit, values))
    return times, series


def _draw_rates(axes: Axes, rows: Mapping[str, Any]) -> None:
    times = _values(rows['window_end_s'])
    for number, modality in enumerate((CAMERA, RADAR)):
        rates = _values(rows[f'rate_{modality}'])
        colour = modality_colour(modality, number)
        axes.step(times, rates, where='post', color=colour, label=modality)
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

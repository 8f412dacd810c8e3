"""All figures of a run, and that of latency and age.

Nothing here ever draws a camera picture: people in it could be recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.accuracy import Accuracy
from mmedge_ros.report.accuracy_figures import ACCURACY_FIGURES, draw_nees, draw_stream
from mmedge_ros.report.configuration_figure import CONFIGURATIONS, draw_configurations
from mmedge_ros.report.figure_style import (
    GREEN,
    INK,
    MOST_POINTS,
    FigureFile,
    Series,
    draw_series,
    legend_above,
    limit_outliers,
    modality_colour,
    printable,
    render_over_time,
)
from mmedge_ros.report.latency_metrics import (
    LatencyMetrics,
    Quantiles,
    latency_metrics,
    modalities_of,
)
from mmedge_ros.report.page import milliseconds
from mmedge_ros.report.top_view import TopView
from mmedge_ros.report.track_figures import draw_ranges, draw_top_view
from mmedge_ros.report.trajectories import Trajectory, start_ns

LATENCY = 'latency.png'
FIGURE_NAMES = (LATENCY, CONFIGURATIONS, 'tracks.png', 'ranges.png', *ACCURACY_FIGURES)
_MOST_MODALITIES = 4


def draw_figures(
    record: RunRecord,
    tracks: Sequence[Trajectory],
    accuracy: Accuracy | None = None,
    view: TopView | None = None,
) -> list[FigureFile]:
    """Draw every figure for which the run holds something, in the order of `FIGURE_NAMES`."""
    drawn = [
        draw_latency(record),
        draw_configurations(record),
        draw_top_view(view),
        draw_ranges(record, tracks),
    ]
    if accuracy is not None:
        drawn += [draw_stream(record, accuracy), draw_nees(record, accuracy)]
    return [figure for figure in drawn if figure is not None]


class _Timeline(NamedTuple):
    """Latency and age of every decision in ms, by window end in s; ``warm`` are left out."""

    ends: FloatArray
    latencies: FloatArray
    ages: dict[str, FloatArray]
    warm: int
    metrics: LatencyMetrics
    deadline_ms: float

    def judged(self, values: FloatArray) -> FloatArray:
        """Values that set the scale: those after the warm-up, or all where there are none."""
        return values[self.warm :] if self.warm < len(values) else values


def draw_latency(record: RunRecord) -> FigureFile | None:
    """Draw latency and age of every decision over time; None without decisions."""
    if not record.decisions:
        return None
    timeline = _timeline(record)
    many = len(timeline.ends) > MOST_POINTS
    caption = 'Bands hold the decisions of each short stretch' if many else 'Points are decisions'
    caption += (
        ': how long after the end of its window each was published, and how old its newest '
        'reading was by then; solid lines are medians, dashed lines 95th percentiles.'
    )
    if timeline.warm:
        caption += f' The shaded warm-up ({timeline.warm} decisions) is left out of both.'
    (wide, narrow), readout = render_over_time(
        lambda figure: _draw_timeline(figure, timeline),
        ((9.4, 4.6), (4.3, 5.4)),
        timeline.ends,
        [
            Series('latency', ' ms', timeline.latencies),
            *(Series(f'{name[:20]} age', ' ms', ages) for name, ages in timeline.ages.items()),
        ],
    )
    return FigureFile(
        LATENCY,
        wide,
        'Latency and age',
        caption,
        'Two charts over time: latency of each decision, and age of each modality',
        narrow,
        readout,
    )


def _timeline(record: RunRecord) -> _Timeline:
    metrics = latency_metrics(record)
    decisions, zero_ns = record.decisions, start_ns(record)
    ages = {
        modality: np.array([d.ages.get(modality, np.nan) * 1e3 for d in decisions])
        for modality in modalities_of(record)
    }
    used = [modality for modality in ages if np.isfinite(ages[modality]).any()]
    return _Timeline(
        np.array([(d.window_end_ns - zero_ns) / NS_PER_S for d in decisions]),
        np.array([d.latency * 1e3 for d in decisions]),
        {modality: ages[modality] for modality in used[:_MOST_MODALITIES]},
        len(decisions) - metrics.decisions,
        metrics,
        record.deadline * 1e3,
    )


def _draw_timeline(figure: Figure, timeline: _Timeline) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    draw_series(upper, timeline.ends, timeline.latencies, GREEN)
    _mark(upper, timeline.metrics.latency_ms, GREEN, '')
    _mark_deadline(upper, timeline)
    for place, (modality, ages) in enumerate(timeline.ages.items()):
        colour = modality_colour(modality, place)
        draw_series(lower, timeline.ends, ages, colour)
        _mark(lower, timeline.metrics.age_ms[modality], colour, f'{printable(modality, 12)} ')
    judged = [_while_heard(timeline.judged(ages)) for ages in timeline.ages.values()]
    drawn = np.concatenate([*timeline.ages.values(), [0.0]])
    limit_outliers(lower, np.concatenate([*judged, [0.0]]), 0.0, 'ms', drawn)
    for axes in (upper, lower):
        _shade_warmup(axes, timeline, 'warm-up' if axes is upper else '')
        axes.set_xlim(timeline.ends.min() - 0.05, timeline.ends.max() + 0.05)
    upper.set_ylabel('latency [ms]')
    lower.set_ylabel('age [ms]')
    lower.set_xlabel('time since the start of the recording [s]')
    legend_above(upper, 'Latency: publication − window end')
    legend_above(lower, 'Age: publication − stamp of the newest unit used')


def _while_heard(ages: FloatArray) -> FloatArray:
    """Leave out the ages of a sensor that fell silent: they grow and hide all others."""
    known = ages[np.isfinite(ages)]
    return known[known <= 10.0 * np.median(known)] if len(known) else known


def _mark(axes: Axes, summary: Quantiles, colour: str, name: str) -> None:
    """Draw median and 95th percentile as lines, with their values in one entry of the legend."""
    if not np.isfinite(summary.p50):
        return
    label = f'{name}median {milliseconds(summary.p50)}, p95 {milliseconds(summary.p95)}'
    axes.axhline(summary.p50, color=colour, linewidth=1.3, label=label)
    axes.axhline(summary.p95, color=colour, linewidth=1.3, linestyle=(0, (4, 2)))


def _mark_deadline(axes: Axes, timeline: _Timeline) -> None:
    # A deadline far above every value would press them flat on the axis.
    latencies, deadline_ms = timeline.judged(timeline.latencies), timeline.deadline_ms
    visible = deadline_ms <= 8.0 * max(float(np.quantile(latencies, 0.99)), 1.0)
    label = f'deadline {milliseconds(deadline_ms)}' + ('' if visible else ' (above)')
    axes.axhline(deadline_ms, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)), label=label)
    limit_outliers(axes, latencies, deadline_ms if visible else 0.0, 'ms')


def _shade_warmup(axes: Axes, timeline: _Timeline, label: str) -> None:
    if timeline.warm:
        first, last = float(timeline.ends[0]), float(timeline.ends[timeline.warm - 1])
        axes.axvspan(first - 1.0, last, color='#dfe4e9', linewidth=0, label=label)

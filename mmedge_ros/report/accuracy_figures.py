"""Figures of a run beside the ground truth of its recording."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.accuracy import Accuracy
from mmedge_ros.report.accuracy_samples import PersonSamples
from mmedge_ros.report.consistency import average_bounds, consistency_of
from mmedge_ros.report.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    FigureFile,
    Series,
    legend_above,
    render_over_time,
)
from mmedge_ros.report.trajectories import start_ns

STREAM, NEES = 'accuracy.png', 'nees.png'
ACCURACY_FIGURES = (STREAM, NEES)
_MOST_BINS = 300
_FINEST_BIN = 0.1
_DOF = 4


class _Curve(NamedTuple):
    """Means over short stretches of time: their middles in s, and the means."""

    times: FloatArray
    means: FloatArray


def draw_stream(record: RunRecord, accuracy: Accuracy) -> FigureFile | None:
    """Draw the streaming IoU over time, and what latency takes from it."""
    if not len(accuracy.stream.ids):
        return None
    zero_ns = start_ns(record)
    published = _curve(accuracy.stream, zero_ns)
    at_once = _curve(accuracy.at_once, zero_ns)
    ages = _ages(record, zero_ns)

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        upper.plot(
            *at_once,
            color=GREEN,
            linewidth=1.0,
            label=f'if published at its state time, mean {accuracy.at_once.mean_iou:.3f}',
        )
        upper.plot(
            *published,
            color=BLUE,
            linewidth=1.5,
            label=f'as published, mean {accuracy.stream.mean_iou:.3f}',
        )
        if len(at_once.times) == len(published.times):
            upper.fill_between(
                published.times, published.means, at_once.means, color=ORANGE, alpha=0.35, lw=0
            )
        upper.set_ylim(0.0, 1.02)
        upper.set_ylabel('IoU')
        legend_above(upper, 'Streaming IoU: the latest result, at every moment')
        if len(ages):
            lower.fill_between(
                ages[:, 0], ages[:, 1], ages[:, 2], color=BLUE, alpha=0.3, linewidth=0
            )
            lower.set_ylim(0.0, max(1.15 * float(np.quantile(ages[:, 2], 0.99)), 1.0))
        lower.set_ylabel('age [ms]')
        lower.set_xlabel('time since the start of the recording [s]')
        lower.set_title('How old the latest result was')
        lower.set_xlim(published.times.min() - 0.05, published.times.max() + 0.05)

    series = [Series('streaming IoU', '', published.means)]
    if len(at_once.times) == len(published.times):
        series.append(Series('without latency', '', at_once.means))
    (wide, narrow), readout = render_over_time(
        draw, ((9.4, 4.8), (4.3, 5.4)), published.times, series
    )
    return FigureFile(
        STREAM,
        wide,
        'Streaming accuracy',
        'Every 10 ms the latest published result, its boxes moved on by their own velocities, is '
        'compared with the truth of that moment (0 for missed people); the orange between the '
        'lines is what latency costs.',
        'Two charts over time: streaming IoU with and without latency, and the age of the '
        'latest result',
        narrow,
        readout,
    )


def _curve(samples: PersonSamples, zero_ns: int) -> _Curve:
    times = (samples.stamps_ns - zero_ns) / NS_PER_S
    first, last = float(times.min()), float(times.max())
    width = max((last - first) / _MOST_BINS, _FINEST_BIN)
    places = ((times - first) / width).astype(int)
    counts = np.bincount(places)
    with np.errstate(invalid='ignore'):  # NaN where no person was visible: the line is cut
        means = np.bincount(places, samples.overlaps) / counts
    middles = first + width * (np.arange(len(counts), dtype=np.float64) + 0.5)
    return _Curve(np.asarray(middles, np.float64), means)


def _ages(record: RunRecord, zero_ns: int) -> FloatArray:
    """Age (K, 3) of the latest result: time in s, when it came and when the next came, ms."""
    results = sorted([*record.decisions, *record.updates], key=lambda r: r.published_ns)
    rows = [
        (
            (now.published_ns - zero_ns) / NS_PER_S,
            (now.published_ns - now.state_ns) / 1e6,
            (after.published_ns - now.state_ns) / 1e6,
        )
        for now, after in pairwise(results)
    ]
    step = max(len(rows) // (4 * _MOST_BINS), 1)
    return np.array(rows[::step], np.float64).reshape(-1, 3)


def draw_nees(record: RunRecord, accuracy: Accuracy) -> FigureFile | None:
    """Draw whether errors are as large as the tracks' covariances say; None without any."""
    errors = accuracy.errors
    usable = np.isfinite(errors.nees) & (errors.nees > 0.0)
    if not usable.any():
        return None
    consistency = consistency_of(accuracy.independent_errors.nees, _DOF)
    times = (errors.stamps_ns - start_ns(record)) / NS_PER_S
    seconds = np.floor(times[usable])
    middles = np.unique(seconds)
    averages = np.array([errors.nees[usable][seconds == second].mean() for second in middles])
    low, high = average_bounds(_DOF, 1)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        axes.axhspan(low, high, color=GREEN, alpha=0.12, linewidth=0, label='95 % of all')
        axes.axhspan(*consistency.bounds, color=GREEN, alpha=0.4, linewidth=0, label='bounds')
        axes.plot(times[usable], errors.nees[usable], '.', color=MUTED, markersize=2.5, alpha=0.4)
        axes.plot(middles + 0.5, averages, '-', color=BLUE, linewidth=1.2, label='per second')
        axes.axhline(
            consistency.mean, color=INK, linewidth=1.3, label=f'average {consistency.mean:.2f}'
        )
        axes.set_yscale('log')
        axes.set_ylim(0.02, max(100.0, 1.5 * float(errors.nees[usable].max())))
        axes.set_xlabel('time since the start of the recording [s]')
        axes.set_ylabel('NEES')
        legend_above(axes, 'NEES of horizontal position and velocity')

    verdict = 'within' if consistency.in_bounds else 'outside'
    (png,), readout = render_over_time(
        draw, ((6.2, 3.8),), middles + 0.5, [Series('NEES per second', '', averages)]
    )
    return FigureFile(
        NEES,
        png,
        'Covariance consistency (NEES)',
        f'The squared error of tracks in units of their own uncertainty: {_DOF} where that is '
        f'right, more where it is too small; the average of {consistency.samples} independent '
        f'samples is {consistency.mean:.2f}, {verdict} the bounds {consistency.bounds[0]:.2f} to '
        f'{consistency.bounds[1]:.2f} for so many.',
        'Chart of the normalised estimation error squared over time with its bounds',
        readout=readout,
    )

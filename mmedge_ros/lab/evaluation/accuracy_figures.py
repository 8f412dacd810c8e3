"""Figures of a run beside the ground truth of its recording."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.lab.evaluation.accuracy import Accuracy
from mmedge_ros.lab.evaluation.accuracy_samples import PersonSamples
from mmedge_ros.lab.evaluation.consistency import average_bounds, consistency_of
from mmedge_ros.lab.evaluation.track_figures import (
    draw_sensor,
    frame_around,
    ground_axes,
    sensor_way,
)
from mmedge_ros.lab.evaluation.trajectories import start_ns
from mmedge_ros.lab.evaluation.truth_alignment import Alignment
from mmedge_ros.lab.evaluation.truth_matching import counted_people
from mmedge_ros.lab.reporting.figure_style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SKY,
    VERMILION,
    FigureFile,
    label_columns,
    legend_above,
    printable,
    render,
)
from mmedge_ros.records.ground_truth import PERSON
from mmedge_ros.records.run_record import RunRecord

STREAM, STRATA, TRUTH, NEES = 'accuracy.png', 'strata.png', 'truth.png', 'nees.png'
ACCURACY_FIGURES = (STREAM, STRATA, TRUTH, NEES)
_MOST_BINS = 300
_FINEST_BIN = 0.1
_DOF = 4
_MOST_DECISIONS = 600
_FARTHEST = 1000.0

# Way of an object or a track: places (K, 2) as y and x, NaN where a line is broken.
Ways = dict[tuple[int, str], list[FloatArray]]


def draw_accuracy(record: RunRecord, accuracy: Accuracy | None) -> list[FigureFile]:
    """Draw every figure for which there is something to compare, in their order."""
    if accuracy is None:
        return []
    drawn = [
        draw_stream(record, accuracy),
        draw_strata(accuracy),
        draw_truth(record),
        draw_nees(record, accuracy),
    ]
    return [figure for figure in drawn if figure is not None]


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

    return FigureFile(
        STREAM,
        render(draw, 9.4, 4.8),
        'Streaming accuracy',
        'Every 10 ms the latest published result, its boxes moved on by their own velocities, is '
        'compared with the truth of that moment; missed people count as zero, and so do all '
        'people before the first result. The green line '
        'is what the same results were worth had each been known at its state time: the orange '
        'between them is what latency costs.',
        'Two charts over time: streaming IoU with and without latency, and the age of the '
        'latest result',
        render(draw, 4.3, 5.4),
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
    decisions = sorted(record.decisions, key=lambda decision: decision.published_ns)
    rows = [
        (
            (now.published_ns - zero_ns) / NS_PER_S,
            (now.published_ns - now.state_ns) / 1e6,
            (after.published_ns - now.state_ns) / 1e6,
        )
        for now, after in pairwise(decisions)
    ]
    step = max(len(rows) // (4 * _MOST_BINS), 1)
    return np.array(rows[::step], np.float64).reshape(-1, 3)


def draw_strata(accuracy: Accuracy) -> FigureFile | None:
    """Draw recall and mean IoU by size, range and occlusion; None without visible people."""
    report = accuracy.report()
    if not len(accuracy.states.ids):
        return None
    panels = {
        'By height in the picture [px]': report['by_size'],
        'By range [m]': report['by_range'],
        'By what is to be seen': report['by_occlusion'],
    }

    def broad(figure: Figure) -> None:
        row = figure.subplots(1, 3, sharey=True, width_ratios=(4, 4, 2.4))
        for axes, (title, strata) in zip(row, panels.items(), strict=True):
            _draw_bars(axes, title, strata)
        row[0].set_ylabel('share')
        figure.legend(*row[0].get_legend_handles_labels(), loc='outside upper right', ncol=3)

    def narrow(figure: Figure) -> None:
        column = figure.subplots(3, 1)
        for axes, (title, strata) in zip(column, panels.items(), strict=True):
            _draw_bars(axes, title, strata)
            axes.set_ylabel('share')
        figure.legend(*column[0].get_legend_handles_labels(), loc='outside upper center', ncol=3)

    return FigureFile(
        STRATA,
        render(broad, 9.4, 3.3),
        'Detection by stratum',
        'Recall is the share of visible people, over all decisions, met by a box with an IoU of '
        'at least 0.5; the mean IoU counts missed people as zero. The number of people (each '
        'once per decision) stands below. Partly visible people are hidden, or cut by the edge '
        'of the picture, by 10 to 50 %.',
        'Bars of recall, mean IoU and streaming IoU by size, range and occlusion',
        render(narrow, 4.3, 7.2),
    )


def _draw_bars(axes: Axes, title: str, strata: Mapping[str, Mapping[str, Any]]) -> None:
    rows = np.arange(len(strata))
    for place, (key, label, colour) in enumerate(
        (
            ('recall', 'recall', BLUE),
            ('mean_iou', 'mean IoU', SKY),
            ('streaming_mean_iou', 'streaming mean IoU', ORANGE),
        )
    ):
        values = [stratum[key] for stratum in strata.values()]
        axes.bar(rows + 0.27 * (place - 1), values, 0.25, color=colour, label=label)
    label_columns(axes, [f'{printable(name)}\n({s["people"]})' for name, s in strata.items()])
    axes.set_ylim(0.0, 1.02)
    axes.set_title(title)


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
    return FigureFile(
        NEES,
        render(draw, 4.5, 4.5),
        'Covariance consistency (NEES)',
        'The squared error of a track in units of its own uncertainty. The average of a '
        f'consistent tracker is {_DOF}; above, it is overconfident, below, underconfident. '
        f'The average of the {consistency.samples} samples that count as '
        f'independent (one per track and second) is {consistency.mean:.2f}, {verdict} the bounds '
        f'{consistency.bounds[0]:.2f} to {consistency.bounds[1]:.2f} for so many.',
        'Chart of the normalised estimation error squared over time with its bounds',
    )


def draw_truth(record: RunRecord) -> FigureFile | None:
    """Draw the ways of everything true and of the tracks from above; None without any."""
    true, tracked, seen = _ground_ways(record)
    if not true or not tracked:
        return None
    way = sensor_way(record)
    low, high = frame_around(np.concatenate([*seen, *_places(tracked)]), way)

    def draw(figure: Figure) -> None:
        axes = ground_axes(figure, low, high, 'Truth and tracks from above')
        for (_, label), places in true.items():
            line = np.array(places)
            is_person = label == PERSON
            axes.plot(
                line[:, 0],
                line[:, 1],
                color=INK if is_person else MUTED,
                linewidth=3.2 if is_person else 1.6,
                linestyle='-' if is_person else '--',
                alpha=0.35,
                solid_capstyle='round',
            )
        for (_, label), places in tracked.items():
            line = np.array(places)
            colour = BLUE if label == PERSON else VERMILION
            axes.plot(line[:, 0], line[:, 1], color=colour, linewidth=1.2)
        draw_sensor(axes, way)
        axes.plot([], [], color=INK, linewidth=3.2, alpha=0.35, label='true person')
        axes.plot([], [], '--', color=MUTED, linewidth=1.6, alpha=0.6, label='other')
        axes.plot([], [], color=BLUE, linewidth=1.2, label='track')
        axes.plot([], [], color=VERMILION, linewidth=1.2, label='radar only')
        axes.legend(loc='best', fontsize=7.5, frameon=True, framealpha=0.8, edgecolor='none')

    return FigureFile(
        TRUTH,
        render(draw, 4.5, 4.5),
        'Where people were, and where tracks were',
        'Broad grey lines are the true ways of people, dashed ones those of cyclists, cars and '
        'dogs; thin blue lines are the tracks of people, thin red ones tracks of the radar alone. '
        'The triangle is the drone at the end of its dotted way. Everything is drawn in the '
        'frame of the tracks, into which the truth is carried by the pose of the drone.',
        f'Map of {len(true)} true ways and {len(tracked)} tracks',
    )


def _ground_ways(record: RunRecord) -> tuple[Ways, Ways, list[FloatArray]]:
    """Return true ways, ways of tracks, and the places (K, 2) of people when visible."""
    true: Ways = {}
    tracked: Ways = {}
    seen: list[FloatArray] = []
    truth = record.truth
    if truth is None:
        return true, tracked, seen
    alignment = Alignment(record, truth)
    for decision in record.decisions[:: max(len(record.decisions) // _MOST_DECISIONS, 1)]:
        frame = truth.frame_at(decision.state_ns)
        if frame is None or decision.frame_id != record.frame_id:
            continue
        aligned = alignment.carry(frame, decision.state_ns, decision.frame_id)
        if aligned is None:
            continue
        places = aligned.positions[:, 1::-1]
        seen.append(places[counted_people(frame)])
        for number, label, place in zip(frame.ids, frame.labels, places, strict=True):
            true.setdefault((int(number), str(label)), []).append(place)
        for track in decision.tracks:
            place = np.asarray(track.position, np.float64)[1::-1]
            if (np.abs(place) < _FARTHEST).all():
                tracked.setdefault((track.id, _kind(track.label)), []).append(place)
    return true, tracked, seen


def _kind(label: str) -> str:
    return PERSON if label == PERSON else ''


def _places(ways: Mapping[tuple[int, str], list[FloatArray]]) -> list[FloatArray]:
    return [np.array(places) for places in ways.values()]

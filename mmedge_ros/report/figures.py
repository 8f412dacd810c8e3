"""All figures of a run. Those over time are here; from above it is drawn in `top_view`.

Nothing here ever draws a camera picture: people in it could be recognised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Configuration, FloatArray, ModalityConfiguration
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.report.accuracy import NEES_DOF, Accuracy
from mmedge_ros.report.accuracy_samples import PersonSamples, average_bounds
from mmedge_ros.report.figure_style import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    INK,
    LINES,
    MOST_POINTS,
    MUTED,
    ORANGE,
    PURPLE,
    VERMILION,
    FigureFile,
    Series,
    Words,
    draw_series,
    figure_over_time,
    legend_above,
    limit_outliers,
    modality_colour,
    printable,
)
from mmedge_ros.report.page import milliseconds
from mmedge_ros.report.run_metrics import (
    Quantiles,
    computer_watts,
    latency_metrics,
    modalities_of,
    watts_over_time,
)
from mmedge_ros.report.top_view import FARTHEST, TRACKS, TopView, draw_top_view
from mmedge_ros.report.trajectories import Trajectory, configurations_in_order, start_ns
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters

LATENCY, CONFIGURATIONS, RANGES = 'latency.png', 'configurations.png', 'ranges.png'
STREAM, NEES = 'accuracy.png', 'nees.png'
FIGURE_NAMES = (LATENCY, CONFIGURATIONS, TRACKS, RANGES, STREAM, NEES)
_WIDE = 9.4
_NARROW = 4.3
_TIME = 'time since the start of the recording [s]'
_MOST_MODALITIES = 4
# Of the longest name of a level, as a share of the chart.
_NAME_WIDTH = 0.07
# Of the chart of distances: tracks with a colour, and points of each.
_MOST_TRACKS, _MOST_PLACES = 12, 400
# Of the chart of accuracy: stretches of time, and the shortest, s.
_MOST_BINS, _FINEST_BIN = 300, 0.1


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


def draw_latency(record: RunRecord) -> FigureFile | None:
    """Draw latency and age of every decision over time; None without decisions."""
    decisions = record.decisions
    if not decisions:
        return None
    metrics = latency_metrics(record)
    warm, deadline_ms = len(decisions) - metrics.decisions, record.deadline * 1e3
    ends = _window_ends(record)
    latencies = np.array([d.latency * 1e3 for d in decisions])
    known = {
        modality: np.array([d.ages.get(modality, np.nan) * 1e3 for d in decisions])
        for modality in modalities_of(record)
    }
    used = [modality for modality in known if np.isfinite(known[modality]).any()]
    ages = {modality: known[modality] for modality in used[:_MOST_MODALITIES]}

    def judged(values: FloatArray) -> FloatArray:
        """Values that set the scale: those after the warm-up, or all where there are none."""
        return values[warm:] if warm < len(values) else values

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True)
        draw_series(upper, ends, latencies, GREEN)
        _mark(upper, metrics.latency_ms, GREEN, '')
        _mark_deadline(upper, judged(latencies), deadline_ms)
        for place, (modality, values) in enumerate(ages.items()):
            colour = modality_colour(modality, place)
            draw_series(lower, ends, values, colour)
            _mark(lower, metrics.age_ms[modality], colour, f'{printable(modality, 12)} ')
        heard = [_while_heard(judged(values)) for values in ages.values()]
        drawn = np.concatenate([*ages.values(), [0.0]])
        limit_outliers(lower, np.concatenate([*heard, [0.0]]), 0.0, 'ms', drawn)
        for axes in (upper, lower):
            if warm:
                first, last = float(ends[0]), float(ends[warm - 1])
                label = 'warm-up' if axes is upper else ''
                axes.axvspan(first - 1.0, last, color='#dfe4e9', linewidth=0, label=label)
            axes.set_xlim(ends.min() - 0.05, ends.max() + 0.05)
        upper.set_ylabel('latency [ms]')
        lower.set(ylabel='age [ms]', xlabel=_TIME)
        legend_above(upper, 'Latency: publication − window end')
        legend_above(lower, 'Age: publication − stamp of the newest unit used')

    many = len(ends) > MOST_POINTS
    caption = 'Bands hold the decisions of each short stretch' if many else 'Points are decisions'
    caption += (
        ': how long after the end of its window each was published, and how old its newest '
        'reading was by then; solid lines are medians, dashed lines 95th percentiles.'
    )
    if warm:
        caption += f' The shaded warm-up ({warm} decisions) is left out of both.'
    words = Words(
        LATENCY,
        'Latency and age',
        caption,
        'Two charts over time: latency of each decision, and age of each modality',
    )
    series = [Series(f'{name[:20]} age', ' ms', values) for name, values in ages.items()]
    series = [Series('latency', ' ms', latencies), *series]
    return figure_over_time(words, draw, ((_WIDE, 4.6), (_NARROW, 5.4)), ends, series)


def _window_ends(record: RunRecord) -> FloatArray:
    """Ends (N,) of the windows of decisions, s since the start."""
    zero_ns = start_ns(record)
    return np.array([(d.window_end_ns - zero_ns) / NS_PER_S for d in record.decisions])


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


def _mark_deadline(axes: Axes, latencies: FloatArray, deadline_ms: float) -> None:
    # A deadline far above every value would press them flat on the axis.
    visible = deadline_ms <= 8.0 * max(float(np.quantile(latencies, 0.99)), 1.0)
    label = f'deadline {milliseconds(deadline_ms)}' + ('' if visible else ' (above)')
    axes.axhline(deadline_ms, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)), label=label)
    limit_outliers(axes, latencies, deadline_ms if visible else 0.0, 'ms')


def draw_configurations(record: RunRecord) -> FigureFile | None:
    """Draw limit, latency, configuration and supply over time; None without configurations."""
    if not record.configurations or not record.decisions:
        return None
    zero_ns, ends = start_ns(record), _window_ends(record)
    course = configurations_in_order(record)
    begins_ns = np.array([configuration.effective_from_ns for configuration in course])
    begins = np.array([(begin_ns - zero_ns) / NS_PER_S for begin_ns in begins_ns.tolist()])
    last = float(ends.max())
    times = np.clip(np.append(begins, last), 0.0, last)
    latencies = np.array([1e3 * decision.latency for decision in record.decisions])
    limits = np.array([1e3 * configuration.latency_limit for configuration in course])
    predicted = np.array([1e3 * configuration.predicted_latency for configuration in course])
    finite = limits[np.isfinite(limits)]

    def draw(figure: Figure) -> None:
        upper, middle, lower, lowest = figure.subplots(4, 1, sharex=True)
        draw_series(upper, ends, latencies, GREEN)
        _draw_steps(upper, times, limits, INK, 'limit', LINES[1])
        _draw_steps(upper, times, predicted, ORANGE, 'predicted, 95 %')
        limit_outliers(upper, latencies, float(finite.max()) if len(finite) else 0.0, 'ms')
        upper.set_ylabel('latency [ms]')
        legend_above(upper, 'Latency')
        draw_course(middle, times, course)
        _draw_states(lower, record, zero_ns)
        _draw_power(lowest, record, zero_ns)
        lowest.set_xlabel(_TIME)

    ends_ns = np.array([decision.window_end_ns for decision in record.decisions])
    places = np.maximum(np.searchsorted(begins_ns, ends_ns, 'right') - 1, 0)
    series = [Series('latency', ' ms', latencies), Series('limit', ' ms', limits[places])]
    for modality in _modalities(course):
        rates = np.array([configuration.of(modality).rate for configuration in course])
        series.append(Series(f'{modality[:20]} rate', ' Hz', rates[places]))
    words = Words(
        CONFIGURATIONS,
        'Configurations',
        'Top: latency of each decision beside the limit and the prediction for 95 % of them; '
        'then rate and level of each modality; what the monitor saw; and power by part: work by a '
        'stated model, beside what was measured.',
        'Four charts over time: latency with its limit and prediction; rates and levels; load and '
        'battery voltage; power by part and battery current',
    )
    return figure_over_time(words, draw, ((_WIDE, 7.6), (_NARROW, 8.6)), ends, series)


def draw_course(axes: Axes, times: FloatArray, course: Sequence[Configuration]) -> None:
    """Draw the rate of each modality over time, and name its level where it changes."""
    for place, modality in enumerate(_modalities(course)):
        parts = [c.of(modality) for c in course]
        colour = modality_colour(modality, place)
        rates = np.array([part.rate for part in parts])
        _draw_steps(axes, times, rates, colour, printable(modality, 12))
        name_levels(axes, times, [(p.rate, _level_words(p)) for p in parts], colour)
    axes.set_ylabel('rate [Hz]')
    axes.set_ylim(bottom=0.0)
    legend_above(axes, 'Configuration')


def _level_words(part: ModalityConfiguration) -> str:
    """Return the level, and which share of the units is encoded: ``medium 1/3``."""
    return part.level if part.reuse <= 1 else f'{part.level} 1/{part.reuse}'.lstrip()


def _modalities(course: Sequence[Configuration]) -> list[str]:
    found = dict.fromkeys(p.modality for c in course for p in c.modalities)
    return list(found)[:_MOST_MODALITIES]


def _draw_steps(
    axes: Axes, times: FloatArray, values: FloatArray, colour: str, label: str, line: str = '-'
) -> None:
    """Draw values that each hold until the next; ``times`` has one more than ``values``."""
    if np.isfinite(values).any():
        held = np.append(values, values[-1])
        axes.step(times, held, line, where='post', color=colour, label=label, linewidth=1.2)


def name_levels(
    axes: Axes, times: FloatArray, parts: Sequence[tuple[float, str]], colour: str
) -> None:
    """Write a level where it takes the place of another and lasts as long as its name is wide."""
    changes: list[tuple[float, float, str]] = []
    for time, (rate, level) in zip(times.tolist(), parts, strict=False):
        if level and (not changes or level != changes[-1][2]):
            changes.append((time, rate, level))
    widest = _NAME_WIDTH * float(times[-1] - times[0])
    for (time, rate, level), (end, _, _) in pairwise([*changes, (math.inf, 0.0, '')]):
        if end - time >= widest:
            axes.annotate(
                printable(level, 10),
                (time, rate),
                xytext=(2, 3),
                textcoords='offset points',
                fontsize=7.5,
                color=colour,
            )


def _draw_states(axes: Axes, record: RunRecord, zero_ns: int) -> None:
    """Draw load of processor and GPU and battery voltage by the monitor."""
    states = [state for _, state in record.states]
    times = np.array([(stamp_ns - zero_ns) / NS_PER_S for stamp_ns, _ in record.states])
    loads = np.array([state.mean_cpu for state in states])
    has_loads = _draw_known(axes, times, loads, BLUE, 'processor, %')
    _draw_known(axes, times, np.array([state.gpu for state in states]), ORANGE, 'GPU, %')
    axes.set_ylim(0.0, 100.0)
    axes.set_ylabel('load [%]')
    volts = np.array([state.voltage for state in states])
    if not _draw_beside(axes, times, volts, 'battery [V]') and not has_loads:
        axes.annotate('nothing known', (0.5, 0.5), xycoords='axes fraction', ha='center')
    legend_above(axes, 'System')


def _draw_power(axes: Axes, record: RunRecord, zero_ns: int) -> None:
    """Draw the power of each part by the model, what was measured, and the battery's current."""
    middles, watts = watts_over_time(record, zero_ns)
    for part, colour in zip(sorted(watts), (BLUE, GREEN, ORANGE, PURPLE), strict=False):
        axes.plot(middles, watts[part], color=colour, label=f'{part}, model', linewidth=1.0)
    times = np.array([(stamp_ns - zero_ns) / NS_PER_S for stamp_ns, _ in record.states])
    measured = np.array([computer_watts(state) for _, state in record.states])
    _draw_known(axes, times, measured, INK, 'computer, measured')
    axes.set_ylabel('power [W]')
    axes.set_ylim(bottom=0.0)
    amperes = np.array([state.current for _, state in record.states])
    _draw_beside(axes, times, amperes, 'battery [A]')
    legend_above(axes, 'Power')


def _draw_known(
    axes: Axes, times: FloatArray, values: FloatArray, colour: str, label: str
) -> bool:
    """Draw values where there are any; return whether there are."""
    is_known = bool(np.isfinite(values).any())
    if is_known:
        axes.plot(times, values, color=colour, label=label, linewidth=1.0)
    return is_known


def _draw_beside(axes: Axes, times: FloatArray, values: FloatArray, label: str) -> bool:
    """Draw known values of the battery along an axis of their own to the right."""
    if not np.isfinite(values).any():
        return False
    right = axes.twinx()
    right.plot(times, values, color=VERMILION, linewidth=1.0)
    right.set_ylabel(label, color=VERMILION)
    right.grid(visible=False)
    axes.plot([], [], color=VERMILION, label=label.replace(' [', ', ').rstrip(']'))
    return True


class _Line(NamedTuple):
    """A track with a colour: distances (N,) at times (N,) and its places worth drawing."""

    track: Trajectory
    distances: FloatArray
    places: NDArray[np.intp]
    colour: str
    style: str


def draw_ranges(record: RunRecord, tracks: Sequence[Trajectory]) -> FigureFile | None:
    """Draw the distance of each track over time beside the one its box's height gives."""
    camera = record.camera if record.camera_pose is not None else None
    every = [
        _Line(track, track.ranges if camera is None else track.depths, _usable(track), GREY, '-')
        for track in tracks
    ]
    sane = [line for line in every if len(line.places)]
    if not sane:
        return None
    # A line style once the colours repeat.
    lines = [
        line._replace(colour=CYCLE[i % len(CYCLE)], style=LINES[i // len(CYCLE) % len(LINES)])
        for i, line in enumerate(sane[:_MOST_TRACKS])
    ]
    others = sane[_MOST_TRACKS:]
    height = DecisionFusionParameters().person_height

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        highest, ends = 1.0, []
        if others:
            axes.plot(
                _joined([line.track.times[line.places] for line in others]),
                _joined([line.distances[line.places] for line in others]),
                color=GREY,
                linewidth=0.8,
            )
        for line in lines:
            times, values = line.track.times[line.places], line.distances[line.places]
            if camera is not None:
                boxes = line.track.boxes[line.places]
                tall = np.maximum(boxes[:, 3] - boxes[:, 1], 1.0)
                expected = camera.k[1, 1] * height / tall
                axes.plot(times, expected, '.', color=line.colour, markersize=3, alpha=0.4)
            axes.plot(times, values, color=line.colour, linestyle=line.style, linewidth=1.8)
            highest = max(highest, float(values.max()))
            ends.append((line, np.array([times[-1], values[-1]])))
        axes.set_ylim(0.0, highest * 1.2)
        axes.margins(x=0.06)
        axes.autoscale_view(scaley=False)
        figure.draw_without_rendering()
        _label_ends(axes, ends)
        kind = 'distance from the sensor' if camera is None else 'depth along the optical axis'
        axes.set(xlabel=_TIME, ylabel=f'{kind} [m]')
        axes.plot([], [], color=MUTED, linewidth=1.8, label='track')
        if camera is not None:
            axes.plot([], [], '.', color=MUTED, label=f'{height:g} m tall person in its box')
        legend_above(axes, 'Distance over time')

    caption = 'Lines are the distances of the tracks, with their ids at the end'
    caption += (
        '; without camera calibration there is no distance from box heights to compare with.'
        if camera is None
        else f'; dots are the distance at which a person {height:g} m tall fills the box of the '
        f'track (focal length × {height:g} m / box height).'
    )
    if others:
        caption += f' Only the {_MOST_TRACKS} longest of {len(sane)} tracks have an id here; '
        caption += 'the others are grey.'
    if len(sane) < len(tracks):
        caption += f' {len(tracks) - len(sane)} tracks without a usable position are not drawn.'
    alternative = f'Chart of the distance of {len(lines)} tracks over time'
    words = Words(RANGES, 'Distance of each track', caption, alternative)
    times = np.unique(np.concatenate([line.track.times for line in lines]))
    series = [Series(f'track {line.track.id}', ' m', _at(times, line)) for line in lines]
    return figure_over_time(words, draw, ((6.2, 4.2),), times, series)


def _at(times: FloatArray, line: _Line) -> FloatArray:
    """Distances of a track at all times (N,); NaN where there is none."""
    row = np.full(len(times), np.nan)
    row[np.searchsorted(times, line.track.times)] = line.distances
    return row


def _usable(track: Trajectory) -> NDArray[np.intp]:
    """Where in a track there is something to draw, thinned to a few hundred places."""
    places: NDArray[np.intp] = np.flatnonzero((np.abs(track.positions) < FARTHEST).all(axis=1))
    if len(places) > _MOST_PLACES:
        places = places[np.linspace(0, len(places) - 1, _MOST_PLACES).astype(int)]
    return places


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    """Put lines into one array with gaps between them: thousands are drawn as quickly."""
    return np.concatenate([piece for part in parts for piece in (part, [np.nan])])


def _label_ends(axes: Axes, ends: Sequence[tuple[_Line, FloatArray]]) -> None:
    """Write ids beside the ends of lines, moved apart where they would cover each other."""
    taken: list[tuple[float, float]] = []
    points_per_pixel = 72.0 / axes.figure.dpi
    for line, end in sorted(ends, key=lambda item: float(item[1][1])):
        right, up = axes.transData.transform(end) * points_per_pixel
        lift = 0.0
        while any(abs(right - r) < 28 and abs(up + lift - u) < 11 for r, u in taken):
            lift += 2.0
        taken.append((right, up + lift))
        text = axes.annotate(
            f'{line.track.id}',
            (float(end[0]), float(end[1])),
            (6, lift),
            textcoords='offset points',
            va='center',
            fontsize=9,
            fontweight='bold',
            color=line.colour,
        )
        text.set_path_effects([patheffects.withStroke(linewidth=2.5, foreground='white')])


def draw_stream(record: RunRecord, accuracy: Accuracy) -> FigureFile | None:
    """Draw the streaming IoU over time, and what latency takes from it."""
    if not len(accuracy.stream.ids):
        return None
    zero_ns = start_ns(record)
    times, published = _means(accuracy.stream, zero_ns)
    times_at_once, at_once = _means(accuracy.at_once, zero_ns)
    is_comparable = len(times_at_once) == len(times)
    ages = _ages(record, zero_ns)

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        ideal = f'if published at its state time, mean {accuracy.at_once.mean_iou:.3f}'
        upper.plot(times_at_once, at_once, color=GREEN, linewidth=1.0, label=ideal)
        real = f'as published, mean {accuracy.stream.mean_iou:.3f}'
        upper.plot(times, published, color=BLUE, linewidth=1.5, label=real)
        if is_comparable:
            upper.fill_between(times, published, at_once, color=ORANGE, alpha=0.35, lw=0)
        upper.set(ylim=(0.0, 1.02), ylabel='IoU')
        legend_above(upper, 'Streaming IoU: the latest result, at every moment')
        if len(ages):
            lower.fill_between(*ages.T, color=BLUE, alpha=0.3, linewidth=0)
            lower.set_ylim(0.0, max(1.15 * float(np.quantile(ages[:, 2], 0.99)), 1.0))
        lower.set(ylabel='age [ms]', xlabel=_TIME, title='How old the latest result was')
        lower.set_xlim(times.min() - 0.05, times.max() + 0.05)

    words = Words(
        STREAM,
        'Streaming accuracy',
        'Every 10 ms the latest published result, its boxes moved on by their own velocities, is '
        'compared with the truth of that moment (0 for missed people); the orange between the '
        'lines is what latency costs.',
        'Two charts over time: streaming IoU with and without latency, and the age of the '
        'latest result',
    )
    series = [Series('streaming IoU', '', published)]
    if is_comparable:
        series.append(Series('without latency', '', at_once))
    return figure_over_time(words, draw, ((_WIDE, 4.8), (_NARROW, 5.4)), times, series)


def _means(samples: PersonSamples, zero_ns: int) -> tuple[FloatArray, FloatArray]:
    """Return the middles (N,) of short stretches of time in s, and the mean IoU (N,) in them."""
    times = (samples.stamps_ns - zero_ns) / NS_PER_S
    first, last = float(times.min()), float(times.max())
    width = max((last - first) / _MOST_BINS, _FINEST_BIN)
    places = ((times - first) / width).astype(int)
    counts = np.bincount(places)
    with np.errstate(invalid='ignore'):  # NaN where no person was visible: the line is cut
        means = np.bincount(places, samples.overlaps) / counts
    middles = first + width * (np.arange(len(counts), dtype=np.float64) + 0.5)
    return np.asarray(middles, np.float64), means


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
    found = accuracy.consistency
    times = ((errors.stamps_ns - start_ns(record)) / NS_PER_S)[usable]
    values = errors.nees[usable]
    seconds = np.floor(times)
    middles = np.unique(seconds) + 0.5
    averages = np.array([values[seconds == second].mean() for second in np.unique(seconds)])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        single = average_bounds(NEES_DOF, 1)
        axes.axhspan(*single, color=GREEN, alpha=0.12, linewidth=0, label='95 % of all')
        axes.axhspan(found.low, found.high, color=GREEN, alpha=0.4, linewidth=0, label='bounds')
        axes.plot(times, values, '.', color=MUTED, markersize=2.5, alpha=0.4)
        axes.plot(middles, averages, '-', color=BLUE, linewidth=1.2, label='per second')
        axes.axhline(found.mean, color=INK, linewidth=1.3, label=f'average {found.mean:.2f}')
        axes.set_yscale('log')
        axes.set_ylim(0.02, max(100.0, 1.5 * float(values.max())))
        axes.set(xlabel=_TIME, ylabel='NEES')
        legend_above(axes, 'NEES of horizontal position and velocity')

    verdict = 'within' if found.in_bounds else 'outside'
    words = Words(
        NEES,
        'Covariance consistency (NEES)',
        f'The squared error of tracks in units of their own uncertainty: {NEES_DOF} where that is '
        f'right, more where it is too small; the average of {found.samples} independent '
        f'samples is {found.mean:.2f}, {verdict} the bounds {found.low:.2f} to '
        f'{found.high:.2f} for so many.',
        'Chart of the normalised estimation error squared over time with its bounds',
    )
    series = [Series('NEES per second', '', averages)]
    return figure_over_time(words, draw, ((6.2, 3.8),), middles, series)

"""Figures of a comparison: accuracy-latency plane, ablations, costs, and all in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

from mmedge_lab.policies.schedule import SAMPLE, STREAM
from mmedge_lab.rivals.comparison.condition_figures import (
    ROBUSTNESS,
    TIMELINE,
    draw_robustness,
    draw_timeline,
)
from mmedge_lab.rivals.comparison.estimates import MEAN_IOU, P50, P95, STREAMING
from mmedge_lab.rivals.comparison.policy_marks import Mark, base_case, marks
from mmedge_lab.rivals.comparison.report import figure_of
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.report.figure_style import (
    BLUE,
    INK,
    MUTED,
    FigureFile,
    draw_difference,
    label_rows,
    legend_outside,
    modality_colour,
    render,
    value_of,
)

PLANE, ABLATION, COSTS = 'plane.png', 'ablation.png', 'costs.png'
COMPARISON_FIGURES = (PLANE, ROBUSTNESS, ABLATION, COSTS, TIMELINE)
# A logarithmic axis ends somewhere: decisions made early or at once are drawn here, ms.
_LEAST_MS = 1.0
# By protocol: title, figure and its name.
_PLANES = {
    STREAM: ('Streaming: overlapping windows, backlog carried', STREAMING, 'streaming mean IoU'),
    SAMPLE: ('Each window alone and unloaded', MEAN_IOU, 'mean IoU'),
}
_DIFFERENCES = (
    (STREAMING, 'Streaming mean IoU gained', 'ours minus the other'),
    (P50, 'Median latency saved', 'the other minus ours [ms]'),
)
# Of the paper, ms.
_PAPER = {'aggregation': 5.4, 'optimiser': 8.2, 'gate': 8.6}


def draw_comparison(report: Mapping[str, Any]) -> list[FigureFile]:
    """Draw every figure for which report.json has values, in the order of COMPARISON_FIGURES."""
    drawn = (
        draw_plane(report),
        draw_robustness(report),
        draw_ablation(report),
        draw_costs(report),
        draw_timeline(report),
    )
    return [figure for figure in drawn if figure is not None]


def draw_plane(report: Mapping[str, Any]) -> FigureFile:
    """Draw accuracy over latency, a point for each policy and limit (figure 11 of the paper)."""
    protocols = [p for p in _PLANES if p in report['plan']['protocols']]
    known = joined_marks(report, protocols)

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, protocol in zip(drawn, protocols, strict=True):
            _draw_plane(axes, report, protocol, known)
        handles, labels = drawn[0].get_legend_handles_labels()
        legend_outside(
            figure, 'lower center', handles=handles, labels=labels, ncol=4 if columns > 1 else 2
        )

    legend = 0.22 * -(-len(known) // 2)
    return FigureFile(
        PLANE,
        render(lambda figure: draw(figure, 1, len(protocols)), 9.4, 4.2 + legend / 2),
        'Accuracy and latency',
        'One mark for each policy and latency limit, up and to the left is better; lines reach '
        'across from median to p95 of the latency (at least '
        f'{_LEAST_MS:g} ms) and upward over the 95 % interval, and the dashed line is the limit.',
        'Accuracy over latency of every policy, in streaming and for each window alone',
        render(lambda figure: draw(figure, len(protocols), 1), 4.6, 3.4 * len(protocols) + legend),
    )


def joined_marks(report: Mapping[str, Any], protocols: Sequence[str]) -> dict[str, Mark]:
    """Return the marks of policies; those that would lie on each other are one, by both names."""
    joined: dict[tuple[Any, ...], tuple[str, Mark]] = {}
    for policy, mark in marks(report).items():
        places = tuple(tuple(_points(report, policy, protocol)) for protocol in protocols)
        if places not in joined or not any(places):
            joined[places if any(places) else (policy,)] = policy, mark
            continue
        first, known = joined[places]
        joined[places] = first, known._replace(label=f'{known.label} = {mark.label}')
    return dict(joined.values())


class _Point(NamedTuple):
    """A policy under one limit: latencies in ms, and its accuracy with the interval."""

    median: float
    p95: float
    accuracy: float
    low: float | None
    high: float | None


def _points(report: Mapping[str, Any], policy: str, protocol: str) -> list[_Point]:
    points = []
    for limit in report['plan']['limits_ms']:
        row = base_case(report, policy, protocol, limit=limit)
        if row is None:
            continue
        accuracy = figure_of(row, _PLANES[protocol][1])
        median, p95 = (figure_of(row, figure)['value'] for figure in (P50, P95))
        if accuracy['value'] is None or median is None or p95 is None:
            continue
        latencies = max(median, _LEAST_MS), max(p95, _LEAST_MS)
        points.append(_Point(*latencies, accuracy['value'], accuracy['low'], accuracy['high']))
    return points


def _draw_plane(
    axes: Axes, report: Mapping[str, Any], protocol: str, known: Mapping[str, Mark]
) -> None:
    title, _, words = _PLANES[protocol]
    for number, (policy, mark) in enumerate(known.items()):
        # Ours is drawn last, above all others, and stands first in the legend.
        above = 30 - number
        points = _points(report, policy, protocol)
        thin: dict[str, Any] = {'color': mark.colour, 'lw': 0.8, 'alpha': 0.55}
        for point in points:
            if point.low is not None and point.high is not None:
                axes.plot([point.median] * 2, [point.low, point.high], zorder=above, **thin)
            axes.plot([point.median, point.p95], [point.accuracy] * 2, **thin)
        if points:
            axes.plot(
                [point.median for point in points],
                [point.accuracy for point in points],
                marker=mark.marker,
                color=mark.colour,
                label=mark.label,
                markersize=5.0 + mark.width,
                lw=mark.width,
                zorder=above,
            )
    axes.axvline(report['plan']['headline']['limit_ms'], color=INK, lw=0.9, ls='--')
    axes.set_xscale('log')
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel('decision latency [ms], logarithmic', color=MUTED)
    axes.set_ylabel(words)
    axes.set_title(title)


def draw_ablation(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw paired differences of ours and every other policy (figure 13 of the paper)."""
    differences = headline_differences(report)
    names = [f['name'] for f in report['plan']['policies'] if f['name'] in differences]
    if not names:
        return None
    known = marks(report)

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False, sharey=columns > 1).ravel()
        for axes, (name, title, words) in zip(drawn, _DIFFERENCES, strict=True):
            sign = 1.0 if name == STREAMING else -1.0
            _draw_differences(axes, [differences[policy].get(name) for policy in names], sign)
            label_rows(axes, [known[policy].label for policy in names])
            axes.set_title(title)
            axes.set_xlabel(words, color=MUTED)

    height = 1.0 + 0.3 * len(names)
    return FigureFile(
        ABLATION,
        render(lambda figure: draw(figure, 1, 2), 9.4, height),
        'Ours against each rival, and without each part',
        'Paired differences in the same flights with 95 % intervals: right of the line ours is '
        'better, and a filled mark is an interval that excludes zero.',
        'Differences of ours and every other policy in streaming mean IoU and median latency',
        render(lambda figure: draw(figure, 2, 1), 4.6, 2 * height),
    )


def headline_differences(report: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the differences over all people at the headline, by policy and figure."""
    headline = report['plan']['headline']
    differences: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in report['differences']:
        same = all(row[name] == headline[name] for name in ('protocol', 'share', 'limit_ms'))
        if same and row['factor'] == 'all' and row['value'] is not None:
            differences.setdefault(row['against'], {})[row['figure']] = row
    return differences


def _draw_differences(axes: Axes, rows: Sequence[Mapping[str, Any] | None], sign: float) -> None:
    for place, row in enumerate(rows):
        if row is None:
            continue
        draw_difference(axes, row, place, BLUE, sign=sign)
    axes.axvline(0.0, color=INK, lw=1.0)
    axes.margins(x=0.08)
    if sign < 0.0:
        axes.set_xscale('symlog', linthresh=10.0)
        axes.xaxis.set_major_formatter(ScalarFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))


def draw_costs(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw encoder calls and seconds of each policy, and overheads (figure 14 of the paper)."""
    cases = {name: row for name in marks(report) if (row := base_case(report, name)) is not None}
    if not cases:
        return None
    overheads = measured_overheads(report['machine'])
    labels = [marks(report)[name].label for name in cases]
    rows = list(cases.values())

    def draw(figure: Figure, lines: int, columns: int) -> None:
        drawn = figure.subplots(lines, columns, squeeze=False).ravel()
        _draw_work(drawn[0], rows, 'encoder_calls_per_s')
        drawn[0].set_title('Encoder calls')
        drawn[0].set_xlabel('calls per second', color=MUTED)
        label_rows(drawn[0], labels)
        _draw_work(drawn[1], rows, 'encoder_busy')
        drawn[1].set_title('Encoders at work')
        drawn[1].set_xlabel('seconds per second', color=MUTED)
        label_rows(drawn[1], labels if columns == 1 else [''] * len(labels))
        if overheads:
            _draw_overheads(drawn[2], overheads)
        handles = [h for axes in drawn[::2] for h in axes.get_legend_handles_labels()[0]]
        legend_outside(figure, 'lower center', handles=handles, ncol=4 if columns > 1 else 2)

    count = 3 if overheads else 2
    height = 1.4 + 0.28 * len(cases)
    return FigureFile(
        COSTS,
        render(lambda figure: draw(figure, 1, count), 9.4, height),
        'What it costs',
        'Work of the encoders by the service times of the profile'
        + (
            ', and at the right what deciding costs on the machine that made this report, '
            'beside the paper’s on a Jetson Orin Nano.'
            if overheads
            else '.'
        ),
        'Encoder calls and seconds of every policy, and times of aggregation, optimiser and gate',
        render(lambda figure: draw(figure, count, 1), 4.6, count * height),
    )


def measured_overheads(machine: Mapping[str, Any] | None) -> dict[str, float]:
    """Return medians in ms of the overheads the paper names, as far as they were timed."""
    if machine is None:
        return {}
    medians = {
        'optimiser': machine['optimizer_us'][str(3**4)]['fresh']['p50'] / 1e3,
        'gate': machine['gate_us']['whole']['p50'] / 1e3,
    }
    if machine['aggregation_us'] is not None:
        steps = [times['p50'] for times in machine['aggregation_us'].values()]
        medians = {'aggregation': sum(steps) / 1e3, **medians}
    return medians


def _draw_work(axes: Axes, rows: Sequence[Mapping[str, Any]], figure: str) -> None:
    """Draw stacked bars of a figure that each modality has."""
    left = np.zeros(len(rows))
    for number, modality in enumerate((CAMERA, RADAR)):
        values = np.array([value_of(figure_of(row, f'{figure}.{modality}')) for row in rows])
        colour = modality_colour(modality, number)
        axes.barh(np.arange(len(rows)), values, 0.62, left=left, color=colour, label=modality)
        left = left + np.nan_to_num(values)


def _draw_overheads(axes: Axes, medians: Mapping[str, float]) -> None:
    rows = np.arange(len(medians))
    axes.barh(rows - 0.18, list(medians.values()), 0.34, color=BLUE, label='this machine')
    axes.barh(
        rows + 0.18, [_PAPER[name] for name in medians], 0.34, color='#b8c2cc', label='paper'
    )
    for row, value in zip(rows, medians.values(), strict=True):
        axes.annotate(
            f'{value:.2g} ms',
            (value, row - 0.18),
            xytext=(3, 0),
            textcoords='offset points',
            va='center',
            fontsize=8,
            color=MUTED,
        )
    label_rows(axes, list(medians))
    axes.set_xscale('log')
    axes.margins(x=0.25)
    axes.set_title('Deciding')
    axes.set_xlabel('ms, logarithmic', color=MUTED)

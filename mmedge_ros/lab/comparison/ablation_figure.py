"""What ours is worth against each rival, and what each part of it is (figure 13 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from mmedge_ros.lab.comparison.estimates import P50, STREAMING
from mmedge_ros.lab.comparison.policy_marks import Mark, marks
from mmedge_ros.lab.reporting.figure_style import BLUE, INK, MUTED, FigureFile, render

ABLATION = 'ablation.png'
_PANELS = (
    (STREAMING, 'Streaming mean IoU gained', 'ours minus the other'),
    (P50, 'Median latency saved', 'the other minus ours, ms'),
)


def draw_ablation(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw paired differences of ours and every other policy."""
    found = headline_differences(report)
    names = [facts['name'] for facts in report['plan']['policies'] if facts['name'] in found]
    if not names:
        return None
    known = marks(report)

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False, sharey=columns > 1).ravel()
        for axes, (name, title, words) in zip(drawn, _PANELS, strict=True):
            sign = 1.0 if name == STREAMING else -1.0
            rows_of = [found[policy].get(name) for policy in names]
            _draw(axes, rows_of, [known[policy] for policy in names], sign)
            axes.set_title(title)
            axes.set_xlabel(words, color=MUTED)

    height = 1.0 + 0.3 * len(names)
    return FigureFile(
        ABLATION,
        render(lambda figure: draw(figure, 1, 2), 9.4, height),
        'Ours against each rival, and without each part',
        'Paired differences in the same flights at the limits of the headline, with 95 % '
        'intervals from flights drawn anew, both sides together. Right of the line ours is '
        'better; a filled mark is an interval that excludes zero.',
        'Differences of ours and every other policy in streaming mean IoU and median latency',
        render(lambda figure: draw(figure, 2, 1), 4.6, 2 * height),
    )


def headline_differences(report: Mapping[str, Any]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the differences over all people at the headline, by policy and figure."""
    headline = report['plan']['headline']
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in report['differences']:
        same = all(row[name] == headline[name] for name in ('protocol', 'share', 'limit_ms'))
        if same and row['factor'] == 'all' and row['value'] is not None:
            found.setdefault(row['against'], {})[row['figure']] = row
    return found


def _draw(
    axes: Axes,
    rows: Sequence[Mapping[str, Any] | None],
    known: Sequence[Mark],
    sign: float,
) -> None:
    for place, row in enumerate(rows):
        if row is None:
            continue
        if row['low'] is not None:
            axes.plot([sign * row['low'], sign * row['high']], [place, place], color=BLUE, lw=1.5)
        axes.plot(
            sign * row['value'],
            place,
            'o',
            color=BLUE,
            markersize=5.5,
            markerfacecolor=BLUE if row['excludes_zero'] else 'white',
        )
    axes.axvline(0.0, color=INK, lw=1.0)
    axes.margins(x=0.08)
    if sign < 0.0:
        axes.set_xscale('symlog', linthresh=10.0)
        axes.xaxis.set_major_formatter(ScalarFormatter())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_yticks(range(len(rows)), [mark.label for mark in known])
    axes.tick_params(axis='y', length=0, labelcolor=INK)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis='y', visible=False)

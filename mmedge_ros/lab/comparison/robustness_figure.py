"""How policies stand under each factor and under less processor (figure 12 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from mmedge_ros.lab.comparison.estimates import P95, STREAMING
from mmedge_ros.lab.comparison.policy_marks import Mark, base_case, few, marks
from mmedge_ros.lab.comparison.report import FACTORS, figure_of
from mmedge_ros.lab.reporting.estimate_marks import value_of
from mmedge_ros.lab.reporting.figure_style import INK, FigureFile, printable, render

ROBUSTNESS = 'robustness.png'
_NOTHING: Mapping[str, float | None] = {'value': None, 'low': None, 'high': None}
Series = Mapping[str, Sequence[Mapping[str, float | None]]]


def draw_robustness(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw streaming accuracy by factor, half and share of the processor."""
    known = marks(report)
    chosen = [name for name in few(report) if base_case(report, name) is not None]
    panels = [panel for panel in _panels(report, chosen) if len(panel[1]) > 1]
    if not panels:
        return None

    def draw(figure: Figure, columns: int) -> None:
        rows = -(-len(panels) // columns)
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (title, names, series, words) in zip(drawn, panels, strict=False):
            _draw(axes, title, names, series, words, known)
        for spare in drawn[len(panels) :]:
            spare.set_visible(False)
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside lower center', ncol=3 if columns > 1 else 2)

    columns = 2 if len(panels) in (2, 4) else 3
    rows = -(-len(panels) // columns)
    return FigureFile(
        ROBUSTNESS,
        render(lambda figure: draw(figure, columns), 9.4, 2.7 * rows + 0.6),
        'Robustness',
        'Streaming mean IoU by what varies from flight to flight, in the easy and the hard half '
        'of all windows (fixed beforehand by what blocking makes of each window alone), and with '
        'less processor; the last panel is the p95 of the decision latency. 95 % intervals from '
        'flights drawn anew; of one flight there is none.',
        'Streaming mean IoU by distance, surroundings, light, half and share of the processor',
        render(lambda figure: draw(figure, 1), 4.6, 2.4 * len(panels) + 0.8),
    )


def _panels(
    report: Mapping[str, Any], chosen: Sequence[str]
) -> list[tuple[str, list[str], Series, str]]:
    rows = {name: base_case(report, name) for name in chosen}
    some = next((row for row in rows.values() if row is not None), None)
    found: list[tuple[str, list[str], Series, str]] = []
    words = 'streaming mean IoU'
    for factor in FACTORS:
        names = list(some['strata'].get(factor, {})) if some else []
        found.append(
            (
                factor.capitalize(),
                [f'{name}\n({some["strata"][factor][name]["flights"]})' for name in names]
                if some
                else [],
                {
                    policy: [
                        row['strata']
                        .get(factor, {})
                        .get(n, {})
                        .get('streaming_mean_iou', _NOTHING)
                        for n in names
                    ]
                    for policy, row in rows.items()
                    if row
                },
                words,
            )
        )
    if report['halves'] is not None:
        found.append(
            (
                'Half of the windows',
                ['easy', 'hard'],
                {
                    policy: [
                        row['halves'][half]['streaming_mean_iou'] for half in ('easy', 'hard')
                    ]
                    for policy, row in rows.items()
                    if row and row['halves']
                },
                words,
            )
        )
    shares = sorted(report['plan']['shares'], reverse=True)
    for figure, axis in ((STREAMING, words), (P95, 'p95 latency, ms')):
        series = {
            policy: [
                figure_of(row, figure)
                if (row := base_case(report, policy, share=share))
                else _NOTHING
                for share in shares
            ]
            for policy in chosen
        }
        found.append(
            ('Share of the processor', [f'{share:g} %' for share in shares], series, axis)
        )
    return found


def _draw(
    axes: Axes,
    title: str,
    names: Sequence[str],
    series: Series,
    words: str,
    known: Mapping[str, Mark],
) -> None:
    places = np.arange(len(names))
    for number, (policy, estimates) in enumerate(series.items()):
        mark = known[policy]
        shifted = places + 0.07 * (number - (len(series) - 1) / 2)
        values = [value_of(estimate) for estimate in estimates]
        axes.plot(
            shifted,
            values,
            marker=mark.marker,
            color=mark.colour,
            label=mark.label,
            markersize=4.0 + mark.width / 2,
            lw=mark.width * 0.8,
        )
        for place, estimate in zip(shifted, estimates, strict=True):
            if estimate['low'] is not None and estimate['high'] is not None:
                axes.plot(
                    [place, place],
                    [estimate['low'], estimate['high']],
                    color=mark.colour,
                    lw=0.8,
                    alpha=0.6,
                )
    if words.startswith('p95'):
        axes.set_yscale('symlog', linthresh=10.0)
        axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_xticks(
        places, ['\n'.join(printable(part, 14) for part in name.split('\n')) for name in names]
    )
    axes.tick_params(axis='x', length=0, labelcolor=INK)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.grid(axis='x', visible=False)
    axes.set_ylabel(words)
    axes.set_title(title)

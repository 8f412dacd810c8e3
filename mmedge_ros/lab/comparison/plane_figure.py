"""The accuracy-latency plane (figure 11 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from mmedge_ros.lab.comparison.estimates import MEAN_IOU, P50, P95, STREAMING
from mmedge_ros.lab.comparison.policy_marks import Mark, base_case, marks
from mmedge_ros.lab.comparison.report import figure_of
from mmedge_ros.lab.policies.schedule import SAMPLE, STREAM
from mmedge_ros.lab.reporting.figure_style import INK, MUTED, FigureFile, render

PLANE = 'plane.png'
# A logarithmic axis ends somewhere: decisions made early or at once are drawn here, ms.
_LEAST_MS = 1.0
_TITLES = {
    STREAM: 'Streaming: overlapping windows, backlog carried',
    SAMPLE: 'Each window alone and unloaded',
}
_FIGURES = {STREAM: (STREAMING, 'streaming mean IoU'), SAMPLE: (MEAN_IOU, 'mean IoU')}


def draw_plane(report: Mapping[str, Any]) -> FigureFile | None:
    """Draw accuracy over latency, a point for each policy and limit."""
    protocols = [p for p in (STREAM, SAMPLE) if p in report['plan']['protocols']]
    known = marks(report)

    def draw(figure: Figure, rows: int, columns: int) -> None:
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, protocol in zip(drawn, protocols, strict=True):
            _draw(axes, report, protocol, known)
        handles, labels = drawn[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside lower center', ncol=4 if columns > 1 else 2)

    legend = 0.22 * -(-len(known) // 2)
    return FigureFile(
        PLANE,
        render(lambda figure: draw(figure, 1, len(protocols)), 9.4, 4.2 + legend / 2),
        'Accuracy and latency',
        'One mark for each policy and latency limit, limits of a policy joined: up and to the '
        'left is better. Across from median to p95 of the decision latency, upward the 95 % '
        'interval from flights drawn anew. The dashed line is the latency limit of the headline. '
        f'Latencies below {_LEAST_MS:g} ms, decisions made before the window ended among '
        f'them, are drawn at {_LEAST_MS:g} ms.',
        'Accuracy over latency of every policy, in streaming and for each window alone',
        render(lambda figure: draw(figure, len(protocols), 1), 4.6, 3.4 * len(protocols) + legend),
    )


def _draw(axes: Axes, report: Mapping[str, Any], protocol: str, known: Mapping[str, Mark]) -> None:
    name, words = _FIGURES[protocol]
    for number, (policy, mark) in enumerate(known.items()):
        # Ours is drawn last, above all others, and stands first in the legend.
        above = 30 - number
        places = []
        for limit in report['plan']['limits_ms']:
            row = base_case(report, policy, protocol, limit=limit)
            if row is None:
                continue
            accuracy = figure_of(row, name)
            median, p95 = (figure_of(row, figure)['value'] for figure in (P50, P95))
            if accuracy['value'] is None or median is None or p95 is None:
                continue
            here = max(median, _LEAST_MS)
            places.append((here, accuracy['value']))
            if accuracy['low'] is not None and accuracy['high'] is not None:
                axes.plot(
                    [here, here],
                    [accuracy['low'], accuracy['high']],
                    color=mark.colour,
                    lw=0.8,
                    alpha=0.55,
                    zorder=above,
                )
            axes.plot(
                [here, max(p95, _LEAST_MS)],
                [accuracy['value']] * 2,
                color=mark.colour,
                lw=0.8,
                alpha=0.55,
            )
        if places:
            axes.plot(
                *zip(*places, strict=True),
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
    axes.set_xlabel('decision latency, ms (logarithmic)', color=MUTED)
    axes.set_ylabel(words)
    axes.set_title(_TITLES[protocol])

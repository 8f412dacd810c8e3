"""The page of the report of a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mmedge_ros.lab.gates.gate_figures import NAMES
from mmedge_ros.lab.reporting.page import Tile, number, percent, render_page

if TYPE_CHECKING:
    from mmedge_ros.lab.reporting.figure_style import FigureFile


def render_gate_page(report: Mapping[str, Any], figures: Sequence[FigureFile]) -> str:
    """Render the page from the content of report.json and the figures."""
    return render_page(
        'gate.html.j2',
        report,
        figures,
        {'rule': lambda name: NAMES.get(name, name)},
        title=report['bundle']['name'],
        summary=gate_summary(report),
        tiles=_tiles(report),
    )


def gate_summary(report: Mapping[str, Any]) -> str:
    """Say in plain words what came of it."""
    alpha = percent(report['alpha'], 0)
    if not report['certified']:
        return (
            f'No threshold is certified to keep differing early decisions at or below {alpha} '
            f'with the {report["calibration_flights"]} flights there are: this gate is not used.'
        )
    ours = report['rules'][0]
    return (
        f'Certified: at most {alpha} of early decisions differ from what the full window gives. '
        f'In {report["judged_flights"]} flights {percent(ours["disagreement"])} of '
        f'{ours["early"]} did, and {percent(ours["saved"])} of the camera encodes were saved, of '
        f'{percent(report["ceiling"])} that the rule allows.'
    )


def _tiles(report: Mapping[str, Any]) -> list[Tile]:
    row = report['rules'][0]
    name = NAMES.get(row['name'], row['name'])
    stream = row['streaming_difference']
    decided = row['decided_before_end_ms'].get('p50')
    return [
        Tile('threshold', number(row['threshold'], 3), name),
        Tile('differing', percent(row['disagreement']), f'of {row["early"]} early decisions'),
        Tile(
            'saved',
            percent(row['saved']),
            f'of camera encodes; at most {percent(report["ceiling"])}',
        ),
        Tile(
            'saved, easy half',
            percent(row['easy_half']['saved']),
            'windows the full run does well',
        ),
        Tile(
            'streaming mean IoU',
            number(stream['value'], 4),
            f'change; {number(stream["low"], 4)} to {number(stream["high"], 4)}',
        ),
        Tile('decided before the end', number(decided, 0, ' ms'), 'median of all windows'),
    ]

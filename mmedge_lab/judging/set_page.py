"""The page of a set of flights: what happened in each, and the accuracy of all by scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmedge_lab.judging import TEMPLATES
from mmedge_lab.judging.accuracy_table import COLUMN_GROUPS, TableRow, cell
from mmedge_ros.report.glance import people_words
from mmedge_ros.report.page import Tile, number, percent, render_page
from mmedge_ros.report.report_files import write_files

PAGE = 'report.html'
_COUNTS = ('people', 'mostly_followed', 'partly_followed', 'hardly_followed')
_IDS = ('matched_ids', 'unmatched_ids')


def write_set_page(
    name: str, reports: Mapping[str, Mapping[str, Any]], rows: Sequence[TableRow], folder: Path
) -> None:
    """Write the page that leads to the reports of all flights.

    :param reports: contents of report.json by the folder of the flight
    :param rows: of `accuracy_table`
    :raises ReportError: when it cannot be written
    """
    page = render_set_page(name, reports, rows)
    write_files(folder, {PAGE: page.encode(errors='replace')})


def render_set_page(
    name: str, reports: Mapping[str, Mapping[str, Any]], rows: Sequence[TableRow]
) -> str:
    """Render that page; links lead to the reports beside it."""
    return render_page(
        'set.html.j2',
        {},
        (),
        {'cell': cell},
        folder=TEMPLATES,
        title=name or 'flights',
        summary=f'{len(reports)} flights were replayed offline; each has a report of its own.',
        glance=set_words(reports),
        tiles=_tiles(rows),
        flights=reports,
        groups=COLUMN_GROUPS,
        rows=rows,
    )


def set_words(reports: Mapping[str, Mapping[str, Any]]) -> str:
    """Say in plain words how the people of all flights with ground truth were followed."""
    known = [
        report['at_a_glance']
        for report in reports.values()
        if report['at_a_glance']['mostly_followed'] is not None
    ]
    if not known:
        return 'No flight has ground truth with places: how people were followed is not known.'
    total = {key: sum(glance[key] for glance in known) for key in (*_COUNTS, *_IDS)}
    return ' '.join(people_words(total))


def _tiles(rows: Sequence[TableRow]) -> list[Tile]:
    if not rows:
        return []
    row = rows[-1]
    return [
        Tile('streaming mean IoU', number(row['streaming_mean_iou'], 3), 'all flights'),
        Tile('recall', percent(row['recall']), 'visible people met by a box'),
        Tile('precision', percent(row['precision']), 'boxes that meet a person'),
        Tile('position error', number(row['position_error_m'], 2, ' m'), 'median'),
        Tile('latency, p95', number(row['latency_p95_ms'], 1, ' ms'), 'greatest of any flight'),
    ]

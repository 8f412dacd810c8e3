"""The figures of many flights in one table, a row for each scenario and one for all.

Means are weighted by their people, shares and tracking figures are computed from added counts,
the bounds of the NEES from added samples, and medians are averaged, weighted by their samples.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging.flight_bootstrap import Estimate, interval, mean_by_seed
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.report.consistency import Consistency
from mmedge_ros.report.mot_metrics import share
from mmedge_ros.report.page import markdown_table, number
from mmedge_ros.report.report_files import write_files

ALL = 'all'
UNNAMED = 'unnamed'
TABLE_JSON, TABLE_MARKDOWN = 'accuracy_table.json', 'accuracy_table.md'
_ADDED = (
    *('true_positives', 'false_positives', 'false_negatives', 'id_switches'),
    *('idtp', 'idfp', 'idfn'),
)


# By the table on the page: title, key of the row, and digits; None for what is written as it is.
COLUMN_GROUPS: dict[str, tuple[tuple[str, str, int | None], ...]] = {
    'Detection': (
        ('flights', 'flights', None),
        ('people', 'people', None),
        ('streaming mean IoU', 'streaming_mean_iou', 3),
        ('of decisions alone', 'streaming_mean_iou_decisions', 3),
        ('mean IoU', 'mean_iou', 3),
        ('mean IoU, 20 px', 'mean_iou_20px', 3),
        ('recall', 'recall', 3),
        ('precision', 'precision', 3),
    ),
    'Tracking and places': (
        ('MOTA', 'mota', 3),
        ('IDF1', 'idf1', 3),
        ('id switches', 'id_switches', None),
        ('position error, m', 'position_error_m', 2),
        ('at 20 m', 'position_error_at_20m', 2),
        ('range error, m', 'range_error_m', 2),
        ('NEES (4)', 'nees', 2),
    ),
    'Time': (
        ('latency p95, ms', 'latency_p95_ms', 1),
        ('camera age p95, ms', 'camera_age_p95_ms', 0),
    ),
}
_COLUMNS = (
    ('scenario', 'scenario', None),
    *(column for group in COLUMN_GROUPS.values() for column in group),
)

TableRow = Mapping[str, Any]


def accuracy_table(reports: Sequence[Mapping[str, Any]]) -> list[TableRow]:
    """Join the reports of flights; those without accuracy are left out.

    :param reports: contents of report.json
    :return: a row for each scenario by name, and at last one for all flights; NaN where nothing
        was reported. ``nees_in_bounds`` is None where nothing was located. Latency and age are
        the greatest of any flight.
    """
    by_scenario: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    judged = [report for report in reports if report.get('accuracy')]
    for report in judged:
        by_scenario[' '.join(report['accuracy']['scenarios']) or UNNAMED].append(report)
    rows = [_row(name, flights) for name, flights in sorted(by_scenario.items())]
    return [*rows, _row(ALL, judged)] if rows else []


def table_markdown(rows: Sequence[TableRow]) -> str:
    """Write the table in Markdown, a line for each row."""
    head = [title for title, _, _ in _COLUMNS]
    cells = [[cell(row, key, digits) for _, key, digits in _COLUMNS] for row in rows]
    return markdown_table(head, cells)


def table_json(rows: Sequence[TableRow]) -> str:
    """Write the table in JSON, an object for each row; null where there is no figure."""
    return json.dumps(plain_values(rows, 6), indent=2, allow_nan=False) + '\n'


def write_table(rows: Sequence[TableRow], folder: Path) -> None:
    """Write the table as ``accuracy_table.md`` and ``accuracy_table.json``.

    :raises EvaluationError: when they cannot be written
    """
    files = {TABLE_MARKDOWN: table_markdown(rows).encode(), TABLE_JSON: table_json(rows).encode()}
    write_files(folder, files)


def update_gain(reports: Sequence[Mapping[str, Any]], seeds: Sequence[str]) -> Estimate:
    """Return what updates between decisions add to streaming IoU, with its interval by seed.

    :param seeds: that of each flight
    """
    judged = [
        (report['accuracy'], seed)
        for report, seed in zip(reports, seeds, strict=True)
        if report['accuracy'] is not None and report['accuracy']['counts']['streamed']
    ]
    gains = [a['streaming_mean_iou'] - a['streaming_mean_iou_decisions'] for a, _ in judged]
    weights = [a['counts']['streamed'] for a, _ in judged]
    names = [seed for _, seed in judged]
    value, drawn = mean_by_seed(np.array(gains), np.array(weights, np.float64), names)
    return Estimate(value, *interval(drawn, len(set(names))))


def _row(scenario: str, reports: Sequence[Mapping[str, Any]]) -> TableRow:
    parts = [report['accuracy'] for report in reports]
    counts = [part['counts'] for part in parts]
    tracking = _added([report['tracking'] for report in reports])
    right, wrong = (
        sum(count[key] for count in counts) for key in ('true_positives', 'false_positives')
    )
    missed = tracking['false_negatives'] + tracking['false_positives'] + tracking['id_switches']
    true_boxes = tracking['true_positives'] + tracking['false_negatives']
    idtp = tracking['idtp']
    nees = _nees([part['nees'] for part in parts])
    low, high = nees.bounds

    def mean(key: str, weight: str) -> float:
        return _weighted([(part[key], part['counts'][weight]) for part in parts])

    return {
        'scenario': scenario,
        'flights': len(reports),
        'people': sum(count['people'] for count in counts),
        'streaming_mean_iou': mean('streaming_mean_iou', 'streamed'),
        'streaming_mean_iou_decisions': mean('streaming_mean_iou_decisions', 'streamed'),
        'mean_iou': mean('mean_iou', 'people'),
        'mean_iou_20px': mean('mean_iou_20px', 'people_20px'),
        'recall': mean('recall', 'people'),
        'precision': share(right, right + wrong),
        'mota': 1.0 - share(missed, true_boxes),
        'idf1': share(2 * idtp, 2 * idtp + tracking['idfp'] + tracking['idfn']),
        'id_switches': tracking['id_switches'],
        'position_error_m': mean('position_error_m', 'located'),
        'position_error_at_20m': mean('position_error_at_20m', 'located_at_20m'),
        'range_error_m': mean('range_error_m', 'located'),
        'nees': nees.mean,
        'nees_low': low,
        'nees_high': high,
        'nees_samples': nees.samples,
        'nees_in_bounds': nees.in_bounds,
        'nees_outside_95': nees.outside,
        'latency_p95_ms': _greatest([report['latency_ms']['p95'] for report in reports]),
        'camera_age_p95_ms': _greatest(
            [report['age_ms'].get('camera', {}).get('p95') for report in reports]
        ),
    }


def _added(parts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {key: sum(part[key] for part in parts) for key in _ADDED}


def _nees(parts: Sequence[Mapping[str, Any]]) -> Consistency:
    samples = sum(part['samples'] for part in parts)
    mean, outside = (
        _weighted([(part[key], part['samples']) for part in parts])
        for key in ('mean', 'outside_95')
    )
    return Consistency(parts[0]['dof'] if parts else 4, samples, mean, outside)


def _weighted(values: Sequence[tuple[float | None, int]]) -> float:
    known = [(value, weight) for value, weight in values if value is not None and weight]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else math.nan


def _greatest(values: Sequence[float | None]) -> float:
    return max((value for value in values if value is not None), default=math.nan)


def cell(row: TableRow, key: str, digits: int | None) -> str:
    """Write a figure of a row; the NEES with its bounds."""
    if digits is None:
        return str(row[key])
    value = number(row[key], digits)
    if key != 'nees' or row['nees_in_bounds'] is None:
        return value
    verdict = 'in' if row['nees_in_bounds'] else 'not in'
    return f'{value} {verdict} {row["nees_low"]:.2f}..{row["nees_high"]:.2f}'

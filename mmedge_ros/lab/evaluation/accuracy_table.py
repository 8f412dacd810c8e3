"""The figures of many flights in one table, a row for each scenario and one for all.

Made from reports, so that flights may be judged one after the other and anywhere. Means are
weighted by the people they are means of, shares and tracking figures are computed anew from
added counts, and the bounds of the NEES from added samples. Medians cannot be joined that way:
those of flights are averaged, weighted by their samples.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmedge_ros.lab.evaluation.consistency import Consistency
from mmedge_ros.lab.evaluation.decision_log import rounded
from mmedge_ros.lab.reporting.report_files import write_files

ALL = 'all'
UNNAMED = 'unnamed'
TABLE_JSON, TABLE_MARKDOWN = 'accuracy_table.json', 'accuracy_table.md'
_ADDED = (
    *('true_positives', 'false_positives', 'false_negatives', 'id_switches'),
    *('idtp', 'idfp', 'idfn'),
)


@dataclass(frozen=True)
class TableRow:
    """Figures of the flights of a scenario; NaN where nothing was asked or reported.

    ``nees_in_bounds`` is None where nothing was located. ``latency_p95_ms`` and
    ``camera_age_p95_ms`` are the greatest of any flight.
    """

    scenario: str
    flights: int
    people: int
    streaming_mean_iou: float
    mean_iou: float
    mean_iou_20px: float
    recall: float
    precision: float
    mota: float
    idf1: float
    id_switches: int
    position_error_m: float
    position_error_at_20m: float
    range_error_m: float
    nees: float
    nees_low: float
    nees_high: float
    nees_samples: int
    nees_in_bounds: bool | None
    latency_p95_ms: float
    camera_age_p95_ms: float


def accuracy_table(reports: Sequence[Mapping[str, Any]]) -> list[TableRow]:
    """Join the reports of flights; those without accuracy are left out.

    :param reports: contents of report.json
    :return: a row for each scenario by name, and at last one for all flights
    """
    by_scenario: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    judged = [report for report in reports if report.get('accuracy')]
    for report in judged:
        by_scenario[' '.join(report['accuracy']['scenarios']) or UNNAMED].append(report)
    rows = [_row(name, flights) for name, flights in sorted(by_scenario.items())]
    return [*rows, _row(ALL, judged)] if rows else []


def table_markdown(rows: Sequence[TableRow]) -> str:
    """Write the table in Markdown, a line for each row."""
    head = [title for title, _ in _COLUMNS]
    lines = [head, ['---', *('---:' for _ in head[1:])]]
    lines += [[cell(row) for _, cell in _COLUMNS] for row in rows]
    return ''.join(f'| {" | ".join(line)} |\n' for line in lines)


def table_json(rows: Sequence[TableRow]) -> str:
    """Write the table in JSON, an object for each row; null where there is no figure."""
    plain = [
        {
            key: rounded(value, 6) if isinstance(value, float) else value
            for key, value in asdict(row).items()
        }
        for row in rows
    ]
    return json.dumps(plain, indent=2, allow_nan=False) + '\n'


def write_table(rows: Sequence[TableRow], folder: Path) -> None:
    """Write the table as ``accuracy_table.md`` and ``accuracy_table.json``.

    :raises EvaluationError: when they cannot be written
    """
    files = {TABLE_MARKDOWN: table_markdown(rows).encode(), TABLE_JSON: table_json(rows).encode()}
    write_files(folder, files)


def _row(scenario: str, reports: Sequence[Mapping[str, Any]]) -> TableRow:
    parts = [report['accuracy'] for report in reports]
    counts = [part['counts'] for part in parts]
    tracking = _added([report['tracking'] for report in reports])
    found, false = (
        sum(count[key] for count in counts) for key in ('true_positives', 'false_positives')
    )
    missed = tracking['false_negatives'] + tracking['false_positives'] + tracking['id_switches']
    true_boxes = tracking['true_positives'] + tracking['false_negatives']
    nees = _nees([part['nees'] for part in parts])
    low, high = nees.bounds

    def mean(key: str, weight: str) -> float:
        return _weighted([(part[key], part['counts'][weight]) for part in parts])

    return TableRow(
        scenario,
        len(reports),
        sum(count['people'] for count in counts),
        mean('streaming_mean_iou', 'streamed'),
        mean('mean_iou', 'people'),
        mean('mean_iou_20px', 'people_20px'),
        mean('recall', 'people'),
        found / (found + false) if found + false else math.nan,
        1.0 - missed / true_boxes if true_boxes else math.nan,
        _share(2 * tracking['idtp'], 2 * tracking['idtp'] + tracking['idfp'] + tracking['idfn']),
        tracking['id_switches'],
        mean('position_error_m', 'located'),
        mean('position_error_at_20m', 'located_at_20m'),
        mean('range_error_m', 'located'),
        nees.mean,
        low,
        high,
        nees.samples,
        nees.in_bounds,
        _greatest([report['latency_ms']['p95'] for report in reports]),
        _greatest([report['age_ms'].get('camera', {}).get('p95') for report in reports]),
    )


def _added(parts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {key: sum(part[key] for part in parts) for key in _ADDED}


def _nees(parts: Sequence[Mapping[str, Any]]) -> Consistency:
    samples = sum(part['samples'] for part in parts)
    mean = _weighted([(part['mean'], part['samples']) for part in parts])
    return Consistency(parts[0]['dof'] if parts else 4, samples, mean)


def _weighted(values: Sequence[tuple[float | None, int]]) -> float:
    known = [(value, weight) for value, weight in values if value is not None and weight]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else math.nan


def _greatest(values: Sequence[float | None]) -> float:
    return max((value for value in values if value is not None), default=math.nan)


def _share(part: float, whole: int) -> float:
    return part / whole if whole else math.nan


def _number(value: float, digits: int) -> str:
    return '–' if math.isnan(value) else f'{value:.{digits}f}'


def _nees_cell(row: TableRow) -> str:
    if row.nees_in_bounds is None:
        return '–'
    verdict = 'in' if row.nees_in_bounds else 'not in'
    return f'{row.nees:.2f} {verdict} {row.nees_low:.2f}..{row.nees_high:.2f}'


_COLUMNS: tuple[tuple[str, Callable[[TableRow], str]], ...] = (
    ('scenario', lambda row: row.scenario.replace('|', '/')),
    ('flights', lambda row: f'{row.flights}'),
    ('people', lambda row: f'{row.people}'),
    ('streaming mean IoU', lambda row: _number(row.streaming_mean_iou, 3)),
    ('mean IoU', lambda row: _number(row.mean_iou, 3)),
    ('mean IoU, 20 px', lambda row: _number(row.mean_iou_20px, 3)),
    ('recall', lambda row: _number(row.recall, 3)),
    ('precision', lambda row: _number(row.precision, 3)),
    ('MOTA', lambda row: _number(row.mota, 3)),
    ('IDF1', lambda row: _number(row.idf1, 3)),
    ('id switches', lambda row: f'{row.id_switches}'),
    ('position error, m', lambda row: _number(row.position_error_m, 2)),
    ('at 20 m', lambda row: _number(row.position_error_at_20m, 2)),
    ('range error, m', lambda row: _number(row.range_error_m, 2)),
    ('NEES (4)', _nees_cell),
    ('latency p95, ms', lambda row: _number(row.latency_p95_ms, 1)),
    ('camera age p95, ms', lambda row: _number(row.camera_age_p95_ms, 0)),
)

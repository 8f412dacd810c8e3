"""The figures of the reports of many flights in one table, a row for each scenario and for all.

Medians of flights are averaged, weighted by their samples.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import (
    Bench,
    Figure,
    Results,
    Row,
    Sums,
    flight_subject,
    flights_about,
)
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import Judged

NAME = 'replay-set'
ALL = 'all flights'
_SCENARIOS = 'by scenario'
_UNNAMED = 'unnamed'
_FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        'people': Figure('people per flight', 'people', digits=0),
        'streaming_mean_iou': FIGURES['streaming_mean_iou'],
        'streaming_mean_iou_decisions': Figure(
            'of decisions alone', 'stream_overlap_decisions', 'streamed'
        ),
        'mean_iou': FIGURES['mean_iou'],
        'mean_iou_20px': Figure('mean IoU, 20 px up', 'overlap_20px', 'people_20px'),
        **{name: FIGURES[name] for name in ('recall', 'precision', 'mota', 'idf1')},
        'id_switches': Figure('id switches per flight', 'id_switches', digits=1),
        'position_error': Figure('position error, m', 'position_error', 'located', 2),
        'position_error_at_20m': Figure('at 20 m', 'position_error_at_20m', 'located_at_20m', 2),
        'range_error': Figure('range error, m', 'range_error', 'located', 2),
        'nees': FIGURES['nees'],
        'outside': Figure('outside 95 %', 'nees_outside', 'nees_samples'),
        'latency_p95': Figure('latency p95 (worst), ms', 'latency', digits=1, quantile=1.0),
        'age_p95': Figure('camera age p95 (worst), ms', 'age', digits=0, quantile=1.0),
    }
)


def set_table(flights: Sequence[Path], reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of a set; without rows where no flight has ground truth.

    :param reports: contents of report.json, of each flight
    """
    subjects = tuple(map(flight_subject, flights))
    scenarios = [scenario_of(report) for report in reports]

    def by_scenario(results: Results) -> Mapping[Row, Sequence[Sums]]:
        return {
            Row(name, group=_SCENARIOS): [
                sums if scenario == name else {}
                for sums, scenario in zip(results[ALL], scenarios, strict=True)
            ]
            for name in sorted({scenario for scenario in scenarios if scenario})
        }

    bench = Bench(
        'Flights as they are replayed',
        (Row(ALL),),
        _FIGURES,
        subjects,
        about=flights_about(subjects),
        derive=by_scenario,
    )
    judged = Judged({ALL: list(map(report_sums, reports))}, {})
    sets = filter(None, dict.fromkeys(flight.parent.name for flight in flights))
    return bench_table(NAME, bench, judged, shlex.join(['mmedge', 'lab', NAME, *sets]))


def scenario_of(report: Mapping[str, Any]) -> str:
    """Return what the flight of a report was flown over; '' without ground truth."""
    accuracy = report.get('accuracy')
    return (' '.join(accuracy['scenarios']) or _UNNAMED) if accuracy else ''


def report_sums(report: Mapping[str, Any]) -> Sums:
    """Return the sums of a flight by its report.json; none without ground truth."""
    accuracy, tracking = report.get('accuracy'), report.get('tracking')
    if not accuracy or not tracking:
        return {}
    counts, nees = accuracy['counts'], accuracy['nees']
    weighed = {
        'overlap': ('mean_iou', counts['people']),
        'overlap_20px': ('mean_iou_20px', counts['people_20px']),
        'found': ('recall', counts['people']),
        'stream_overlap': ('streaming_mean_iou', counts['streamed']),
        'stream_overlap_decisions': ('streaming_mean_iou_decisions', counts['streamed']),
        'position_error': ('position_error_m', counts['located']),
        'range_error': ('range_error_m', counts['located']),
        'position_error_at_20m': ('position_error_at_20m', counts['located_at_20m']),
    }
    true_boxes = tracking['true_positives'] + tracking['false_negatives']
    return {
        **{name: (accuracy[key] or 0.0) * weight for name, (key, weight) in weighed.items()},
        **{k: counts[k] for k in ('people', 'people_20px', 'streamed', 'located')},
        'located_at_20m': counts['located_at_20m'],
        'hits': counts['true_positives'],
        'boxes': counts['true_positives'] + counts['false_positives'],
        'errors': sum(
            tracking[k] or 0 for k in ('false_negatives', 'false_positives', 'id_switches')
        ),
        'true_boxes': true_boxes,
        'same': 2 * tracking['idtp'],
        'tracked': 2 * tracking['idtp'] + tracking['idfp'] + tracking['idfn'],
        'id_switches': tracking['id_switches'] or 0,
        'nees_samples': nees['samples'],
        'nees': (nees['mean'] or 0.0) * nees['samples'],
        'nees_outside': (nees['outside_95'] or 0.0) * nees['samples'],
        'latency': _known(report['latency_ms']['p95']),
        'age': _known(report['age_ms'].get('camera', {}).get('p95')),
    }


def _known(value: float | None) -> list[float]:
    return [] if value is None else [value]

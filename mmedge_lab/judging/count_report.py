"""How well people are counted, from flights to a folder with a report."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.count_cases import (
    CountedFlight,
    count_tasks,
    observe,
    read_observed,
)
from mmedge_lab.judging.count_ranges import OURS, WORDS, range_figures, windows_of
from mmedge_lab.judging.flight_bootstrap import CONFIDENCE, RESAMPLES
from mmedge_lab.judging.flight_workers import OnProgress, work_through
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.report_files import write_report

_FEW_SEEDS = 10
# What is promised of stated ranges.
_LEAST_COVERAGE, _MOST_WIDTH = 0.85, 3.0


@dataclass(frozen=True)
class CountRequest:
    """What to judge; ``profile`` '': service times are measured, ``jobs`` 0: one per processor."""

    bundle: Path
    sets: tuple[str, ...]
    flights: tuple[tuple[str, Path], ...]
    out: Path
    profile: str = ''
    jobs: int = 1
    command: str = ''


def observed_flights(
    request: CountRequest, on_progress: OnProgress | None = None
) -> list[CountedFlight]:
    """Return what was perceived of flights; what was found before is kept.

    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if flights are none that can be judged
    :raises ReportError: if it cannot be kept
    """
    tasks = count_tasks(request.flights, request.bundle, request.profile, request.out)
    work_through(tasks, observe, request.jobs, on_progress)
    return [read_observed(task) for task in tasks]


def evaluate_counts(
    request: CountRequest, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Count people in windows of flights, and write the report; returns its content.

    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if flights are none that can be judged, or too short
    :raises ReportError: if the report cannot be written
    """
    begun = time.process_time()
    flights = observed_flights(request, on_progress)
    windows = [window for flight in flights for window in windows_of(flight)]
    if not windows:
        raise EvaluationError('the flights are shorter than two seconds; name longer ones')
    seeds = len({flight.seed for flight in flights})
    report = {
        'sets': list(request.sets),
        'command': request.command,
        'software': software_identity(request.bundle),
        'profile': Path(request.profile).name,
        'flights': [flight.name for flight in flights],
        'bootstrap': {
            'unit': 'seed',
            'seeds': seeds,
            'resamples': RESAMPLES,
            'confidence': CONFIDENCE,
        },
        **range_figures(windows),
    }
    report['verdicts'] = _verdicts(report['rows'])
    report['problems'] = (
        [f'only {seeds} seeds of flights: intervals over so few are too narrow']
        if seeds < _FEW_SEEDS
        else []
    )
    report['resources'] = {
        'cpu_s': time.process_time() - begun,
        'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    write_report(report, request.out, {}, (), ())
    return report


def _verdicts(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    ours = rows[OURS]
    coverage, width = ours['coverage'], ours['width']
    found = [
        (
            f'the range holds in at least {_LEAST_COVERAGE:.0%} of windows',
            coverage,
            coverage['value'] >= _LEAST_COVERAGE,
        ),
        (
            f'it is at most {_MOST_WIDTH:g} people wide on average',
            width,
            width['value'] <= _MOST_WIDTH,
        ),
    ]
    for name, words in WORDS.items():
        if name != OURS:
            gain = rows[name]['score_of_range_less_by']
            met = gain['low'] is not None and gain['low'] > 0.0
            found.append((f'a better interval score than {words}, by', gain, met))
    return [
        {'target': target, 'found': values, 'verdict': 'met' if met else 'missed'}
        for target, values, met in found
    ]

"""How well flight memories find what flights saw, from flights to a folder with a report."""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_report import plain
from mmedge_lab.judging.flight_bootstrap import CONFIDENCE, RESAMPLES
from mmedge_lab.judging.flight_workers import OnProgress, work_through
from mmedge_lab.judging.memory_cases import (
    EXIT,
    MemoryTask,
    RememberedFlight,
    memory_tasks,
    read_remembered,
    remember,
)
from mmedge_lab.judging.memory_costs import memory_costs
from mmedge_lab.judging.memory_judging import (
    Asked,
    Hits,
    asked_in_words,
    causes,
    examples_of,
    hits_by_example,
    hits_by_words,
    refined_hits,
)
from mmedge_lab.judging.memory_rivals import (
    MEAN_COLOUR,
    RIDGE,
    Regression,
    Rival,
    levels_rival,
    rivals_of,
)
from mmedge_lab.judging.memory_scrubbing import scrubbing_figures, sought
from mmedge_lab.judging.memory_truth import MOST_FITTING, galleries
from mmedge_lab.simulation.scenario import LIGHTS
from mmedge_ros.memory.encoders import MemoryEncoder
from mmedge_ros.memory.views import LEAST_HEIGHT
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.accuracy import SIZE_EDGES, bands
from mmedge_ros.report.report_files import write_report

_FEW_SEEDS = 10
_REFINED = 'refined_{}'
# What is promised: at least so many questions in words answered, so much more by example than a
# mean colour answers, and so much of what the best exit answers at the first one, and refined.
_LEAST_WORDS, _LEAST_GAIN, _FIRST_KEEPS, _REFINED_KEEPS = 0.65, 0.15, 0.95, 0.98
_AT_ONE, _AT_TEN = 0, 1


@dataclass(frozen=True)
class MemoryRequest:
    """What to judge; ``ridge`` None leaves that rival out, ``jobs`` 0: one per processor.

    ``watts`` is what a processor at work is taken to need.
    """

    bundle: Path
    sets: tuple[str, ...]
    flights: tuple[tuple[str, Path], ...]
    out: Path
    watts: float
    jobs: int = 1
    ridge: Regression | None = None
    command: str = ''


def evaluate_memory(
    request: MemoryRequest, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Build memories of flights, ask them, and write the report; returns its content.

    What was built before of the same flights, bundle and software is kept.

    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if flights are none that can be judged, or too few
    :raises ReportError: if the report cannot be written
    :raises ReplayError: if a flight cannot be read
    """
    begun = time.process_time()
    usual = MemoryEncoder(request.bundle).exit
    tasks = memory_tasks(request.flights, request.bundle, request.out)
    stepped = memory_tasks(request.flights, request.bundle, request.out, steps=True)
    work_through([*tasks, *stepped], remember, request.jobs, on_progress)
    flights, others = ([read_remembered(task) for task in some] for some in (tasks, stepped))
    if not any(flight.costs['objects'] for flight in flights):
        raise EvaluationError('no view of an object was kept of any flight; take longer ones')
    rivals = rivals_of(flights, request.bundle, usual, request.ridge)
    asked = asked_in_words(flights)
    words = hits_by_words(flights, rivals, asked)
    levels = levels_rival(others, request.bundle, usual)
    words.by_rival[levels.name] = hits_by_words(others, [levels], asked).by_rival[levels.name]
    report = {
        **_described(request, flights, tasks),
        'words': _words(flights, [*rivals, levels], asked, words),
        'refining': _refining(flights, rivals, asked, words),
        'examples': _examples(flights, rivals),
        'scrubbing': scrubbing_figures(sought(flights, rivals[0])),
        'levels': _levels(others),
        'costs': memory_costs(flights, rivals[0].scorer, request.watts),
    }
    report['verdicts'] = _verdicts(report, rivals, words)
    report['problems'] = [
        *_problems(report, request),
        *(f'{flight.name}: {problem}' for flight in flights for problem in flight.problems),
    ]
    report['resources'] = {
        'cpu_s': time.process_time() - begun,
        'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
    }
    write_report(report, request.out, {}, (), ())
    return report


def _described(
    request: MemoryRequest, flights: Sequence[RememberedFlight], tasks: Sequence[MemoryTask]
) -> dict[str, Any]:
    return {
        'sets': list(request.sets),
        'command': request.command,
        'software': software_identity(request.bundle),
        'flights': [task.flight_name for task in tasks],
        'seconds': sum(flight.costs['seconds'] for flight in flights),
        'bootstrap': {
            'unit': 'seed',
            'seeds': len({flight.seed for flight in flights}),
            'resamples': RESAMPLES,
            'confidence': CONFIDENCE,
        },
    }


def _words(
    flights: Sequence[RememberedFlight],
    rivals: Sequence[Rival],
    asked: Sequence[Asked],
    hits: Hits,
) -> dict[str, Any]:
    own = rivals[0].name
    sizes = {flight.name: len(flight.objects) for flight in flights}
    drawn = galleries({flight.name: flight.seed for flight in flights})
    lights = np.array([one.target.light for one in asked])
    heights = np.array([one.target.height for one in asked])
    strata = {
        'light': {light: lights == light for light in LIGHTS if (lights == light).any()},
        'size': {
            f'{name} px': (heights >= low) & (heights < high)
            for name, low, high in bands((LEAST_HEIGHT, *SIZE_EDGES[1:]))
            if ((heights >= low) & (heights < high)).any()
        },
    }
    return {
        'galleries': len(drawn),
        'objects': [sum(sizes[name] for name in gallery) for gallery in drawn],
        'most_fitting': MOST_FITTING,
        'questions': sum(one.weight for one in asked),
        'rows': _rows(rivals, hits),
        'strata': {
            factor: {
                name: {
                    'questions': float(hits.weights[chosen].sum()),
                    'hit_10': plain(hits.share(own, _AT_TEN, chosen)),
                    'hit_1': plain(hits.share(own, _AT_ONE, chosen)),
                }
                for name, chosen in of.items()
            }
            for factor, of in strata.items()
        },
        'causes': causes(flights, rivals[0], asked),
    }


def _rows(rivals: Sequence[Rival], hits: Hits) -> dict[str, Any]:
    own = rivals[0].name
    return {
        rival.name: {
            'words': rival.words,
            'hit_10': plain(hits.share(rival.name, _AT_TEN)),
            'hit_1': plain(hits.share(rival.name, _AT_ONE)),
            'hit_10_of_memory_minus_this': plain(hits.difference(own, rival.name, _AT_TEN)),
            'hit_1_of_memory_minus_this': plain(hits.difference(own, rival.name, _AT_ONE)),
        }
        for rival in rivals
    }


def _refining(
    flights: Sequence[RememberedFlight],
    rivals: Sequence[Rival],
    asked: Sequence[Asked],
    words: Hits,
) -> dict[str, Any]:
    """Return what a first exit finds when its best moments are embedded again."""
    by_name = {rival.name: rival for rival in rivals}
    first = min(name for name in by_name if name.startswith(EXIT.format('')))
    found = refined_hits(flights, by_name[first], rivals[0], asked)
    words.by_rival.update({_REFINED.format(count): hits for count, hits in found.items()})
    return {
        'from': first,
        'to': rivals[0].name,
        'rows': {
            str(count): {
                'hit_10': plain(words.share(_REFINED.format(count), _AT_TEN)),
                'hit_1': plain(words.share(_REFINED.format(count), _AT_ONE)),
            }
            for count in found
        },
    }


def _examples(
    flights: Sequence[RememberedFlight], rivals: Sequence[Rival]
) -> dict[str, Any] | None:
    examples = examples_of(flights)
    if not examples:
        return None
    return {
        'questions': len(examples),
        'rows': _rows(rivals, hits_by_example(flights, rivals, examples)),
    }


def _levels(flights: Sequence[RememberedFlight]) -> dict[str, int]:
    """Return how many views each level of the detector gave."""
    levels = np.concatenate([flight.table.texts['level'] for flight in flights])
    names, counts = np.unique(levels, return_counts=True)
    return dict(zip(map(str, names), map(int, counts), strict=True))


def _verdicts(
    report: Mapping[str, Any], rivals: Sequence[Rival], words: Hits
) -> list[dict[str, Any]]:
    own = rivals[0].name
    exits = [rival.name for rival in rivals if rival.name.startswith(EXIT.format(''))]
    best = max(exits, key=lambda name: words.share(name, _AT_TEN).value)
    verdicts = [
        _verdict(
            f'words: hit@10 of at least {_LEAST_WORDS} with the detector’s boxes',
            words.share(own, _AT_TEN),
            _LEAST_WORDS,
        ),
        _verdict(
            f'{min(exits)} keeps {_FIRST_KEEPS:.0%} of the best exit ({best})',
            words.ratio(min(exits), best, _AT_TEN),
            _FIRST_KEEPS,
        ),
    ]
    for count in report['refining']['rows']:
        kept = words.ratio(_REFINED.format(count), best, _AT_TEN)
        aim = f'{count} refined keep {_REFINED_KEEPS:.0%} of the best exit ({best})'
        verdicts.append(_verdict(aim, kept, _REFINED_KEEPS))
    examples = report['examples']
    colours = {} if examples is None else examples['rows']
    for name in (MEAN_COLOUR, RIDGE):
        if name in colours:
            gain = colours[name]['hit_10_of_memory_minus_this']
            aim = f'by example: hit@10 at least {_LEAST_GAIN} above {name.replace("_", " ")}'
            verdicts.append(_verdict(aim, gain, _LEAST_GAIN))
    return verdicts


def _verdict(target: str, found: Any, least: float) -> dict[str, Any]:
    values = found if isinstance(found, dict) else plain(found)
    return {
        'target': target,
        'found': values,
        'least': least,
        'verdict': 'met' if (values['value'] or 0.0) >= least else 'missed',
    }


def _problems(report: Mapping[str, Any], request: MemoryRequest) -> list[str]:
    problems = []
    seeds = report['bootstrap']['seeds']
    if seeds < _FEW_SEEDS:
        problems.append(f'only {seeds} seeds of flights: intervals over so few are too narrow')
    if request.ridge is None:
        problems.append('no ridge regression of mean colours is compared: name crops with --crops')
    if report['examples'] is None:
        problems.append(
            'no two flights show the same people in another light, so nothing is asked by example'
        )
    return problems

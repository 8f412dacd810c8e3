"""Flights played live: this graph beside graphs that wait, overloaded, limited, and described.

All play the same flight with the same networks. A graph that waits has encoders that hold units
until their window ends, and a fusion that decides whole windows; the rest is ours. The floor is
what the latency is at least: the unit that was waited for, encoded and sent at once. An overloaded
camera encoder has a share of the processor that a fraction of the pictures needs; its rival is a
fixed lower rate that fits. With a profile of this machine the optimiser flies, too: while the
processor is taken away in steps, and beside a language model that describes decisions, with the
demand for its time heard and without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Results, Row, Subject, Sums
from mmedge_lab.rivals.mmedge.live_flight import (
    BLOCKING,
    BUSY_PROCESSES,
    CACHED,
    FRESH,
    GRACE,
    OURS,
    beside_busy_processes,
    changed,
    fly,
    limited,
    live_sums,
    with_parameters,
)
from mmedge_lab.rivals.mmedge.stepped_flight import SHARES, fly_steps, without_saving
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.questions.describing import KINDS, NEWEST
from mmedge_ros.replay import ReplayError
from mmedge_ros.ros.graph.description import OPTIMIZER
from mmedge_ros.ros.graph.options import GraphOptions

FLOOR = 'floor: one encode and one hop'
OVERLOADED, FIXED, BUSY = 'overloaded', 'a fixed rate that fits', 'a busy machine'
ADAPTIVE, KEPT = 'with adaptation', 'without'
NO_MODEL = 'no model'
# Groups of rows.
_OVERLOAD, _STEPS, _DESCRIBED = (
    'more pictures than can be encoded',
    f'{", ".join(f"{share:g}" for share in SHARES)} % of the machine',
    'beside a language model',
)
_MS = 1e3
# Deadline of decisions where the optimiser flies, s.
LIMIT = 0.1
# So long a language model is loaded, and its time gets known (s).
_MODEL_STARTING = 7.0
# Pictures for each that can be encoded, of which the fixed rate takes a share.
FACTOR, _FITS = 3.0, 0.8
_FIRST_SHARE, _LEAST_SHARE, _MOST_SHARE = 10.0, 1.0, 100.0
# The second look corrects the first, which may have limited nothing.
_LOOKS = 2
_FIGURES = {
    'on_time': Figure('on time, %', 'on_time', 'windows', 1, scale=100.0),
    'fresh': Figure('of these fresh, %', 'fresh', 'on_time', 1, scale=100.0),
    'mean': Figure('latency mean, ms', 'latency_sum', 'decisions', 1, relative=True),
    'p50': Figure('p50, ms', 'latency', digits=1, quantile=0.5),
    'p95': Figure('p95, ms', 'latency', digits=1, quantile=0.95),
    'age_p50': Figure('age of the picture p50, ms', 'age', digits=1, quantile=0.5),
    'age_p95': Figure('p95, ms', 'age', digits=1, quantile=0.95),
    'dropped': Figure('windows dropped, %', 'dropped', 'windows', 1, scale=100.0),
    'pictures': Figure('pictures encoded per s', 'camera_hz', digits=0),
    'scans': Figure('scans encoded per s', 'radar_hz', digits=0),
    'processor': Figure('processor s per s', 'processor', digits=2, relative=True),
    'memory': Figure('memory, MB', 'memory', digits=0),
    'changes': Figure('changes a minute', 'changes', 'seconds', 1, scale=60.0),
    'sentences': Figure('sentences in time, %', 'sentences_in_time', 'sentences', 1, scale=100.0),
    'streaming_mean_iou': FIGURES['streaming_mean_iou'],
}


def bench(
    request: BenchRequest,
    *,
    repeats: int = 1,
    profile: str = '',
    model: str = '',
    kinds: str = 'count',
    total_limit_s: float = 1.0,
) -> Bench:
    """Play flights live: beside graphs that wait, overloaded, limited and described.

    :param repeats: times each flight is played each way
    :param profile: of this machine, as `mmedge profile` measures it, for rows of the optimiser
    :param model: language model that describes decisions, MODEL.gguf; needs a profile
    :param kinds: of its questions, by commas, each flown by itself
    :param total_limit_s: of decision and sentence
    """
    if model and not profile:
        raise EvaluationError('give the profile of this machine as well: --set profile=FILE')
    wanted = [kind.strip() for kind in kinds.split(',')]
    if not set(wanted) <= set(KINDS):
        raise EvaluationError(f'kinds={kinds!r}: there are {", ".join(KINDS)}')
    flights, detector = request.flights(), request.detector
    subjects = tuple(
        Subject(f'{flight.name}, {number}', flight.path, str(number))
        for number in range(1 if request.quick else repeats)
        for flight in flights
    )
    rows = [Row(name, partial(_waiting, detector, name)) for name in (OURS, CACHED, BLOCKING)]
    overload = partial(_overloaded, detector, flights[0].flight)
    rows += [Row(n, partial(overload, n), group=_OVERLOAD) for n in (OVERLOADED, FIXED)]
    rows.append(Row(BUSY, partial(_busy, detector), group=_OVERLOAD))
    if profile:
        stepped = partial(fly_steps, detector, LIMIT, 6.0 if request.quick else 15.0)
        rows += [
            Row(name, partial(stepped, used), group=_STEPS)
            for name, used in ((ADAPTIVE, profile), (KEPT, ''))
        ]
    if model:
        described = partial(_described, detector, profile, str(Path(model).resolve()))
        asked = {NO_MODEL: ('', 0.0)}
        for kind in wanted:
            asked[f'{kind} with a demand'] = kind, total_limit_s
            asked[f'{kind} without'] = kind, 0.0
        rows += [
            Row(name, partial(described, kind, heard, total_limit_s), group=_DESCRIBED)
            for name, (kind, heard) in asked.items()
        ]
    machine = machine_description()
    return Bench(
        'Flights played live',
        tuple(rows),
        _FIGURES,
        subjects,
        references=(BLOCKING, CACHED),
        about={
            'runs': ', '.join(subject.name for subject in subjects),
            'machine': f'{machine["processor"]}, {machine["cores"]} processors',
            'on time': f'within {_MS * GRACE:g} ms of the deadline',
            'fresh': f'with a picture younger than {FRESH:g} s',
            'overload': f'{FACTOR:g} pictures for each encoded; {BUSY_PROCESSES} busy processes',
        },
        derive=_floor,
        notes=lambda _: () if profile else ('with --set profile=FILE the optimiser flies, too',),
    )


def _floor(results: Results) -> Mapping[Row, Sequence[Sums]]:
    if OURS not in results:
        return {}
    floors = [
        {
            'latency': of['floor'],
            'latency_sum': sum(of['floor']),  # type: ignore[arg-type]
            'decisions': of['decisions'],
            'age': of['age_floor'],
        }
        for of in results[OURS]
    ]
    return {Row(FLOOR): floors}


def _waiting(detector: str, system: str, subject: Subject) -> Sums:
    options = GraphOptions(bag=str(subject.flight), detector=detector)
    return live_sums(fly(options, partial(changed, system)))


def _overloaded(detector: str, first: Path, name: str, subject: Subject) -> Sums:
    share, wanted = limit_for(detector, first)
    return live_sums(limited(detector, subject.flight, share, _FITS * wanted * (name == FIXED)))


@cache
def limit_for(detector: str, flight: Path) -> tuple[float, float]:
    """Return the share of the machine that overloads the encoder, and the pictures it then does.

    :raises ReplayError: if nothing is encoded
    """
    share = _FIRST_SHARE
    for _ in range(_LOOKS):
        record = limited(detector, flight, share).record
        units = record.units[CAMERA]
        if not units.encoded:
            raise ReplayError(f'nothing was encoded of {flight}; this machine is too busy')
        wanted = (units.received - units.thinned) / record.duration / FACTOR
        encoded = units.encoded / record.duration
        share = min(max(share * wanted / encoded, _LEAST_SHARE), _MOST_SHARE)
    return share, wanted


def _busy(detector: str, subject: Subject) -> Sums:
    options = GraphOptions(bag=str(subject.flight), detector=detector)
    return live_sums(fly(options, partial(changed, OURS), beside_busy_processes))


def _described(
    detector: str,
    profile: str,
    model: str,
    kind: str,
    heard: float,
    total: float,
    subject: Subject,
) -> Sums:
    """Fly with the optimiser, described by sentences of a kind; '' for none.

    :param heard: limit (s) of which the optimiser hears, 0 for none
    :param total: limit of decision and sentence, s
    """
    own = {'fusion': {'pipeline.windows.deadline': LIMIT}, OPTIMIZER: without_saving()}
    describing = {'model': model, 'describe.kinds': [kind], 'describe.total_limit': heard}
    options = GraphOptions(
        bag=str(subject.flight),
        detector=detector,
        optimise=True,
        profile=profile,
        question_parameters=describing if kind else None,
    )
    flown = fly(options, partial(with_parameters, own))
    return {
        **live_sums(flown, LIMIT, _MODEL_STARTING),
        **sentence_sums([figures for _, figures in flown.heard.described], total),
    }


def sentence_sums(said: Sequence[Mapping[str, str]], total: float) -> Sums:
    """Count the sentences that came in time, by what the node says of itself once a second.

    Of sentences that are made faster than that some lack.

    :param total: limit of decision and sentence, s
    """
    last = {figures['sentences']: float(figures[NEWEST]) / _MS for figures in said}
    seconds = [taken for taken in last.values() if math.isfinite(taken)]
    return {
        'sentences': len(seconds),
        'sentences_in_time': sum(taken <= total for taken in seconds),
    }

"""How soon pictures that are unlike the calibration flights' are noticed, and how often in vain.

Flights are repeated for a minute. Those by day are changed as lamps or fog would; the others, and
the same as they are, must be without an alarm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, flights_about
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_lab.training.picture_fit import Change, flight_seconds, repeated, same
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.picture_drift import (
    PICTURES_FILE,
    PictureDrift,
    Second,
    UsualPictures,
    read_usual_pictures,
)

AS_IT_IS = 'as it is'
FLICKER_HZ = 3.7
# s. An alarm should come within it.
IN_TIME = 20
_DAY = '_day_'
# How bright fog by day is, of white.
_FOG = 0.7
_WHITE = 255.0

_FIGURES: Mapping[str, Figure] = {
    'noticed': Figure('noticed', 'alarms', 'flights'),
    'in_time': Figure(f'within {IN_TIME} s', 'in_time', 'flights'),
    'median': Figure('median, s', 'delays', digits=0, quantile=0.5),
    'latest': Figure('latest, s', 'delays', digits=0, quantile=1.0),
    'nearest': Figure('nearest to an alarm', 'nearest', digits=2, quantile=1.0),
}


def flicker(amplitude: float) -> Change:
    """Return a change of brightness by up to ``amplitude`` (0..1), as of lamps and a shutter."""
    turns = 2.0 * math.pi * FLICKER_HZ
    return lambda _mean, at: (1.0 + amplitude * math.sin(turns * at), 0.0)


def fog(left: float) -> Change:
    """Return fog by day that leaves so much (0..1) of every contrast."""
    return lambda _mean, _at: (left, (1.0 - left) * _FOG * _WHITE)


def haze(left: float) -> Change:
    """Return what leaves so much (0..1) of every contrast, and the mean as it is."""
    return lambda mean, _at: (left, (1.0 - left) * mean)


CHANGES: Mapping[str, Change] = {
    AS_IT_IS: same,
    'flicker of 5 %': flicker(0.05),
    'flicker of 10 %': flicker(0.1),
    'flicker of 20 %': flicker(0.2),
    'fog, 30 % of the contrast': fog(0.3),
    'fog, 45 % of the contrast': fog(0.45),
    'haze, 30 % of the contrast': haze(0.3),
    'haze, 45 % of the contrast': haze(0.45),
}


def _changed(
    every: int, subject: Subject, rows: Sequence[Row], _: OnShare
) -> dict[str, list[Second]]:
    """Look at the pictures of a flight, every so many-th, under each change."""
    made = read_description(subject.flight)
    by_day = made is not None and _DAY in made.scenario
    changes = {row.name: CHANGES[row.name] for row in rows if by_day or row.name == AS_IT_IS}
    return flight_seconds(subject.flight, changes, every)


def bench(request: BenchRequest, *, every: int = 1) -> Bench:
    """Judge what a bundle notices of changed pictures.

    :param every: look at every so many-th picture only
    """
    folder, subjects = default_detector(request.detector or 'flight_people'), request.flights()
    if every < 1:
        raise EvaluationError(f'every={every} must be 1 or more')
    usual = read_usual_pictures(folder)
    if usual is None:
        raise EncodingError(
            f'{folder} does not say how pictures look; `mmedge lab train fit pictures` adds it'
        )
    return Bench(
        'Unusual pictures',
        tuple(Row(name, partial(_judged, name, usual)) for name in CHANGES),
        _FIGURES,
        subjects,
        partial(_changed, every),
        key=f'{sha256_of(folder / PICTURES_FILE)} {every}',
        about={**flights_about(subjects), 'bundle': folder.name, 'changed': 'flights by day'},
    )


def _judged(name: str, usual: UsualPictures, seconds: Mapping[str, Sequence[Second]]) -> Sums:
    return alarm_sums(usual, seconds[name]) if seconds.get(name) else {}


def alarm_sums(usual: UsualPictures, seconds: Sequence[Second]) -> Sums:
    """Return what came of a flight that is repeated for a minute: alarms, and delays in s."""
    drift, delay, nearest = PictureDrift(usual), 0, 0.0
    for number, second in enumerate(repeated(seconds), 1):
        drift.take_second(second)
        nearest = max(nearest, *(sum_.sum / sum_.bounds.alarm for sum_ in drift.sums.values()))
        if drift.alarms and not delay:
            delay = number
    return {
        'flights': 1,
        'alarms': int(delay > 0),
        'in_time': int(0 < delay <= IN_TIME),
        'delays': [delay] if delay else [],
        'nearest': [nearest],
    }

"""How soon pictures that are unlike the calibration flights' are noticed, and how often in vain.

Flights are repeated for a minute. Those by day are changed as lamps or fog would; the others, and
the same as they are, must be without an alarm. Rivals are fitted to the same calibration flights
by the same rule, and summed up in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.picture_seconds import (
    Look,
    SeenSecond,
    fitted_bounds,
    flicker,
    flight_seconds,
    fog,
    haze,
    is_by_day,
    repeated,
    same,
)
from mmedge_ros.data_types import OF_WHOLE_PICTURE, FloatArray
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.picture_drift import Excess, values_of
from mmedge_ros.encoding.usual_pictures import Bounds, UsualPictures, logs_of
from mmedge_ros.sensing.camera.image import Picture

OURS = 'what flies'
# s. An alarm must come within it.
IN_TIME = 20
CHANGES = {
    'flicker of 5 %': flicker(0.05),
    'flicker of 10 %': flicker(0.1),
    'flicker of 20 %': flicker(0.2),
    'fog, 30 % of the contrast': fog(0.3),
    'fog, 45 % of the contrast': fog(0.45),
    'haze, 30 % of the contrast': haze(0.3),
    'haze, 45 % of the contrast': haze(0.45),
}
AS_IT_IS = 'as it is'
Value = Callable[[SeenSecond], float]


class Method(NamedTuple):
    """Values of a second, each with its bounds; one that sums up to its alarm is enough."""

    name: str
    values: tuple[Value, ...]
    bounds: tuple[Bounds, ...]


class FlightSeconds(NamedTuple):
    """Seconds of a flight by what was changed."""

    name: str
    by_change: dict[str, list[SeenSecond]]


def run_drift_bench(
    usual: UsualPictures,
    flights: Sequence[Path],
    calibration: Sequence[Path],
    every: int,
    network: Path | None,
    on_share: Callable[[float, str], None],
) -> dict[str, Any]:
    """Judge the monitor, and its rivals where there are calibration flights to fit them to.

    :param network: bundle with feature grids, of which a rival is made
    :raises EncodingError: if the network cannot be used
    :raises ReplayError: if a flight cannot be read
    """
    look = None if network is None else pooled_look(network)
    total = len(calibration) + len(flights)
    seen: list[FlightSeconds] = []
    for number, flight in enumerate([*calibration, *flights]):
        on_share(number / total, flight.name)
        is_changed = number >= len(calibration) and is_by_day(flight)
        changes = {AS_IT_IS: same, **(CHANGES if is_changed else {})}
        seen.append(FlightSeconds(flight.name, flight_seconds(flight, changes, every, look)))
    fitted, judged = seen[: len(calibration)], seen[len(calibration) :]
    return drift_report([ours(usual), *rivals(fitted, look is not None)], judged)


def ours(usual: UsualPictures) -> Method:
    """Return what flies."""
    values = tuple(partial(_value_of, name, usual) for name in usual.bounds)
    return Method(OURS, values, tuple(usual.bounds.values()))


def _value_of(name: str, usual: UsualPictures, seen: SeenSecond) -> float:
    return values_of(seen.second, usual)[name]


def _paleness(seen: SeenSecond) -> float:
    brightness, contrast = seen.second.look[:2]
    return float(brightness) / max(float(contrast), 1e-3)


def rivals(fitted: Sequence[FlightSeconds], has_vectors: bool) -> list[Method]:
    """Return the rivals; none without flights to fit them to."""
    seconds = [flight.by_change[AS_IT_IS] for flight in fitted if flight.by_change[AS_IT_IS]]
    if not seconds:
        return []
    everything = [seen for flight in seconds for seen in flight]
    values: dict[str, Value] = {
        'contrast': lambda seen: 1.0 / max(float(seen.second.look[1]), 1e-3),
        'paleness': _paleness,
        'Mahalanobis of brightness, contrast, sharpness': _mahalanobis(
            everything, lambda seen: logs_of(seen.second.look[:OF_WHOLE_PICTURE])
        ),
    }
    if has_vectors:
        values['Mahalanobis of the pooled grid'] = _mahalanobis(
            everything, lambda seen: seen.vector
        )
    return [
        Method(
            name,
            (value,),
            (fitted_bounds([np.array([value(seen) for seen in flight]) for flight in seconds]),),
        )
        for name, value in values.items()
    ]


def _mahalanobis(
    seconds: Sequence[SeenSecond], vector: Callable[[SeenSecond], FloatArray]
) -> Value:
    vectors = np.array([vector(seen) for seen in seconds], np.float64)
    mean, spread = vectors.mean(axis=0), np.cov(vectors.T)
    # Shrunk a little: some channels hardly vary.
    spread = spread + 0.01 * np.eye(len(spread)) * float(np.trace(spread)) / len(spread)
    inverse = np.linalg.inv(spread)

    def distance(seen: SeenSecond) -> float:
        away = vector(seen) - mean
        return float(np.sqrt(away @ inverse @ away))

    return distance


def pooled_look(network: Path) -> Look:
    """Return the mean of a bundle's feature grid over its cells.

    :raises EncodingError: if it cannot be opened
    :raises EvaluationError: at the first picture, if it has no grid
    """
    detector = open_detector(network)

    def look(picture: Picture) -> FloatArray:
        grid = detector.detect(picture).grid
        if not grid.size:
            raise EvaluationError(f'{network} has no feature grid; name fused_people')
        return np.asarray(grid.astype(np.float64).mean(axis=(1, 2)))

    return look


def alarm_after(method: Method, seconds: Sequence[SeenSecond]) -> int | None:
    """Return the number of the second at whose end a method raises its alarm; None for none."""
    sums = [Excess(bounds) for bounds in method.bounds]
    for number, seen in enumerate(seconds, 1):
        taken = [sum_.take(value(seen)) for sum_, value in zip(sums, method.values, strict=True)]
        if any(taken):
            return number
    return None


def nearest_to_alarm(method: Method, seconds: Sequence[SeenSecond]) -> float:
    """Return the largest share of its alarm that a method sums up."""
    sums, most = [Excess(bounds) for bounds in method.bounds], 0.0
    for seen in seconds:
        for sum_, value in zip(sums, method.values, strict=True):
            sum_.take(value(seen))
            most = max(most, sum_.sum / sum_.bounds.alarm)
    return most


def drift_report(methods: Sequence[Method], judged: Sequence[FlightSeconds]) -> dict[str, Any]:
    """Return what each method made of the flights."""
    return {
        'in_time_s': IN_TIME,
        'flights': len(judged),
        'seconds': sum(len(flight.by_change[AS_IT_IS]) for flight in judged),
        'rows': [row for method in methods for row in _rows(method, judged)],
    }


def _rows(method: Method, judged: Sequence[FlightSeconds]) -> list[dict[str, Any]]:
    rows = []
    normal = {flight.name: repeated(flight.by_change[AS_IT_IS]) for flight in judged}
    alarms = {name: alarm_after(method, seconds) for name, seconds in normal.items()}
    shares = [nearest_to_alarm(method, seconds) for seconds in normal.values()]
    rows.append(
        {
            'method': method.name,
            'pictures': AS_IT_IS,
            **_delays(alarms),
            'nearest': max(shares, default=0.0),
        }
    )
    for change in CHANGES:
        changed = {
            flight.name: alarm_after(method, repeated(flight.by_change[change]))
            for flight in judged
            if flight.by_change.get(change)
        }
        if changed:
            rows.append(
                {'method': method.name, 'pictures': change, **_delays(changed), 'nearest': None}
            )
    return rows


def _delays(alarms: dict[str, int | None]) -> dict[str, Any]:
    delays = [delay for delay in alarms.values() if delay is not None]
    return {
        'flights': len(alarms),
        'alarms': len(delays),
        'in_time': sum(delay <= IN_TIME for delay in delays),
        'median_s': float(np.median(delays)) if delays else None,
        'latest_s': max(delays, default=None),
        'by_flight': alarms,
    }

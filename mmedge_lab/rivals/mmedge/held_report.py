"""The optimiser beside every fixed configuration and the clairvoyant choice: sums to figures.

*In time*: the share of windows decided within the latency limit; a configuration keeps the limit
where that is at least 97 %. The *clairvoyant* knows every share beforehand, and what each
configuration is worth in these very flights: in each phase it flies the best of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging.flight_bootstrap import Drawings, interval
from mmedge_ros.data_types import FloatArray

Sums = Mapping[str, float]
# Of the windows in time, and of the clairvoyant's accuracy, what is asked for.
IN_TIME, CLAIRVOYANT = 0.97, 0.97
# Of streaming IoU, what may be lost to the fixed configuration that was best elsewhere.
_MOST_LOST = 0.005
_SOON, _MOST_CHANGES = 3.0, 6.0
STEPS = 'steps'


class Condition(NamedTuple):
    """Shares of the processor in percent, one flight each; ``name`` is a share, or `STEPS`."""

    name: str
    shares: tuple[float, ...]


class Flights(NamedTuple):
    """What was flown.

    ``held``: configuration -> share -> sums of each flight. ``ours``: condition -> sums of each
    phase of each flight.
    """

    held: Mapping[str, Mapping[str, Sequence[Sums]]]
    ours: Mapping[str, Sequence[Sequence[Sums]]]
    seeds: tuple[str, ...]


def key_of(share: float) -> str:
    """Return what a share (percent) is called."""
    return f'{share:g}'


def best_held(flights: Flights, condition: Condition) -> str:
    """Return the fixed configuration with the best accuracy of those that keep the limit.

    Of all, where none does.
    """
    totals = {name: _held(flights, name, condition) for name in flights.held}
    keeping = [name for name, of in totals.items() if _in_time(of) >= IN_TIME]
    return max(keeping or totals, key=lambda name: _value(totals[name]))


def condition_report(
    flights: Flights, condition: Condition, best_elsewhere: str
) -> dict[str, Any]:
    """Judge the optimiser under a condition.

    :param best_elsewhere: the fixed configuration that was best on calibration flights
    """
    drawings = Drawings.of(flights.seeds)
    ours = [_summed(phases) for phases in flights.ours[condition.name]]
    rows: dict[str, dict[str, Any]] = {}
    for name in flights.held:
        of = _held(flights, name, condition)
        rows[name] = {
            'streaming_mean_iou': _value(of),
            'ours_minus_this': _difference(drawings, ours, of),
            'in_time': _in_time(of),
        }
    ordered = dict(sorted(rows.items(), key=lambda row: -row[1]['streaming_mean_iou']))
    best = [_best_at(flights, share) for share in condition.shares]
    clairvoyant = [
        _summed([flights.held[name][key_of(share)][number] for name, share in best])
        for number in range(len(ours))
    ]
    phases = [phase for flight in flights.ours[condition.name] for phase in flight]
    minutes = sum(phase['seconds'] for phase in phases) / 60.0
    releases = [phase['release'] for phase in phases if 'release' in phase]
    return {
        'shares': list(condition.shares),
        'ours': _value(ours),
        'in_time': _in_time(ours),
        'changes_per_minute': sum(phase['changes'] for phase in phases) / minutes,
        'release_s': {'median': median(releases), 'longest': max(releases), 'count': len(releases)}
        if releases
        else None,
        'best_elsewhere': best_elsewhere,
        'clairvoyant': {
            'configurations': [name for name, _ in best],
            'streaming_mean_iou': _value(clairvoyant),
            'share': _ratio(drawings, ours, clairvoyant),
        },
        'held': ordered,
    }


def judged(conditions: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what was asked for, whether it was met, and the figure."""
    rows = []
    for name, of in conditions.items():
        where = 'under steps' if name == STEPS else f'at {name} %'
        gap = of['held'][of['best_elsewhere']]['ours_minus_this']
        worst, least = min(
            ((other, row['ours_minus_this']) for other, row in of['held'].items()),
            key=lambda row: row[1]['value'],
        )
        rows.append(
            _judged(f'{where}: at most 0.5 points below {of["best_elsewhere"]}', gap, -_MOST_LOST)
        )
        if name == STEPS:
            rows.append(
                _judged(f'{where}: above every fixed one, {worst} the nearest', least, 0.0)
            )
        share = of['clairvoyant']['share']
        rows.append(
            {
                'target': f'{where}: 97 % of the clairvoyant choice',
                'met': share['value'] >= CLAIRVOYANT,
                'found': share,
            }
        )
        if of['release_s'] is not None:
            found = of['release_s']['median']
            words = f'{where}: full use within 3 s of a release, median'
            rows.append({'target': words, 'met': found <= _SOON, 'found': found})
        if name != STEPS:
            changes = of['changes_per_minute']
            words = f'{where}: at most 6 changes a minute'
            rows.append({'target': words, 'met': changes <= _MOST_CHANGES, 'found': changes})
    return rows


def _judged(target: str, gap: Mapping[str, float], least: float) -> dict[str, Any]:
    return {'target': target, 'met': gap['low'] > least, 'found': gap}


def _held(flights: Flights, name: str, condition: Condition) -> list[Sums]:
    """Return the sums of each flight under all shares of a condition."""
    by_share = [flights.held[name][key_of(share)] for share in condition.shares]
    return [_summed(phases) for phases in zip(*by_share, strict=True)]


def _best_at(flights: Flights, share: float) -> tuple[str, float]:
    condition = Condition('', (share,))
    return best_held(flights, condition), share


def _summed(phases: Sequence[Sums]) -> Sums:
    names = ('streamed', 'overlap', 'windows', 'late')
    return {name: sum(phase[name] for phase in phases) for name in names}


def _value(flights: Sequence[Sums]) -> float:
    return _quotient(flights, 'overlap', 'streamed')


def _in_time(flights: Sequence[Sums]) -> float:
    return 1.0 - _quotient(flights, 'late', 'windows')


def _quotient(flights: Sequence[Sums], above: str, below: str) -> float:
    total = sum(of[below] for of in flights)
    return sum(of[above] for of in flights) / total if total else float('nan')


def _drawn(drawings: Drawings, flights: Sequence[Sums]) -> FloatArray:
    above, below = (np.array([of[name] for of in flights]) for name in ('overlap', 'streamed'))
    with np.errstate(invalid='ignore', divide='ignore'):
        drawn: FloatArray = (drawings.weights @ above) / (drawings.weights @ below)
    return drawn


def _difference(
    drawings: Drawings, ours: Sequence[Sums], other: Sequence[Sums]
) -> dict[str, float]:
    drawn = _drawn(drawings, ours) - _drawn(drawings, other)
    return _estimate(drawings, _value(ours) - _value(other), drawn)


def _ratio(drawings: Drawings, ours: Sequence[Sums], other: Sequence[Sums]) -> dict[str, float]:
    drawn = _drawn(drawings, ours) / _drawn(drawings, other)
    return _estimate(drawings, _value(ours) / _value(other), drawn)


def _estimate(drawings: Drawings, value: float, drawn: FloatArray) -> dict[str, float]:
    low, high = interval(drawn, len(np.unique(drawings.seeds)))
    return {'value': value, 'low': low, 'high': high}

"""Which threshold keeps a promise: Learn then Test with flights as samples.

Flights of one seed share their people and ways: together they are one sample, here "a flight".
Of each it is known how many windows were decided early in closed loop, and how many of
those differ from the reference. The promise: of early decisions at most a share ``alpha``
differs. For each threshold the null hypothesis is that it breaks the promise; those that are
rejected are safe, with a family-wise error of at most 1 - ``confidence`` (Angelopoulos, Bates,
Candes, Jordan, Lei: Learn then Test, 2021). Thresholds are tested in a fixed order from the
most careful on, from several starts that share the error between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, stdtr

from mmedge_ros.skipping import SkippingError

HOEFFDING_BENTKUS, STUDENT = 'hoeffding_bentkus', 'student'
METHODS = (HOEFFDING_BENTKUS, STUDENT)
# Fewer flights than this say nothing of the shape of a distribution.
FEWEST_FLIGHTS = 10
STARTS = 3


class FlightOutcome(NamedTuple):
    """One flight in closed loop: windows, those decided early, those of them that differ."""

    windows: int
    early: int
    differing: int


@dataclass(frozen=True)
class Certificate:
    """A threshold and what is known of it; infinite where none keeps the promise."""

    alpha: float
    confidence: float
    method: str
    threshold: float
    flights: int
    early: int
    differing: int
    p_value: float

    @property
    def holds(self) -> bool:
        """Whether anything may be skipped at all."""
        return math.isfinite(self.threshold)


def certify(
    thresholds: Sequence[float],
    outcomes: Sequence[Sequence[FlightOutcome]],
    alpha: float,
    confidence: float = 0.9,
    method: str = STUDENT,
    starts: int = STARTS,
) -> Certificate:
    """Find the least careful threshold that keeps the promise.

    :param thresholds: fixed before looking at these flights, the most careful first
    :param outcomes: of each threshold, those of the same flights in the same order
    :raises SkippingError: for anything that cannot be tested
    """
    _require(thresholds, outcomes, alpha, confidence, method)
    p_values = [p_value(flights, alpha, method) for flights in outcomes]
    place = fixed_sequence(p_values, 1.0 - confidence, starts)
    flights = outcomes[place] if place is not None else ()
    return Certificate(
        alpha,
        confidence,
        method,
        thresholds[place] if place is not None else math.inf,
        len(outcomes[0]),
        sum(flight.early for flight in flights),
        sum(flight.differing for flight in flights),
        p_values[place] if place is not None else math.nan,
    )


def fixed_sequence(p_values: Sequence[float], error: float, starts: int = STARTS) -> int | None:
    """Return the place of the last hypothesis that is rejected, None if none is.

    From each of some evenly spaced starts one goes on as long as hypotheses are rejected at
    the start's part of the error.
    """
    count = len(p_values)
    starts = min(max(starts, 1), count)
    level = error / starts
    last: int | None = None
    for number in range(starts):
        for place in range(number * count // starts, count):
            if not p_values[place] <= level:
                break
            last = place if last is None else max(last, place)
    return last


def p_value(flights: Sequence[FlightOutcome], alpha: float, method: str) -> float:
    """Return a p-value for the hypothesis that more than ``alpha`` of early decisions differ."""
    if not sum(flight.early for flight in flights):
        return 1.0
    if method == HOEFFDING_BENTKUS:
        return _hoeffding_bentkus(flights, alpha)
    return _student(flights, alpha)


def fewest_flights(alpha: float, confidence: float) -> int:
    """Return how many flights Hoeffding-Bentkus needs at least, if no decision differs."""
    return math.ceil(math.log(1.0 - confidence) / math.log(1.0 - alpha))


def _hoeffding_bentkus(flights: Sequence[FlightOutcome], alpha: float) -> float:
    """Valid for any distribution: the loss of a flight lies between 0 and 1.

    The loss is (differing - alpha early) / windows + alpha: windows that were not decided
    early count as alpha. Its mean is above alpha just where the promise is broken.
    """
    losses = [
        (flight.differing - alpha * flight.early) / flight.windows + alpha for flight in flights
    ]
    count, mean = len(losses), sum(losses) / len(losses)
    if mean >= alpha:
        return 1.0
    hoeffding = math.exp(-count * _relative_entropy(mean, alpha))
    # Rounding may not turn a whole number into the next one.
    bentkus = math.e * float(bdtr(math.ceil(count * mean - 1e-9), count, alpha))
    return min(hoeffding, bentkus, 1.0)


def _relative_entropy(a: float, b: float) -> float:
    first = a * math.log(a / b) if a > 0.0 else 0.0
    return first + (1.0 - a) * math.log((1.0 - a) / (1.0 - b))


def _student(flights: Sequence[FlightOutcome], alpha: float) -> float:
    """Approximate in the number of flights; freed of skewness by Hall's transformation (1992).

    Never surer than if all decisions were independent, which they are not: no spread between
    a few flights without a difference is no proof.
    """
    excess = np.array([flight.differing - alpha * flight.early for flight in flights])
    early = sum(flight.early for flight in flights)
    differing = sum(flight.differing for flight in flights)
    least = float(bdtr(differing, early, alpha))
    count, mean = len(excess), float(excess.mean())
    spread = float(excess.std(ddof=1)) if count > 1 else 0.0
    if count < FEWEST_FLIGHTS or mean >= 0.0:
        return 1.0
    if spread <= 1e-12:
        return least
    skewness = float(((excess - mean) ** 3).mean()) / spread**3
    ratio = mean / spread
    score = ratio + skewness * ratio**2 / 3.0 + skewness**2 * ratio**3 / 27.0
    score = math.sqrt(count) * (score + skewness / (6.0 * count))
    return max(float(stdtr(count - 1, score)), least)


def _require(
    thresholds: Sequence[float],
    outcomes: Sequence[Sequence[FlightOutcome]],
    alpha: float,
    confidence: float,
    method: str,
) -> None:
    if method not in METHODS:
        raise SkippingError(f'no method {method!r} to certify by; choose {" or ".join(METHODS)}')
    if not 0.0 < alpha < 1.0 or not 0.0 < confidence < 1.0:
        raise SkippingError(
            f'alpha {alpha:g} and confidence {confidence:g} must both lie between 0 and 1'
        )
    if not thresholds or len(outcomes) != len(thresholds) or not outcomes[0]:
        raise SkippingError(
            f'{len(outcomes)} rows of outcomes for {len(thresholds)} thresholds; there must be '
            'one row for each threshold, and a flight'
        )
    if list(thresholds) != sorted(thresholds, reverse=True):
        raise SkippingError('thresholds must go from the most careful (largest) on')
    if any(len(row) != len(outcomes[0]) for row in outcomes):
        raise SkippingError('every threshold must be tried in the same flights')
    for row in outcomes:
        for flight in row:
            if not 0 <= flight.differing <= flight.early <= max(flight.windows, 0):
                raise SkippingError(
                    f'{flight.differing} differing of {flight.early} early decisions in '
                    f'{flight.windows} windows cannot be'
                )
            if not flight.windows:
                raise SkippingError('a flight without a window cannot be judged')

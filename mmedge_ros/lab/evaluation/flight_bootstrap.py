"""Confidence intervals over flights: bootstrap with the flight as the unit that is drawn.

People of one flight share a drone, a light and a path, so they are no independent samples;
flights are. Intervals are percentiles (Efron 1979), and too narrow over few flights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.evaluation.case_figures import MEDIANS, QUOTIENTS, CaseFigures, Stratum

RESAMPLES = 4000
CONFIDENCE = 0.95
# Medians take a sort's worth of work for each drawing.
_MEDIAN_RESAMPLES = 400
_FEWEST_FLIGHTS = 2
_SEED = 20251122


class Estimate(NamedTuple):
    """A figure, and the interval it lies in with 95 % confidence; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies above or below zero as a whole."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class Drawings:
    """How often each of F flights was drawn in each of B drawings: ``weights`` (B, F)."""

    weights: FloatArray

    @staticmethod
    def of(flights: int, resamples: int = RESAMPLES) -> Drawings:
        """Draw; the same numbers always, so that a report can be made again."""
        random = np.random.default_rng(_SEED)
        shares = np.full(flights, 1.0 / flights) if flights else np.zeros(0)
        return Drawings(random.multinomial(flights, shares, resamples).astype(np.float64))

    @staticmethod
    def within(groups: Sequence[str], resamples: int = RESAMPLES) -> Drawings:
        """Draw groups, and of each that was drawn as many flights as it has, from its own.

        Flights of a group are more alike than others; where each is alone in its group this is
        what `of` draws.

        :param groups: that of each flight
        """
        if len(set(groups)) == len(groups):
            return Drawings.of(len(groups), resamples)
        random = np.random.default_rng(_SEED)
        names = sorted(set(groups))
        drawn = random.multinomial(len(names), np.full(len(names), 1.0 / len(names)), resamples)
        weights = np.zeros((resamples, len(groups)))
        for times, name in zip(drawn.T, names, strict=True):
            places = [place for place, group in enumerate(groups) if group == name]
            shares = np.full(len(places), 1.0 / len(places))
            weights[:, places] = random.multinomial(times * len(places), shares)
        return Drawings(weights)

    def estimate(self, flights: Sequence[CaseFigures], stratum: Stratum, figure: str) -> Estimate:
        """Estimate a figure of a stratum over flights."""
        if figure in MEDIANS:
            return self._median(flights, stratum, MEDIANS[figure])
        value, drawn = self._quotients(flights, stratum, figure)
        return Estimate(value, *interval(drawn, self._count(flights, stratum, figure)))

    def difference(
        self,
        ours: Sequence[CaseFigures],
        theirs: Sequence[CaseFigures],
        stratum: Stratum,
        figure: str,
    ) -> Estimate:
        """Estimate ours minus theirs, both in the same flights, drawn together."""
        value, drawn = self._quotients(ours, stratum, figure)
        other, other_drawn = self._quotients(theirs, stratum, figure)
        count = min(self._count(f, stratum, figure) for f in (ours, theirs))
        return Estimate(value - other, *interval(drawn - other_drawn, count))

    def _quotients(
        self, flights: Sequence[CaseFigures], stratum: Stratum, figure: str
    ) -> tuple[float, FloatArray]:
        above, below = (
            np.array([flight.value(stratum, column) for flight in flights])
            for column in QUOTIENTS[figure]
        )
        with np.errstate(invalid='ignore', divide='ignore'):
            drawn = (self.weights @ above) / (self.weights @ below)
        total = below.sum()
        return float(above.sum() / total) if total else math.nan, drawn

    def _count(self, flights: Sequence[CaseFigures], stratum: Stratum, figure: str) -> int:
        return flights_with(flights, stratum, QUOTIENTS[figure][1])

    def _median(self, flights: Sequence[CaseFigures], stratum: Stratum, column: int) -> Estimate:
        parts = [flight.errors_of(stratum) for flight in flights]
        known = [part[:, column] for part in parts if part is not None]
        if len(known) < len(parts) or not sum(map(len, known)):
            return Estimate(math.nan)
        values = np.concatenate(known)
        owners = np.repeat(np.arange(len(known)), [len(part) for part in known])
        order = np.argsort(values, kind='stable')
        values, owners = values[order], owners[order]
        drawn = np.array(
            [_weighted_median(values, w[owners]) for w in self.weights[:_MEDIAN_RESAMPLES]]
        )
        count = sum(len(part) > 0 for part in known)
        return Estimate(float(np.median(values)), *interval(drawn, count))


def flights_with(flights: Sequence[CaseFigures], stratum: Stratum, column: str) -> int:
    """Count the flights that add to a column of a stratum."""
    return sum(flight.value(stratum, column) > 0.0 for flight in flights)


def interval(drawn: FloatArray, flights: int) -> tuple[float, float]:
    """Return the interval that drawn figures lie in; NaN of fewer than two flights."""
    known = drawn[np.isfinite(drawn)]
    if flights < _FEWEST_FLIGHTS or not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    return float(low), float(high)


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """Median of sorted values, each as often as its weight; NaN of nothing."""
    heights = np.cumsum(weights)
    if not heights[-1]:
        return math.nan
    return float(values[np.searchsorted(heights, heights[-1] / 2.0)])

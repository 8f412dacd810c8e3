"""Confidence intervals over flights: bootstrap with the seed as the unit that is drawn.

People of one flight share a drone, a light and a path, and flights of one seed share their people
and ways in another light or place, so neither are independent samples; seeds are. Intervals are
percentiles (Efron 1979), and too narrow over few seeds.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray

RESAMPLES = 4000
CONFIDENCE = 0.95
# Medians take a sort's worth of work for each drawing.
_MEDIAN_RESAMPLES = 400
_FEWEST_SEEDS = 2
_SEED = 20251122


class Estimate(NamedTuple):
    """A figure, and the interval it lies in with 95 % confidence; NaN where there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class Drawings:
    """How often each of F flights was drawn in each of B drawings: ``weights`` (B, F).

    ``seeds`` (F,) are numbered; flights of one seed are drawn together.
    """

    weights: FloatArray
    seeds: NDArray[np.int64]

    @staticmethod
    def of(seeds: Sequence[Hashable], resamples: int = RESAMPLES) -> Drawings:
        """Draw; the same numbers always, so that a report can be made again.

        :param seeds: that of each flight
        """
        places = {seed: place for place, seed in enumerate(dict.fromkeys(seeds))}
        numbers = np.array([places[seed] for seed in seeds], np.int64)
        random = np.random.default_rng(_SEED)
        shares = np.full(len(places), 1.0 / len(places)) if places else np.zeros(0)
        drawn = random.multinomial(len(places), shares, resamples).astype(np.float64)
        return Drawings(drawn[:, numbers], numbers)

    def count(self, known: Sequence[bool] | NDArray[np.bool_]) -> int:
        """Return how many seeds the flights (F,) that are ``known`` have."""
        return len(np.unique(self.seeds[np.asarray(known, np.bool_)]))


def interval(drawn: FloatArray, seeds: int) -> tuple[float, float]:
    """Return the interval that drawn figures lie in; NaN of fewer than two seeds."""
    known = drawn[np.isfinite(drawn)]
    if seeds < _FEWEST_SEEDS or not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, [(1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0])
    return float(low), float(high)


def drawn_quantiles(
    parts: Sequence[FloatArray], probability: float, drawings: Drawings
) -> tuple[float, FloatArray]:
    """Return a quantile of the values of all flights, and those of drawings of flights (B,).

    NaN of nothing.
    """
    values = np.concatenate([np.zeros(0), *parts])
    if not len(values):
        return math.nan, np.zeros(0)
    owners = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    order = np.argsort(values, kind='stable')
    ordered, owners = values[order], owners[order]
    drawn = [
        _weighted_quantile(ordered, weights[owners], probability)
        for weights in drawings.weights[:_MEDIAN_RESAMPLES]
    ]
    return _weighted_quantile(ordered, np.ones(len(ordered)), probability), np.array(drawn)


def _weighted_quantile(values: FloatArray, weights: FloatArray, probability: float) -> float:
    """Quantile of sorted values, each as often as its weight; NaN of nothing.

    As `np.quantile` of the repeated values: what lies between two of them is interpolated.
    """
    heights = np.cumsum(weights)
    if not heights[-1]:
        return math.nan
    share, place = math.modf((heights[-1] - 1.0) * probability)
    below, above = np.searchsorted(heights, [place, min(place + 1.0, heights[-1] - 1.0)], 'right')
    return float(values[below] + share * (values[above] - values[below]))

"""Which threshold loses little enough: Learn then Test with seeds as samples.

Flights of one seed share their people and ways: together they are one sample. Of each it is known
what it lost in closed loop against its reference, the same flights in which nothing is skipped.
The promise: over all flights at most ``delta`` is lost, of streaming IoU as well as of the people
that were kept in view. For each threshold the null hypothesis is that it breaks the promise; those
that are rejected are safe, with a family-wise error of at most 1 - ``confidence`` (Angelopoulos,
Bates, Candes, Jordan, Lei: Learn then Test, 2021). Thresholds are tested in a fixed order from the
most careful on, from several starts that share the error between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from mmedge_ros.core.data_types import FloatArray

# Fewer seeds than this say nothing of the shape of a distribution.
FEWEST_SEEDS = 10
STARTS = 3


class FlightLoss(NamedTuple):
    """What a flight lost and saved with a gate, in sums over the samples of its reference.

    ``people`` are samples of streaming IoU and ``iou`` what their IoU fell by; ``held`` are those
    of people who had been in view for a second, and ``missed`` by how many more of them were
    missed. ``early`` counts windows decided early, and ``early_lost`` sums their loss
    against the reference's decisions, which needs no truth. Of the slow modality ``saved``
    encodes of the ``encodes`` of the reference were left out.
    """

    people: float = 0
    iou: float = 0.0
    held: float = 0
    missed: float = 0
    early: float = 0
    early_lost: float = 0.0
    saved: float = 0
    encodes: float = 0


@dataclass(frozen=True)
class Certificate:
    """A threshold and what is known of it; infinite where none keeps the promise."""

    delta: float
    confidence: float
    threshold: float
    seeds: int
    total: FlightLoss

    @property
    def holds(self) -> bool:
        """Whether anything may be skipped at all."""
        return math.isfinite(self.threshold)


def certify(
    thresholds: Sequence[float],
    losses: Sequence[Sequence[FlightLoss]],
    delta: float,
    confidence: float = 0.9,
    starts: int = STARTS,
) -> Certificate:
    """Find the least careful threshold that keeps the promise.

    :param thresholds: fixed before looking at these flights, the most careful first
    :param losses: of each threshold, those of the same seeds in the same order
    """
    p_values = [p_value(seeds, delta) for seeds in losses]
    place = fixed_sequence(p_values, 1.0 - confidence, starts)
    return Certificate(
        delta,
        confidence,
        thresholds[place] if place is not None else math.inf,
        len(losses[0]),
        total(losses[place]) if place is not None else FlightLoss(),
    )


def total(losses: Sequence[FlightLoss]) -> FlightLoss:
    """Return the sums over flights or seeds."""
    return FlightLoss(*map(sum, zip(*losses, strict=True))) if losses else FlightLoss()


def by_seed(losses: Sequence[FlightLoss], seeds: Sequence[str]) -> list[FlightLoss]:
    """Return the sums over the flights of each seed, which is that of each flight."""
    parts: dict[str, list[FlightLoss]] = {}
    for seed, loss in zip(seeds, losses, strict=True):
        parts.setdefault(seed, []).append(loss)
    return [total(part) for part in parts.values()]


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


def p_value(losses: Sequence[FlightLoss], delta: float) -> float:
    """Return a p-value for the hypothesis that more than ``delta`` is lost of either.

    The larger one of both losses: the hypothesis that one of two promises is broken is rejected
    where both are. Where nothing was decided early nothing is shown.
    """
    if not sum(loss.early for loss in losses):
        return 1.0
    sums = np.array(losses, np.float64)
    people, iou, held, missed = sums[:, :4].T
    return max(_student(iou - delta * people), _student(missed - delta * held))


def _student(excess: FloatArray) -> float:
    """Return the p-value for a mean that is not below zero.

    Approximate in the number of samples; freed of skewness by Hall's transformation (1992).
    """
    count, mean = len(excess), float(excess.mean())
    if count < FEWEST_SEEDS or mean >= 0.0:
        return 1.0
    spread = float(excess.std(ddof=1))
    if spread <= 1e-12 * abs(mean):
        return 0.0
    skewness = float(((excess - mean) ** 3).mean()) / spread**3
    ratio = mean / spread
    score = ratio + skewness * ratio**2 / 3.0 + skewness**2 * ratio**3 / 27.0
    score = math.sqrt(count) * (score + skewness / (6.0 * count))
    return float(stdtr(count - 1, score))

"""Figures of several subjects on the same flights: quotients of sums, intervals drawn by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, interval
from mmedge_ros.data_types import FloatArray

# What is summed up of one subject in one flight, by column.
Sums = Mapping[str, float]


class Figure(NamedTuple):
    """A quotient of two sums over flights: ``offset`` + ``sign`` * above / below."""

    above: str
    below: str
    offset: float = 0.0
    sign: float = 1.0


@dataclass(frozen=True)
class SummedFlights:
    """Of each subject its `Sums` in each flight, and how flights are drawn.

    Figures are NaN where there is nothing to divide by.
    """

    subjects: Mapping[str, Sequence[Sums]]
    drawings: Drawings
    figures: Mapping[str, Figure]

    @property
    def seeds(self) -> int:
        """How many seeds the flights have."""
        return len(np.unique(self.drawings.seeds))

    def estimate(self, subject: str, figure: str) -> Estimate:
        """Estimate a figure of a subject."""
        value, drawn = self._drawn(subject, figure)
        return Estimate(value, *interval(drawn, self.seeds))

    def difference(self, ours: str, other: str, figure: str) -> Estimate:
        """Estimate ours minus the other's, in the same flights."""
        value, drawn = self._drawn(ours, figure)
        others, others_drawn = self._drawn(other, figure)
        return Estimate(value - others, *interval(drawn - others_drawn, self.seeds))

    def total(self, subject: str, column: str) -> float:
        """Return the sum over all flights."""
        return sum(sums[column] for sums in self.subjects[subject])

    def _drawn(self, subject: str, name: str) -> tuple[float, FloatArray]:
        figure, flights = self.figures[name], self.subjects[subject]
        above, below = (
            np.array([sums[column] for sums in flights]) for column in (figure.above, figure.below)
        )
        weights = self.drawings.weights
        with np.errstate(invalid='ignore', divide='ignore'):
            drawn = figure.offset + figure.sign * (weights @ above) / (weights @ below)
        total = float(below.sum())
        share = float(above.sum()) / total if total else math.nan
        return figure.offset + figure.sign * share, drawn

"""The easy and the hard half of all windows, fixed beforehand by what blocking makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.comparison.estimates import Bootstrap, Drawn
from mmedge_ros.lab.comparison.outcome import Outcome

HALVES = ('easy', 'hard')
# Ends lie on a grid; seconds since 1970 as a float are exact to a microsecond.
_MS = 1e3


class Halves:
    """Which windows are easy: the upper half by the mean IoU of blocking, each run alone.

    Windows in which nobody is visible belong to neither. Fixed by one policy for all, so that
    no policy chooses what is easy.
    """

    def __init__(self, blocking: Sequence[Outcome]) -> None:
        qualities = [_quality(outcome) for outcome in blocking]
        known = np.concatenate(qualities) if qualities else np.zeros(0)
        known = known[np.isfinite(known)]
        middle = float(np.median(known)) if len(known) else np.nan
        self._easy = [
            dict(zip(_ends(outcome), (quality >= middle).tolist(), strict=True))
            for outcome, quality in zip(blocking, qualities, strict=True)
        ]
        self._hard = [
            dict(zip(_ends(outcome), (quality < middle).tolist(), strict=True))
            for outcome, quality in zip(blocking, qualities, strict=True)
        ]

    def counts(self) -> dict[str, int]:
        """Return how many windows are in each half."""
        chosen = {'easy': self._easy, 'hard': self._hard}
        return {name: sum(sum(f.values()) for f in flights) for name, flights in chosen.items()}

    def share(
        self, bootstrap: Bootstrap, outcomes: Sequence[Outcome], half: str, above: str, below: str
    ) -> Drawn:
        """Find the quotient of two columns summed over the windows of a half."""
        sums = np.zeros((2, len(outcomes)))
        for place, (outcome, mask) in enumerate(self._masks(outcomes, half)):
            for row, name in enumerate((above, below)):
                sums[row, place] = np.nansum(outcome.column(name)[mask])
        return bootstrap.quotient(sums[0], sums[1])

    def quantile(
        self, bootstrap: Bootstrap, outcomes: Sequence[Outcome], half: str, column: str, q: float
    ) -> Drawn:
        """Find a quantile of a column over the windows of a half, in ms."""
        columns = [_MS * o.column(column)[mask] for o, mask in self._masks(outcomes, half)]
        return bootstrap.quantile(columns, q)

    def _masks(
        self, outcomes: Sequence[Outcome], half: str
    ) -> list[tuple[Outcome, np.ndarray[tuple[int], np.dtype[np.bool_]]]]:
        chosen = self._easy if half == 'easy' else self._hard
        return [
            (outcome, np.array([ends.get(end, False) for end in _ends(outcome)], np.bool_))
            for outcome, ends in zip(outcomes, chosen, strict=True)
        ]


def _ends(outcome: Outcome) -> list[int]:
    return [round(_MS * end) for end in outcome.column('end').tolist()]


def _quality(outcome: Outcome) -> FloatArray:
    people, overlap = outcome.column('people'), outcome.column('overlap')
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.where(people > 0.0, overlap / people, np.nan)

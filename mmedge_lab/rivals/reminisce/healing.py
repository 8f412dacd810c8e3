"""Healing gives the early exits of an encoder small corrections, in closed form and of low rank.

What they say is to come close to what the end says. The encoder's weights stay as they are, so
what was stored to resume from stays usable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors

RANK = 8
# The most that the last exit may lose of hit@10 by a group that is healed.
MOST_LOST = 0.01
_RIDGE = 1e-2


class Adapter(NamedTuple):
    """``weights`` (D, E) for vectors less ``origin`` (D,), and ``offset`` (E,)."""

    origin: FloatArray
    weights: FloatArray
    offset: FloatArray

    def __call__(self, vectors: Vectors) -> Vectors:
        mapped = (np.asarray(vectors, float) - self.origin) @ self.weights + self.offset
        return np.asarray(mapped, np.float32)


def fit_adapter(taps: Vectors, wanted: NDArray[np.floating]) -> Adapter:
    """Fit a map of rank `RANK` from taps (N, D) to what is wanted of them (N, E).

    Reduced-rank regression: ridge, projected on the main directions of what it predicts.
    """
    origin, offset = taps.mean(axis=0, dtype=float), wanted.mean(axis=0, dtype=float)
    centred = np.asarray(taps, float) - origin
    products = centred.T @ centred
    products += _RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    weights = np.linalg.solve(products, centred.T @ (wanted - offset))
    covered = centred @ weights
    main = np.linalg.eigh(covered.T @ covered)[1][:, -RANK:]
    return Adapter(origin, weights @ main @ main.T, offset)


class AllExits(NamedTuple):
    """Taps (N, D_k) and vectors (N, D) of every exit, for crops that are fitted on or judge."""

    taps: Sequence[Vectors]
    vectors: Sequence[Vectors]

    def healed(self, adapters: dict[int, Adapter]) -> list[Vectors]:
        """Return the vectors of every exit; what an adapter adds is carried on to deeper ones."""
        found = list(self.vectors)
        for begin, adapter in adapters.items():
            added = adapter(self.taps[begin - 1])
            found[begin - 1 :] = [one + added for one in found[begin - 1 :]]
        return found


def heal(
    fitting: AllExits,
    held: AllExits,
    groups: Sequence[Sequence[int]],
    judged: Callable[[Vectors], float],
) -> dict[int, Adapter]:
    """Fit adapters group by group, upwards, to what is missing to the vectors of the end.

    A group is kept if its exits become better together, and the last one loses less than
    `MOST_LOST`. Returns the adapters by the exit at which they begin.

    :param groups: exits from 1, in order; an adapter reads the tap of the first one of its group
    :param judged: how much vectors (N, D) of the crops that are held out find (0..1)
    """
    adapters: dict[int, Adapter] = {}
    best = [judged(of) for of in held.vectors]
    before = best[-1]
    for group in groups:
        now = fitting.healed(adapters)
        missing = np.mean([fitting.vectors[-1] - now[exit_ - 1] for exit_ in group], axis=0)
        tried = {**adapters, group[0]: fit_adapter(fitting.taps[group[0] - 1], missing)}
        scores = [judged(of) for of in held.healed(tried)]
        gained = float(np.mean([scores[exit_ - 1] - best[exit_ - 1] for exit_ in group]))
        if gained > 0.0 and before - scores[-1] < MOST_LOST:
            adapters, best = tried, scores
    return adapters


def groups_of(exits: Sequence[int], step: int) -> list[list[int]]:
    """Divide exits into groups of so many."""
    return [list(exits[begin : begin + step]) for begin in range(0, len(exits), step)]


def pivoted(exits: Sequence[int], predicted: NDArray[np.integer]) -> list[list[int]]:
    """Divide exits at the one that most items are predicted to leave at: up to it, and after."""
    pivot = int(np.argmax([np.count_nonzero(predicted == exit_) for exit_ in exits])) + 1
    return [group for group in (list(exits[:pivot]), list(exits[pivot:])) if group]

"""Maps from a tap to the space of embeddings, in closed form: ridge, and adapters of low rank.

Healing gives the early exits of an encoder small corrections, so that what they say comes close to
what the end says. The encoder's weights stay as they are, so what was stored to resume from
stays usable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.recogniser_labels import ATTRIBUTES, CLASSES, UNKNOWN, Facts
from mmedge_ros.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.spaces import AttributeSpace

_RIDGE = 1e-2
_LEAST_SHARE = 1e-3
# The most that the last exit may lose of hit@10 by a group that is healed.
MOST_LOST = 0.01


class LinearMap(NamedTuple):
    """``weights`` (D, E) for vectors less ``origin`` (D,), and ``offset`` (E,)."""

    origin: FloatArray
    weights: FloatArray
    offset: FloatArray

    def __call__(self, vectors: Vectors) -> Vectors:
        mapped = (np.asarray(vectors, float) - self.origin) @ self.weights + self.offset
        return np.asarray(mapped, np.float32)


def ridge(vectors: Vectors, wanted: NDArray[np.floating], rank: int = 0) -> LinearMap:
    """Fit a map from vectors (N, D) to what is wanted of them (N, E), by least squares.

    :param rank: the most that its weights may have (reduced-rank regression); 0: any
    """
    origin, offset = vectors.mean(axis=0, dtype=float), wanted.mean(axis=0, dtype=float)
    centred = np.asarray(vectors, float) - origin
    products = centred.T @ centred
    products += _RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    weights = np.linalg.solve(products, centred.T @ (wanted - offset))
    if rank:
        main = np.linalg.eigh((covered := centred @ weights).T @ covered)[1][:, -rank:]
        weights = weights @ main @ main.T
    return LinearMap(origin, weights, offset)


def ridge_to_facts(
    vectors: Vectors, facts: NDArray[np.int8], space: AttributeSpace
) -> Callable[[Vectors], Vectors]:
    """Fit a map from vectors (N, D) to shares of what is true of objects, in the space."""
    maps = []
    for column, count in enumerate((len(CLASSES), *map(len, ATTRIBUTES.values()))):
        known = facts[:, column] != UNKNOWN
        truth = np.eye(count)[facts[known, column]]
        maps.append(ridge(vectors[known], truth))

    def mapped(some: Vectors) -> Vectors:
        shares = np.concatenate([one(some) for one in maps], axis=1)
        return space.vectors(np.log(np.maximum(shares, _LEAST_SHARE)))

    assert len(maps) == len(Facts._fields)
    return mapped


class TriedGroup(NamedTuple):
    """What a group of exits gained of hit@10 (their mean), and what the last exit lost."""

    exits: tuple[int, ...]
    gained: float
    lost: float
    is_kept: bool


class Suite(NamedTuple):
    """Adapters by the exit at which they begin, and what came of every group that was tried.

    What an adapter adds is carried on to every deeper exit, the last one included.
    """

    adapters: dict[int, LinearMap]
    tried: tuple[TriedGroup, ...] = ()

    def healed(self, taps: Sequence[Vectors], vectors: Sequence[Vectors]) -> list[Vectors]:
        """Return the vectors (N, D) of every exit with what the adapters add."""
        found = list(vectors)
        for begin, adapter in self.adapters.items():
            added = adapter(taps[begin - 1])
            found[begin - 1 :] = [one + added for one in found[begin - 1 :]]
        return found


class HealingData(NamedTuple):
    """Taps and vectors of every exit, for crops that adapters are fitted on or judged by."""

    taps: Sequence[Vectors]
    vectors: Sequence[Vectors]


def heal(
    fitting: HealingData,
    held: HealingData,
    groups: Sequence[Sequence[int]],
    rank: int,
    judged: Callable[[Vectors], float],
) -> Suite:
    """Fit adapters group by group, upwards, to what is missing to the vectors of the end.

    A group is kept if its exits become better together, and the last one loses less than
    `MOST_LOST`.

    :param groups: exits from 1, in order; an adapter reads the tap of the first one of its group
    :param judged: how much vectors (N, D) of the crops that are held out find (0..1)
    """
    suite = Suite({})
    best = [judged(of) for of in held.vectors]
    before = best[-1]
    for group in groups:
        now = suite.healed(*fitting)
        missing = [fitting.vectors[-1] - now[exit_ - 1] for exit_ in group]
        tap = fitting.taps[group[0] - 1]
        adapters = {**suite.adapters, group[0]: ridge(tap, np.mean(missing, axis=0), rank)}
        scores = [judged(of) for of in Suite(adapters).healed(*held)]
        gained = float(np.mean([scores[exit_ - 1] - best[exit_ - 1] for exit_ in group]))
        lost = before - scores[-1]
        is_kept = gained > 0.0 and lost < MOST_LOST
        tried = (*suite.tried, TriedGroup(tuple(group), gained, lost, is_kept))
        suite = Suite(adapters if is_kept else suite.adapters, tried)
        best = scores if is_kept else best
    return suite


def groups_of(exits: Sequence[int], step: int) -> list[list[int]]:
    """Divide exits into groups of so many."""
    return [list(exits[begin : begin + step]) for begin in range(0, len(exits), step)]


def pivoted(exits: Sequence[int], predicted: NDArray[np.integer]) -> list[list[int]]:
    """Divide exits at the one that most items are predicted to leave at: up to it, and after."""
    counts = [int(np.count_nonzero(predicted == exit_)) for exit_ in exits]
    pivot = int(np.argmax(counts)) + 1
    return [group for group in (list(exits[:pivot]), list(exits[pivot:])) if group]

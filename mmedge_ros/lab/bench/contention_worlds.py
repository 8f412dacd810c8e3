"""What other programs on the same computer may do to the latencies of configurations.

A drone sees only the latency of what it runs. To conclude from it how others fare, it keeps a
few hundred *worlds*: tables of log(latency / profiled latency), drawn from what contention is
known to look like. Either nothing changes; or everything slows down in proportion; or, typical
of a pipeline, nothing changes until the load of a configuration passes what is left of the
processor, and from there on queues grow the more the heavier it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_UNCHANGED = 0.3
_IN_PROPORTION = 0.15
_LARGEST = 3.0
# How often the values of an axis load the processor in the order that is supposed.
_USUAL_ORDER = 0.95
# Each modality has an encoder of its own, and often only one of them is overloaded.
_ONE_MODALITY = 0.4


def draw_worlds(
    cost_ranks: Sequence[Sequence[int]], count: int = 1000, seed: int = 1
) -> NDArray[np.float32]:
    """Draw worlds for a grid.

    :param cost_ranks: per axis, the rank of each of its values when sorted by what it costs
    :return: (count, size) log ratios, most unremarkable worlds first
    """
    random = np.random.default_rng(seed)
    shape = tuple(len(ranks) for ranks in cost_ranks)
    worlds = np.empty((count, math.prod(shape)), np.float32)
    for number in range(count):
        shift = random.normal(0.0, 0.06)
        place = (number + 0.5) / count
        if place < _UNCHANGED:
            worlds[number] = shift
        elif place < _UNCHANGED + _IN_PROPORTION:
            worlds[number] = shift + random.uniform(0.0, 1.5)
        else:
            over = np.maximum(0.0, _load(cost_ranks, random) - random.uniform(0.0, 1.0))
            steepness = math.exp(random.uniform(math.log(0.3), math.log(6.0)))
            worlds[number] = shift + np.minimum(steepness * over, _LARGEST)
    return worlds


def _load(cost_ranks: Sequence[Sequence[int]], random: np.random.Generator) -> NDArray[np.float64]:
    """Return (size,) a load in 0..1 that rises along every axis, some more than others."""
    shares = _shares(len(cost_ranks), random)
    load = np.zeros(1)
    for share, ranks in zip(shares, cost_ranks, strict=True):
        count = len(ranks)
        steps = random.dirichlet(np.full(count - 1, 2.0)) if count > 1 else np.zeros(0)
        heights = np.concatenate([[0.0], np.cumsum(steps)])
        order = np.asarray(ranks)
        if random.random() >= _USUAL_ORDER:
            order = count - 1 - order
        load = np.add.outer(load, share * heights[order]).ravel()
    return load


def _shares(axes: int, random: np.random.Generator) -> NDArray[np.float64]:
    shares = random.dirichlet(np.full(axes, 0.7))
    if axes > 2 and axes % 2 == 0 and random.random() < _ONE_MODALITY:
        first = 2 * int(random.integers(axes // 2))
        one = np.full(axes, 0.1)
        one[first : first + 2] = 1.0
        shares = random.dirichlet(one)
    return shares


def cost_ranks(accuracy: NDArray[np.float64]) -> list[list[int]]:
    """Rank the values of each axis by the best accuracy they allow.

    Nobody offers an expensive value that is never worth its price, so the best accuracy a
    value allows tells what it costs, also where a table has only names for it.

    :param accuracy: in the shape of the grid
    """
    ranks = []
    for axis in range(accuracy.ndim):
        others = tuple(other for other in range(accuracy.ndim) if other != axis)
        best = accuracy.max(axis=others)
        ranks.append(np.argsort(np.argsort(best, kind='stable')).tolist())
    return ranks

"""The semantic memory as the paper prints it, as a rival (SMTM, arXiv 2112.02644).

Hot classes are compared with each other only, and what left early is learned as what it was taken
for. So an object of a class that is not hot leaves early as one that is, feeds it, and is met ever
less: the memory locks in. `encoding.semantic_memory` is what flies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.hot_classes import HotClasses

_TINY = 1e-9


class PrintedSemanticMemory:
    """One lookup at a time, all taps of an object at once.

    :param centres: (J, D_l) for each tap
    :param counts: (J,) how many vectors each centre is the mean of
    :param tau: how much larger (relative) the best similarity must be than the second
    """

    def __init__(
        self, centres: Sequence[FloatArray], counts: FloatArray, hot: HotClasses, tau: float
    ) -> None:
        self.hot = hot
        self._centres = [of_tap.copy() for of_tap in centres]
        self._counts = np.tile(counts.astype(float), (len(centres), 1))
        self._tau = tau

    @property
    def bytes(self) -> int:
        """What the memory holds, in bytes."""
        return sum(array.nbytes for array in (*self._centres, self._counts))

    def look(self, vectors: Sequence[FloatArray]) -> tuple[int, int] | None:
        """Return the class and the tap at which an object leaves, and learn it; None for a miss.

        :param vectors: (D_l,) of each tap
        """
        hot = np.flatnonzero(self.hot.hot)
        if len(hot) < 2:
            return None
        similarity = np.zeros(len(hot))
        for layer, vector in enumerate(vectors):
            similarity += 2.0**layer * _cosines(self._centres[layer][hot], vector)
            second, best = np.argsort(similarity)[-2:]
            gain = similarity[best] - similarity[second]
            if gain > self._tau * max(similarity[second], _TINY):
                label = int(hot[best])
                self._learn(label, vectors[: layer + 1])
                self.hot.met(label)
                return label, layer
        return None

    def classified(self, label: int) -> None:
        """Enter what the whole classifier says of a miss."""
        self.hot.met(label)

    def _learn(self, label: int, vectors: Sequence[FloatArray]) -> None:
        for layer, vector in enumerate(vectors):
            count = self._counts[layer, label]
            centre = self._centres[layer][label]
            centre += (vector - centre) / (count + 1.0)
            self._counts[layer, label] = count + 1.0


def _cosines(centres: FloatArray, vector: FloatArray) -> FloatArray:
    lengths = np.linalg.norm(centres, axis=1) * np.linalg.norm(vector)
    cosines: FloatArray = centres @ vector / np.maximum(lengths, _TINY)
    return cosines

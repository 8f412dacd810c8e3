"""The units of the last moments, and what those of one window say by themselves."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, UnitFeatures

_KEPT_NS = NS_PER_S
_MOST_UNITS = 200
_PICTURES = 6
# Ages (s) beyond this count as this.
_OLDEST = 5.0


@dataclass(slots=True, eq=False)
class SeenUnit:
    """What is remembered of a unit; ``strong`` is how many of its detections begin tracks.

    ``newest_ns`` is when the newest of this and all before was received: where that is too old,
    so is whatever came earlier, in whichever order they came.
    """

    modality: str
    stamp_ns: int
    available_ns: int
    newest_ns: int
    embedding: NDArray[np.float32]
    strong: int
    returns: int


class RecentUnits:
    """Remembers units for a second longer than a window lasts."""

    def __init__(self, window_ns: int) -> None:
        self._window_ns = window_ns
        self._units: deque[SeenUnit] = deque(maxlen=_MOST_UNITS)

    def add(self, unit: UnitFeatures, strong: int) -> None:
        """Remember a unit."""
        units, available_ns = self._units, unit.available_ns
        newest_ns = available_ns
        if units and units[-1].newest_ns > newest_ns:
            newest_ns = units[-1].newest_ns
        units.append(
            SeenUnit(
                unit.modality,
                unit.stamp_ns,
                available_ns,
                newest_ns,
                unit.embedding,
                strong,
                len(unit.returns),
            )
        )
        oldest_ns = available_ns - self._window_ns - _KEPT_NS
        while units[0].available_ns <= oldest_ns:
            units.popleft()

    def received(self, end_ns: int, modality: str) -> tuple[list[SeenUnit], list[SeenUnit]]:
        """Return the units received in the window that ends then, those received last first.

        :return: of a modality, and of the other
        """
        begin_ns = end_ns - self._window_ns
        own: list[SeenUnit] = []
        other: list[SeenUnit] = []
        for unit in reversed(self._units):
            if unit.newest_ns <= begin_ns:
                break
            if begin_ns < unit.available_ns <= end_ns:
                (own if unit.modality == modality else other).append(unit)
        return own, other


def age(units: Sequence[SeenUnit], now_ns: int) -> float:
    """Return how old the newest is, s."""
    if not units:
        return _OLDEST
    newest_ns = max([unit.stamp_ns for unit in units])
    seconds = (now_ns - newest_ns) / NS_PER_S if now_ns > newest_ns else 0.0
    return seconds if seconds < _OLDEST else _OLDEST


def fraction(units: Sequence[SeenUnit], window_ns: int) -> float:
    """Return the share of a window's units that arrived, by their own distance."""
    if len(units) < 2:
        return float(len(units))
    stamps = [u.stamp_ns for u in units]
    span = max(stamps) - min(stamps)
    return min((len(units) * span / (len(units) - 1)) / window_ns, 1.0)


def flicker(pictures: Sequence[SeenUnit]) -> float:
    """Return by how much the number of detections varied lately (standard deviation)."""
    counts = [picture.strong for picture in pictures[:_PICTURES][::-1]]
    # Mostly the same are detected as before.
    if len(set(counts)) < 2:
        return 0.0
    mean = sum(counts) / len(counts)
    return math.sqrt(sum([(c - mean) ** 2 for c in counts]) / len(counts))


def embedded(
    slow: Sequence[SeenUnit], fast: Sequence[SeenUnit]
) -> tuple[float, float, float, float]:
    """Return presence, consistency, and how far each modality moved since the window's begin."""
    if not slow or not fast or not slow[0].embedding.size or not fast[0].embedding.size:
        return 0.0, 0.0, 0.0, 0.0
    newest_slow, newest_fast = slow[0].embedding, fast[0].embedding
    return (
        1.0,
        _cosine(newest_slow, newest_fast),
        1.0 - _cosine(slow[-1].embedding, newest_slow),
        1.0 - _cosine(fast[-1].embedding, newest_fast),
    )


def _cosine(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    if one.shape != other.shape or not one.size:
        return 0.0
    # A method of arrays: for so few numbers the operator takes twice as long.
    norm = math.sqrt(float(one.dot(one)) * float(other.dot(other)))
    value = float(one.dot(other)) / norm if norm > 0.0 else 0.0
    return value if math.isfinite(value) else 0.0


def returned(scans: Sequence[SeenUnit], slow: Sequence[SeenUnit]) -> tuple[float, float]:
    """Return the logarithm of the number of returns, and its change since the slow units."""
    if not scans:
        return 0.0, 0.0
    now = math.log1p(scans[0].returns)
    since_ns = slow[0].stamp_ns if slow else 0
    then = next((s for s in scans if s.stamp_ns <= since_ns), scans[0])
    return now, now - math.log1p(then.returns)

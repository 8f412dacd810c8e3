"""How many there were, from how many were seen at once and how many numbers there were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mmedge_ros.questions.observations import Observations, ObservedTrack


class CountRange(NamedTuple):
    """How many there were: from ``low`` to ``high``, both included, most probably ``best``.

    ``coverage`` is the share of flights in which such a range holds; 0: nobody has measured it.
    """

    low: int
    high: int
    best: int
    coverage: float


def count_range(
    observations: Observations, tracks: Sequence[ObservedTrack], begin_ns: int, end_ns: int
) -> CountRange:
    """Return how many different objects of some tracks there were in a span."""
    stamps = observations.stamps_ns
    stamps = stamps[(stamps >= begin_ns) & (stamps <= end_ns)]
    there = np.array([np.isin(stamps, track.stamps_ns) for track in tracks], bool)
    at_once = int(np.median(there.sum(axis=0))) if there.size else 0
    ids = int(there.any(axis=1).sum()) if there.size else 0
    return CountRange(at_once, max(ids, at_once), at_once, 0.0)

"""How many there were, as a range: ids are not people.

Tracks break, so that there are more ids than people; people are missed, and some tracks are
false. What merged tracks, and how many were seen at once, say of the number of people was learned
on simulated flights: quantile regression of the 5 %, 50 % and 95 % points, made wider until the
range held in flights that were left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.questions.observations import Observations, ObservedTrack, Stamps
from mmedge_ros.questions.tracklets import MERGE, MergeParameters, merged

# Groups that were seen for less (s) are more often false.
_BRIEF = 0.5
COVERAGE = 0.9
# It was never tried with less from the camera.
_MOST_UNSEEN = 0.8
# Nor was it judged in longer spans (s).
_LONGEST = 10.5


class CountRange(NamedTuple):
    """How many there were: from ``low`` to ``high``, both included, and most probably ``best``.

    The range holds in a share ``coverage`` of flights like those it was learned on; 0 where that
    is not known: the camera sent too little in the span, or it is longer than those.
    """

    low: int
    high: int
    best: int
    coverage: float


class CountFacts(NamedTuple):
    """What is known of a span.

    ``groups`` are merged tracks seen for at least half a second, ``brief`` the others;
    ``most`` and ``median`` are how many were seen at once; ``ids`` distinct tracks; ``seconds``
    how long the span is; ``unseen`` the share of it in which the camera sent nothing.
    """

    groups: int
    brief: int
    most: int
    median: float
    ids: int
    seconds: float
    unseen: float

    @property
    def features(self) -> FloatArray:
        """What the quantiles are linear in, see `FEATURES`."""
        return np.array([1.0, self.groups, self.median])


FEATURES = ('offset', 'groups', 'median')


@dataclass(frozen=True)
class CountParameters:
    """Weights of `FEATURES` for three points of the distribution; from `mmedge lab train counts`.

    ``wider`` is added at both ends. Those that are given here are of tracks that are true: each
    group is one.
    """

    low: tuple[float, ...] = (0.0, 1.0, 0.0)
    best: tuple[float, ...] = (0.0, 1.0, 0.0)
    high: tuple[float, ...] = (0.0, 1.0, 0.0)
    wider: float = 0.0


COUNT = CountParameters(
    low=(-0.545, 0.182, 0.727), best=(0.0, 0.5, 0.5), high=(2.857, 0.857, -0.143), wider=0.1
)


def count_range(
    observations: Observations,
    tracks: Sequence[ObservedTrack],
    begin_ns: int,
    end_ns: int,
    parameters: CountParameters = COUNT,
) -> CountRange:
    """Return how many different objects of some tracks there were in a span, both ends included.

    :param tracks: those that are asked about, of one label or of a place, say
    """
    return range_of(count_facts(observations, tracks, begin_ns, end_ns), parameters)


def plain_count(
    observations: Observations, tracks: Sequence[ObservedTrack], begin_ns: int, end_ns: int
) -> CountRange:
    """Return the median seen at once, and as the most distinct tracks, without a stated coverage.

    It is for what `count_range` was not judged on: other labels than people, places and looks.
    """
    stamps = observations.stamps_ns
    stamps = stamps[(stamps >= begin_ns) & (stamps <= end_ns)]
    there = np.array([np.isin(stamps, track.stamps_ns) for track in tracks], bool)
    at_once = int(np.median(there.sum(axis=0))) if there.size else 0
    tracked = int(there.any(axis=1).sum()) if there.size else 0
    return CountRange(at_once, max(tracked, at_once), at_once, 0.0)


def range_of(facts: CountFacts, parameters: CountParameters = COUNT) -> CountRange:
    """Return the range that follows from what is known of a span."""
    low, best, high = (
        float(facts.features @ weights)
        for weights in (parameters.low, parameters.best, parameters.high)
    )
    middle = _whole(best)
    return CountRange(
        min(_whole(low - parameters.wider), middle),
        max(_whole(high + parameters.wider), middle),
        middle,
        COVERAGE if facts.unseen <= _MOST_UNSEEN and facts.seconds <= _LONGEST else 0.0,
    )


def count_facts(
    observations: Observations,
    tracks: Sequence[ObservedTrack],
    begin_ns: int,
    end_ns: int,
    merge: MergeParameters = MERGE,
) -> CountFacts:
    """Return what is known of a span. Tracks are merged by all that was seen of them."""
    first, last = np.searchsorted(observations.stamps_ns, [begin_ns, end_ns + 1])
    stamps, camera = observations.stamps_ns[first:last], observations.camera[first:last]
    seen = [track.stamps_ns[track.seen] for track in tracks]
    there = [np.isin(stamps, instants) for instants in seen]
    present = [track for track, within in zip(tracks, there, strict=True) if within.any()]
    at_once = np.sum(there, axis=0) if there else np.zeros(len(stamps), np.int64)
    looked = at_once[camera] if camera.any() else at_once
    step = _step(observations.stamps_ns)
    groups = merged(present, merge)
    lengths = [step * sum(int(track.seen.sum()) for track in group) for group in groups]
    return CountFacts(
        sum(length >= _BRIEF for length in lengths),
        sum(length < _BRIEF for length in lengths),
        int(at_once.max(initial=0)),
        float(np.median(looked)) if len(looked) else 0.0,
        len(present),
        (end_ns - begin_ns) / NS_PER_S,
        1.0 - float(camera.mean()) if len(camera) else 1.0,
    )


def _step(stamps: Stamps) -> float:
    """Return the usual time between decisions, s."""
    return float(np.median(np.diff(stamps))) / NS_PER_S if len(stamps) > 1 else 0.0


def _whole(value: float) -> int:
    return max(int(np.floor(value + 0.5)), 0)

"""Which tracks are of one object: broken tracks are put together before anything is counted.

Tracks that were seen at the same instant are two objects. Of others, the odds that they are one
are logistic in the time between them, how far the later one begins from where the earlier one
would be, their labels, and how alike their remembered views are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, FloatArray
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.questions.observations import ObservedTrack

# What moves no faster on its own, m/s; of other labels nothing is known.
_TOP_SPEEDS = {'person': 4.0, 'dog': 8.0, 'cyclist': 10.0, 'bicycle': 10.0, 'car': 20.0}
_TOP_SPEED = 20.0
# A place is trusted within so many deviations where speeds are ruled out.
_TRUSTED = 2.0
# Nobody is foreseen better than this: so far off at once (m), and so much more each second (m/s).
_LEAST_MISS, _MISS_SPEED = 0.5, 1.0
_LEAST_GAP, _MOST_MISSES = 0.1, 6.0
_TINY = 1e-9


@dataclass(frozen=True)
class MergeParameters:
    """Weights of the logarithm of the odds that two tracks are one, and when they are merged.

    ``gap`` weighs the logarithm of the seconds between them, ``miss`` and ``miss_squared`` how
    far off the later one begins, in deviations; ``label`` counts where labels differ;
    ``likeness`` weighs the cosine of looks above ``usual_likeness``, and ``no_looks`` counts
    where one of them has none. `mmedge lab train counts` fits them.
    """

    offset: float = 0.0
    gap: float = 0.0
    miss: float = 0.0
    miss_squared: float = 0.0
    label: float = 0.0
    likeness: float = 0.0
    no_looks: float = 0.0
    usual_likeness: float = 0.9
    least_probability: float = 0.5
    # Of tracks that are further apart in time nothing is foreseen.
    longest_gap: float = 10.0


MERGE = MergeParameters(
    offset=-1.444,
    gap=-0.506,
    miss=-3.193,
    miss_squared=0.414,
    label=-1.617,
    likeness=16.122,
    no_looks=2.17,
    usual_likeness=0.611,
)
EVIDENCE = ('offset', 'gap', 'miss', 'miss_squared', 'label', 'likeness', 'no_looks')


def seen_together(tracks: Sequence[ObservedTrack]) -> NDArray[np.bool_]:
    """Mark the pairs (N, N) that the camera saw at the same instant."""
    presence = _presence(tracks).astype(np.float32)
    together: NDArray[np.bool_] = presence @ presence.T > 0.0
    return together


def evidence(
    one: ObservedTrack, other: ObservedTrack, parameters: MergeParameters = MERGE
) -> FloatArray | None:
    """Return what the weights `EVIDENCE` are of, (7,); None where they cannot be one object.

    Both must have been seen, and never at the same instant.
    """
    early, late = _nearest(one, other)
    first, second = (one, other), (early, late)
    if one.stamps_ns[early] > other.stamps_ns[late]:
        first, second = (other, one), (late, early)
    (before, after), (i, j) = first, second
    gap = float(after.stamps_ns[j] - before.stamps_ns[i]) / NS_PER_S
    if gap > parameters.longest_gap:
        return None
    apart = after.positions[j, :2] - before.positions[i, :2]
    deviation = float(np.hypot(before.deviations[i], after.deviations[j]))
    least = max(float(np.linalg.norm(apart)) - _TRUSTED * deviation - _LEAST_MISS, 0.0)
    top = max(_TOP_SPEEDS.get(track.label, _TOP_SPEED) for track in (one, other))
    if not np.isfinite(apart).all() or least > top * max(gap, _LEAST_GAP):
        return None
    foreseen = float(np.linalg.norm(apart - gap * before.velocities[i, :2]))
    miss = min(foreseen, float(np.linalg.norm(apart)))
    misses = miss / float(np.hypot(deviation, _LEAST_MISS + _MISS_SPEED * gap))
    misses = min(misses, _MOST_MISSES)
    alike = likeness(one.looks, other.looks)
    return np.array(
        [
            1.0,
            np.log(gap + _LEAST_GAP),
            misses,
            misses**2,
            float(one.label != other.label),
            0.0 if alike is None else alike - parameters.usual_likeness,
            float(alike is None),
        ]
    )


def likeness(looks: Vectors, others: Vectors) -> float | None:
    """Return the cosine between the means of taps (V, T) and (W, T); None where there are none."""
    if not len(looks) or not len(others) or looks.shape[1] != others.shape[1]:
        return None
    first, second = looks.mean(axis=0), others.mean(axis=0)
    size = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / size if size > _TINY else None


def probability_of_one(
    one: ObservedTrack, other: ObservedTrack, parameters: MergeParameters = MERGE
) -> float:
    """Return how probable it is that two tracks, never seen at once, are one object."""
    known = evidence(one, other, parameters)
    if known is None:
        return 0.0
    odds = float(known @ [getattr(parameters, name) for name in EVIDENCE])
    return float(1.0 / (1.0 + np.exp(-np.clip(odds, -50.0, 50.0))))


def merged(
    tracks: Sequence[ObservedTrack], parameters: MergeParameters = MERGE
) -> list[tuple[ObservedTrack, ...]]:
    """Return the tracks that were ever seen, those of one object together.

    The most probable pairs are merged first, and never groups that were seen at the same instant.
    """
    seen = [track for track in tracks if track.seen.any()]
    together = seen_together(seen)
    pairs = []
    for i, j in zip(
        *np.nonzero(np.triu(~together & _may_be_one(seen, parameters), 1)), strict=True
    ):
        probability = probability_of_one(seen[i], seen[j], parameters)
        if probability >= parameters.least_probability:
            pairs.append((-probability, int(i), int(j)))
    groups = {number: [number] for number in range(len(seen))}
    group_of = list(range(len(seen)))
    for _, i, j in sorted(pairs):
        a, b = group_of[i], group_of[j]
        if a == b or together[np.ix_(groups[a], groups[b])].any():
            continue
        for number in groups[b]:
            group_of[number] = a
        groups[a] += groups.pop(b)
    return [tuple(seen[number] for number in sorted(group)) for group in groups.values()]


def _may_be_one(tracks: Sequence[ObservedTrack], parameters: MergeParameters) -> NDArray[np.bool_]:
    """Mark the pairs (N, N) that are near enough in time, for it is quickly seen."""
    spans = [track.stamps_ns[np.flatnonzero(track.seen)[[0, -1]]] for track in tracks]
    begins, ends = np.array(spans, np.int64).reshape(-1, 2).T
    gaps = np.maximum(begins[:, None] - ends, begins - ends[:, None])
    near: NDArray[np.bool_] = gaps <= parameters.longest_gap * NS_PER_S
    return near


def _presence(tracks: Sequence[ObservedTrack]) -> NDArray[np.bool_]:
    """Return at which of all instants (M) each track was seen, (N, M)."""
    if not tracks:
        return np.zeros((0, 0), bool)
    stamps = np.unique(np.concatenate([track.stamps_ns for track in tracks]))
    presence = np.zeros((len(tracks), len(stamps)), bool)
    for row, track in zip(presence, tracks, strict=True):
        row[np.searchsorted(stamps, track.stamps_ns[track.seen])] = True
    return presence


def _nearest(one: ObservedTrack, other: ObservedTrack) -> tuple[int, int]:
    """Return the places of the instants nearest in time at which each was seen."""
    rows, others = np.flatnonzero(one.seen), np.flatnonzero(other.seen)
    stamps, waiting = one.stamps_ns[rows], other.stamps_ns[others]
    after = np.clip(np.searchsorted(waiting, stamps), 0, len(waiting) - 1)
    before = np.maximum(after - 1, 0)
    gaps = np.abs(waiting[np.stack([before, after])] - stamps)
    side, place = np.unravel_index(int(np.argmin(gaps)), gaps.shape)
    return int(rows[place]), int(others[(before, after)[side][place]])

"""When people come into view: for the first time, or back after an absence.

Visible is as in `truth_matching`. Whoever is out of view for less than `LEFT` was hidden; for
longer, they left, and come back under the id they had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import NS_PER_S

LEFT = 10.0  # s
_LEFT_NS = round(LEFT * NS_PER_S)


class MetTrack(NamedTuple):
    """A person was met by the box of a track."""

    stamp_ns: int
    person: int
    track: int


def times_in_view(stamps_ns: Iterable[int]) -> list[tuple[int, int]]:
    """Return begin and end (ns) of a person's times in view, from when it was visible."""
    stamps = sorted(stamps_ns)
    gaps = [(one, next_one) for one, next_one in pairwise(stamps) if next_one - one >= _LEFT_NS]
    edges = [stamps[0], *(stamp for gap in gaps for stamp in gap), stamps[-1]]
    return list(zip(edges[::2], edges[1::2], strict=True))


def returns_report(visible: Iterable[tuple[int, int]], met: Iterable[MetTrack]) -> dict[str, Any]:
    """Count the people who appeared for the first time, and those who came back.

    ``same_id`` counts those who came back to the track that met them most often before they left.

    :param visible: instants (ns) and who is visible then
    """
    stamps: dict[int, list[int]] = {}
    for stamp_ns, person in visible:
        stamps.setdefault(person, []).append(stamp_ns)
    tracks: dict[int, list[MetTrack]] = {}
    for pair in met:
        tracks.setdefault(pair.person, []).append(pair)
    same = came_back = 0
    for person, seen in stamps.items():
        before: int | None = None
        for place, (begin_ns, end_ns) in enumerate(times_in_view(seen)):
            counts = Counter(
                pair.track
                for pair in tracks.get(person, ())
                if begin_ns <= pair.stamp_ns <= end_ns
            )
            track = min(counts, key=lambda one: (-counts[one], one), default=None)
            came_back += place > 0
            same += place > 0 and track is not None and track == before
            before = before if track is None else track
    return {'new': len(stamps), 'came_back': came_back, 'same_id': same, 'away_s': LEFT}

"""When people come into view: for the first time, or back after an absence.

Visible is as in `truth_matching`. Whoever is out of view for less than `LEFT` was hidden; for
longer, they left, and come back under the id they had.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.replay.ground_truth import PERSON, TrueObject, TrueScene
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY

LEFT = 10.0  # s


class TimeInView(NamedTuple):
    """One stretch of a person's time in view, from ``begin_ns`` to ``end_ns``.

    ``away`` is for how many seconds the person was out of view before, infinite the first time.
    """

    id: int
    begin_ns: int
    end_ns: int
    away: float

    @property
    def is_new(self) -> bool:
        """Whether the person was never in view before."""
        return math.isinf(self.away)


class MetTrack(NamedTuple):
    """A person was met by the box of a track."""

    stamp_ns: int
    person: int
    track: int


def appearances(scenes: Iterable[TrueScene]) -> list[TimeInView]:
    """Return the times in view of all people, by begin.

    :param scenes: in the order of their stamps
    """
    past: list[TimeInView] = []
    # By person, the time in view that goes on.
    latest: dict[int, TimeInView] = {}
    for scene in scenes:
        now = scene.stamp_ns
        for item in scene.objects:
            if item.label != PERSON or not _is_visible(item):
                continue
            known = latest.get(item.id)
            away = (now - known.end_ns) / NS_PER_S if known else math.inf
            if known and away < LEFT:
                latest[item.id] = known._replace(end_ns=now)
                continue
            if known:
                past.append(known)
            latest[item.id] = TimeInView(item.id, now, now, away)
    return sorted([*past, *latest.values()], key=lambda one: (one.begin_ns, one.id))


def returns_report(scenes: Iterable[TrueScene], met: Iterable[MetTrack]) -> dict[str, Any]:
    """Count the people who appeared for the first time, and those who came back.

    ``same_id`` counts those who came back to the track that met them most often before they left.

    :param scenes: in the order of their stamps
    """
    people = appearances(scenes)
    of_person: dict[int, list[MetTrack]] = {}
    for pair in met:
        of_person.setdefault(pair.person, []).append(pair)
    same = 0
    before: dict[int, int | None] = {}
    for one in people:
        tracks = Counter(
            pair.track
            for pair in of_person.get(one.id, ())
            if one.begin_ns <= pair.stamp_ns <= one.end_ns
        )
        track = min(tracks, key=lambda track: (-tracks[track], track)) if tracks else None
        same += not one.is_new and track is not None and track == before.get(one.id)
        before[one.id] = track if track is not None else before.get(one.id)
    new = sum(one.is_new for one in people)
    return {'new': new, 'came_back': len(people) - new, 'same_id': same, 'away_s': LEFT}


def _is_visible(item: TrueObject) -> bool:
    return (
        item.box is not None
        and item.visibility >= MINIMUM_VISIBILITY
        and item.box.y1 - item.box.y0 >= MINIMUM_HEIGHT
    )

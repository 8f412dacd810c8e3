"""When objects come into view: for the first time, or back after an absence.

Visible is as in `truth_matching`. Whoever is out of view for less than `LEFT` was hidden; for
longer, they left, and come back under the id they had. Of a class, an appearance is the first in a
while where no object of the class was visible for `CLASS_UNSEEN` before.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.replay.ground_truth import PERSON, TrueObject, TrueScene
from mmedge_ros.report.truth_matching import MINIMUM_HEIGHT, MINIMUM_VISIBILITY

LEFT = 10.0  # s
CLASS_UNSEEN = 60.0  # s
# Shorter pauses are those of a box at the limit of what counts.
_BRIEF = 0.5


class TimeInView(NamedTuple):
    """One stretch of time in view, from ``begin_ns`` to ``end_ns``.

    ``away`` is for how many seconds the object was out of view before, ``class_away`` for how
    many no object of its class was in view; both infinite the first time. ``hidden`` counts the
    times within it at which the object was not visible for 0.5 to 10 s.
    """

    id: int
    label: str
    begin_ns: int
    end_ns: int
    away: float
    class_away: float
    hidden: int = 0

    @property
    def is_new(self) -> bool:
        """Whether the object was never in view before."""
        return math.isinf(self.away)


class MetTrack(NamedTuple):
    """A person was met by the box of a track."""

    stamp_ns: int
    person: int
    track: int


def appearances(scenes: Iterable[TrueScene]) -> list[TimeInView]:
    """Return all appearances, by begin.

    :param scenes: in the order of their stamps
    """
    past: list[TimeInView] = []
    # By object, the appearance that goes on; by class, when one was last visible.
    latest: dict[int, TimeInView] = {}
    seen_ns: dict[str, int] = {}
    for scene in scenes:
        now = scene.stamp_ns
        visible = [item for item in scene.objects if _is_visible(item)]
        for item in visible:
            known = latest.get(item.id)
            away = (now - known.end_ns) / NS_PER_S if known else math.inf
            if known and away < LEFT:
                hidden = known.hidden + (away >= _BRIEF)
                latest[item.id] = known._replace(end_ns=now, hidden=hidden)
                continue
            if known:
                past.append(known)
            before = seen_ns.get(item.label)
            class_away = math.inf if before is None else (now - before) / NS_PER_S
            latest[item.id] = TimeInView(item.id, item.label, now, now, away, class_away)
        seen_ns |= {item.label: now for item in visible}
    return sorted([*past, *latest.values()], key=lambda one: (one.begin_ns, one.id))


def returns_report(known: Sequence[TimeInView], met: Iterable[MetTrack]) -> dict[str, Any]:
    """Count the people who appeared for the first time, and those who came back.

    ``same_id`` counts those who came back to the track that met them most often before they left.
    """
    people = [one for one in known if one.label == PERSON]
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
    return {
        'new': new,
        'came_back': len(people) - new,
        'same_id': same,
        'hidden': sum(one.hidden for one in people),
        'away_s': LEFT,
    }


def _is_visible(item: TrueObject) -> bool:
    return (
        item.box is not None
        and item.visibility >= MINIMUM_VISIBILITY
        and item.box.y1 - item.box.y0 >= MINIMUM_HEIGHT
    )

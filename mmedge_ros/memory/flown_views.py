"""Chooses the views to remember during a flight, beside the encoder, while that has time.

Tracked objects come with the decision that names their detections. Detections that nobody tracks
are told apart by their overlap from one decision to the next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, Detection
from mmedge_ros.encoding.recent_pictures import KeptPicture, RecentPictures
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.memory.moment import MemoryItem
from mmedge_ros.memory.views import (
    ChosenView,
    SeenObject,
    ViewMaker,
    about_picture,
    seen_track,
)

# The next unit waits for at most so many views: each takes about 0.2 ms.
_MOST_AT_ONCE = 4
_MOST_TRACKS = 512
# Objects that nobody tracks are numbered from here on.
UNTRACKED = 1_000_000
# Weaker detections, and those seen fewer times, are mostly none.
_LEAST_SCORE, _LEAST_TIMES = 0.3, 3
_SAME, _GONE_NS, _MOST_UNTRACKED = 0.3, NS_PER_S, 256


class FlownViews:
    """Chooses the views to remember of the newest pictures; for one thread.

    :param rate: looks at an object, and at the scene, per second at most
    """

    def __init__(self, pictures: RecentPictures, rate: float) -> None:
        self._pictures = pictures
        self._rate_gap_ns = self._gap_ns = round(NS_PER_S / rate)
        self._views, self._others = ViewMaker(), UntrackedObjects()
        self._looked: OrderedDict[int, int] = OrderedDict()
        self._scene_ns: int | None = None
        self._numbered = -1
        self._last: tuple[int, MemoryItem] | None = None

    def thin(self, gap: float) -> None:
        """Leave at least so many seconds between looks, however many were asked for."""
        self._gap_ns = max(self._rate_gap_ns, round(NS_PER_S * gap))

    def of_decision(self, decision: Decision) -> Iterator[ChosenView]:
        """Yield the views that are kept of a decision's tracks, of others, and of the scene."""
        due = 0
        # All that was seen, whoever is due: objects are told apart from one sight to the next.
        for picture, seen in list(self._seen(decision)):
            if picture.stamp_ns - self._looked.get(seen.number, -self._gap_ns) < self._gap_ns:
                continue
            if due == _MOST_AT_ONCE:
                break  # the others are due again with the next decision
            due += 1
            self._note(seen.number, picture.stamp_ns)
            boxes = [one.box for one in (*picture.detections, *picture.others)]
            view = self._views.object(picture.image, self._about(picture), seen, boxes)
            if view is not None:
                yield view._replace(camera_frame=picture.frame_id)
        yield from self._scene()

    def _seen(self, decision: Decision) -> Iterator[tuple[KeptPicture, SeenObject]]:
        for track in decision.tracks:
            sight = self._pictures.find(track)
            if sight is not None:
                yield sight.picture, seen_track(track, sight.box)
        newest = self._pictures.newest()
        if newest is not None and newest.sequence != self._numbered:
            self._numbered = newest.sequence
            for number, one in self._others.numbered(newest.stamp_ns, newest.others):
                yield newest, SeenObject(number, one.label, one.box, one.score)

    def _scene(self) -> Iterator[ChosenView]:
        newest = self._pictures.newest()
        if newest is None:
            return
        if self._scene_ns is not None and newest.stamp_ns - self._scene_ns < self._gap_ns:
            return
        self._scene_ns = newest.stamp_ns
        view = self._views.scene(newest.image, self._about(newest))
        if view is not None:
            yield view

    def _about(self, picture: KeptPicture) -> MemoryItem:
        """Return what is true of all views of a picture, worked out once for those in a row."""
        if self._last is None or self._last[0] != picture.sequence:
            about = about_picture(picture.image, picture.stamp_ns, picture.level)
            self._last = (picture.sequence, about)
        return self._last[1]

    def _note(self, number: int, stamp_ns: int) -> None:
        self._looked[number] = stamp_ns
        self._looked.move_to_end(number)
        if len(self._looked) > _MOST_TRACKS:
            self._looked.popitem(last=False)


class _Untracked(NamedTuple):
    number: int
    label: str
    box: Box
    stamp_ns: int
    times: int


class UntrackedObjects:
    """Numbers detections that nobody tracks: the same number for boxes that overlap in time."""

    def __init__(self) -> None:
        self._known: list[_Untracked] = []
        self._next = UNTRACKED

    def numbered(
        self, stamp_ns: int, detections: Sequence[Detection]
    ) -> list[tuple[int, Detection]]:
        """Return those that were seen a few times by now, with their numbers."""
        waiting = [k for k in self._known if 0 <= stamp_ns - k.stamp_ns <= _GONE_NS]
        now: list[_Untracked] = []
        found = []
        for one in detections:
            if one.score < _LEAST_SCORE:
                continue
            same = [k for k in waiting if k.label == one.label]
            before = max(same, key=lambda k: overlap(k.box, one.box), default=None)
            if before is not None and overlap(before.box, one.box) >= _SAME:
                waiting.remove(before)
                number, times = before.number, before.times + 1
            else:
                number, times = self._next, 1
                # Those of a message have 32 bits.
                self._next = self._next + 1 if self._next < 2**32 - 1 else UNTRACKED
            now.append(_Untracked(number, one.label, one.box, stamp_ns, times))
            if times >= _LEAST_TIMES:
                found.append((number, one))
        self._known = [*now, *waiting][:_MOST_UNTRACKED]
        return found

"""The last pictures of the camera's encoder, for those who look back once tracks are known.

The encoder alone holds pixels and boxes. Crops are cut by the unit and the detection that a track
names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from mmedge_ros.core.data_types import Box, Detection, Track
from mmedge_ros.encoding.detector import Image
from mmedge_ros.geometry.box_overlap import overlap

# Two decisions look back on at most so many encoded pictures at 30 Hz.
_KEPT = 6
# A detection is that of a track if it covers the track's box so much (IoU).
_SAME = 0.3


class KeptPicture(NamedTuple):
    """An encoded picture (H, W, 3) BGR, with what was detected in it at ``level``.

    ``others`` are detections with labels that are not tracked, ``frame_id`` is the camera's. The
    picture is shared, and never changed.
    """

    sequence: int
    image: Image
    detections: tuple[Detection, ...]
    stamp_ns: int = 0
    level: str = ''
    others: tuple[Detection, ...] = ()
    frame_id: str = ''


class Sight(NamedTuple):
    """Where a track was in a picture."""

    picture: KeptPicture
    box: Box


class RecentPictures:
    """The last encoded pictures with what was detected in them; one thread's."""

    def __init__(self) -> None:
        self._kept: deque[KeptPicture] = deque(maxlen=_KEPT)

    def keep(self, picture: KeptPicture) -> None:
        """Keep a picture; it is not copied."""
        self._kept.append(picture)

    def newest(self) -> KeptPicture | None:
        """Return the picture that was kept last; None before the first."""
        return self._kept[-1] if self._kept else None

    def find(self, track: Track) -> Sight | None:
        """Return the picture of a track's newest detection and where it is; None if it is gone."""
        if track.detection is None:
            return None
        for kept in reversed(self._kept):
            if kept.sequence == track.detection.unit_sequence:
                box = box_in(kept.detections, track)
                return None if box is None else Sight(kept, box)
        return None


def box_in(detections: Sequence[Detection], track: Track) -> Box | None:
    """Return the box of the detection that a track names, or of one that lies where it is.

    Feature fusion makes detections of its own, whose places say nothing here.
    """
    place = track.detection.place if track.detection else -1
    if track.box is None:
        return None
    named = detections[place : place + 1] if place >= 0 else ()
    for one in (*named, *detections):
        if overlap(one.box, track.box) >= _SAME:
            return one.box
    return track.box

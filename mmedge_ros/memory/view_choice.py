"""Chooses the views to keep: of each track the first and the best, and key frames.

Stamps are given; nothing here asks for the time.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory.moment import Vectors

# Beside the first one; their mean finds a track better than one view does.
BEST_VIEWS = 4
# Views closer in time show the same; the better one of them is kept.
_APART_NS = NS_PER_S
# A view must be so much better to take the place of another: writing costs, too.
_BETTER = 1.15
_MOST_TRACKS = 512
# A box of so many px shows all that an encoder of crops can use.
_LARGE_ENOUGH = 96.0
# The median sharpness of boxes of so many px: over seven simulated flights 0.86 at 15 px, 0.61 at
# 30, 0.53 at 60 and 0.39 above 80. What shows more detail per pixel is smaller.
_USUAL_SHARPNESS, _USUAL_SIZE, _SHARPNESS_FALLS = 0.6, 30.0, 0.35
# Something of an object that leaves the picture is missing.
_CUT, _BORDER = 0.6, 2.0

# Distances (1 - cosine) of `scene_vector`: pictures 0.1 s apart differ by 0.03 at most in nine of
# ten. Three simulated flights of a minute get 2 to 4 key frames, livelier ones one in 2 to 10 s.
_SCENE_CHANGED, _SCENE_SAME = 0.4, 0.25
_KEY_FRAMES_APART_NS, _CHANGED_FOR_NS = 2 * NS_PER_S, 300_000_000
_REMEMBERED_SCENES = 8
_CELLS, _STEP = (8, 6), 8


class ViewQuality(NamedTuple):
    """How well a view shows an object: height of the box in px, sharpness, share that is visible.

    NaN where they are not known.
    """

    size: float
    sharpness: float = math.nan
    visibility: float = math.nan

    @property
    def score(self) -> float:
        """0..1: the product of what each leaves of the object; what is not known leaves all."""
        usual = _USUAL_SHARPNESS * (_USUAL_SIZE / max(self.size, 1.0)) ** _SHARPNESS_FALLS
        parts = (self.size / _LARGE_ENOUGH, self.sharpness / usual, self.visibility)
        known = [min(max(part, 0.0), 1.0) for part in parts if math.isfinite(part)]
        return math.prod(known)


def visible_share(box: Box, others: Sequence[Box], image_size: tuple[int, int]) -> float:
    """Estimate the visible share of an object, 0..1, from the boxes of one picture alone.

    A box that reaches further down stands in front. An object at the border is cut.
    """
    width, height = image_size
    area = max(box.width * box.height, 1e-9)
    hidden = 0.0
    for other in others:
        if other != box and other.y1 > box.y1:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            down = min(box.y1, other.y1) - max(box.y0, other.y0)
            hidden = max(hidden, max(across, 0.0) * max(down, 0.0) / area)
    is_cut = min(box.x0, box.y0) < _BORDER or box.x1 > width - _BORDER or box.y1 > height - _BORDER
    return (1.0 - min(hidden, 1.0)) * (_CUT if is_cut else 1.0)


class KeptView(NamedTuple):
    """A view to keep; it replaces the one with the stamp ``displaced_ns``, if there is one."""

    displaced_ns: int | None = None


class _View(NamedTuple):
    stamp_ns: int
    score: float


@dataclass
class _Kept:
    first: _View
    best: list[_View] = field(default_factory=list)


class TrackViews:
    """The views of tracks that are kept: the first, and the best `BEST_VIEWS` after that."""

    def __init__(self) -> None:
        self._tracks: OrderedDict[int, _Kept] = OrderedDict()

    def offer(self, track_id: int, stamp_ns: int, quality: ViewQuality) -> KeptView | None:
        """Return whether a view is to be kept, and which one it replaces; None if it is not kept.

        A track that was not met for the last 512 ones begins anew.
        """
        view = _View(stamp_ns, quality.score)
        kept = self._tracks.get(track_id)
        if kept is None:
            self._tracks[track_id] = _Kept(view)
            if len(self._tracks) > _MOST_TRACKS:
                self._tracks.popitem(last=False)
            return KeptView()
        self._tracks.move_to_end(track_id)
        near = [v for v in kept.best if abs(v.stamp_ns - stamp_ns) < _APART_NS]
        if not near:
            is_soon = abs(stamp_ns - kept.first.stamp_ns) < _APART_NS
            if is_soon and view.score <= kept.first.score * _BETTER:
                return None
            if len(kept.best) < BEST_VIEWS:
                kept.best.append(view)
                return KeptView()
        rival = max(near, key=_score) if near else min(kept.best, key=_score)
        if view.score <= rival.score * _BETTER:
            return None
        kept.best[kept.best.index(rival)] = view
        return KeptView(rival.stamp_ns)


def _score(view: _View) -> float:
    return view.score


def scene_vector(picture: Image) -> Vectors:
    """Return the light and colour of the cells of a picture (H, W, 3) BGR: (144,), in 40 us.

    It is of length 1, or 0 for a picture of one colour; exposure and tint cancel.
    """
    cells = cv2.resize(picture[::_STEP, ::_STEP], _CELLS, interpolation=cv2.INTER_AREA)
    values = cells.astype(np.float32).reshape(-1, 3)
    values -= values.mean(axis=0)
    return np.asarray(values.ravel() / max(float(np.linalg.norm(values)), 1e-9), np.float32)


class KeyFrames:
    """Chooses the pictures that show another scene than the key frames before.

    A scene counts as another one when it is unlike all of the last eight for 0.3 s, so that
    neither a flash nor turning back and forth makes key frames; two are at least 2 s apart.
    """

    def __init__(self) -> None:
        self._scenes: list[Vectors] = []
        self._last_ns = 0
        self._changed_ns: int | None = None

    def offer(self, stamp_ns: int, scene: Vectors) -> bool:
        """Say whether a picture becomes a key frame, by its `scene_vector`.

        One that is blank or no number does not.
        """
        if not 0.0 < float(scene @ scene) < math.inf:
            return False
        if not self._scenes:
            return self._take(stamp_ns, scene)
        distance = min(float(1.0 - known @ scene) for known in self._scenes)
        if distance < _SCENE_SAME:
            self._changed_ns = None
        elif distance >= _SCENE_CHANGED and self._changed_ns is None:
            self._changed_ns = stamp_ns
        if (
            self._changed_ns is None
            or stamp_ns - self._changed_ns < _CHANGED_FOR_NS
            or stamp_ns - self._last_ns < _KEY_FRAMES_APART_NS
        ):
            return False
        return self._take(stamp_ns, scene)

    def _take(self, stamp_ns: int, scene: Vectors) -> bool:
        self._scenes = [*self._scenes[1 - _REMEMBERED_SCENES :], scene]
        self._last_ns, self._changed_ns = stamp_ns, None
        return True

"""What was really there: the reference that a simulated flight carries along."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S, Box, FloatArray
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState

PERSON, CYCLIST = 'person', 'cyclist'
# Ranges of people are those to the middle of their bodies, which is what is tracked.
BODY_MIDDLE = np.array([0.0, 0.0, 0.85])

# Over a longer time people turn and boxes do not move in straight lines.
_LONGEST_GAP_NS = NS_PER_S // 2
# So many frames may be missing between two neighbours that still count as such.
_MOST_GAPS = 4
_NO_BOX = (np.nan,) * 4


@dataclass(frozen=True, slots=True, eq=False)
class TrueObject:
    """One true object. ``box`` encloses its whole outline, cut at the picture's border.

    ``visibility`` is the share (0..1) of its outline that is in the picture and not hidden.
    ``position`` (3,) m lies on the ground below its middle; ``velocity`` (3,) m/s. ``clear``: the
    camera is up and nothing veils the object; ``radar`` (0..1) is the probability that one scan
    returns it, 0 where that is not known.
    """

    id: int
    label: str
    box: Box | None
    visibility: float
    position: FloatArray
    velocity: FloatArray
    clear: bool = True
    radar: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class TrueScene:
    """Everything true at one camera frame's stamp; positions in ``frame_id``.

    ``ego`` is the drone itself: the pose and velocity of base_link in ``frame_id``. ``condition``
    is what makes the flight hard, '' for a usual one.
    """

    stamp_ns: int
    frame_id: str
    objects: tuple[TrueObject, ...]
    surroundings: str = ''
    light: str = ''
    distance: str = ''
    ego: EgoState | None = None
    condition: str = ''

    @property
    def scenario(self) -> str:
        """The name of the simulated scenario; empty where nothing is known of it."""
        return '_'.join(part for part in (self.surroundings, self.light, self.distance) if part)


class Conditions(NamedTuple):
    """What a flight was like, for strata."""

    surroundings: str = ''
    light: str = ''
    distance: str = ''


class TrueFrame(NamedTuple):
    """The N objects of one instant as arrays, for arithmetic.

    ``ids`` and ``labels`` (N,), ``boxes`` (N, 4) px and NaN outside the picture,
    ``visibility`` (N,), ``positions`` (N, 3) m, ``velocities`` (N, 3) m/s, ``ranges`` (N,) m
    from the drone to the middles of bodies, NaN where it is not known where the drone was;
    ``clear`` and ``radar`` (N,) as `TrueObject` has them.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.str_]
    boxes: FloatArray
    visibility: FloatArray
    positions: FloatArray
    velocities: FloatArray
    ranges: FloatArray
    clear: NDArray[np.bool_]
    radar: FloatArray
    conditions: Conditions = Conditions()

    @property
    def heights(self) -> FloatArray:
        """Heights of the boxes (N,) in px, NaN outside the picture."""
        tall: FloatArray = self.boxes[:, 3] - self.boxes[:, 1]
        return tall

    def select(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> TrueFrame:
        return TrueFrame._make([*(column[chosen] for column in self[:9]), self.conditions])


class GroundTruth:
    """The true scenes of a flight in the order of their stamps, and what lies between them.

    :param scenes: in any order, all in one frame; of equal stamps the first counts
    :param problems: what was wrong with the source, in words
    """

    def __init__(self, scenes: Sequence[TrueScene], problems: Sequence[str] = ()) -> None:
        first: dict[int, TrueScene] = {}
        for scene in scenes:
            first.setdefault(scene.stamp_ns, scene)
        self.scenes = tuple(first[stamp] for stamp in sorted(first))
        self.stamps_ns = [scene.stamp_ns for scene in self.scenes]
        self.problems = tuple(problems)
        self._pair: tuple[int, _Pair] | None = None

    @property
    def frame_id(self) -> str:
        """The frame of all positions, empty without scenes."""
        return self.scenes[0].frame_id if self.scenes else ''

    @cached_property
    def gap_ns(self) -> int:
        """The usual time between two scenes, 0 where there are not two."""
        gaps = [b - a for a, b in pairwise(self.stamps_ns)]
        return min(int(np.median(gaps)), _LONGEST_GAP_NS) if gaps else 0

    @cached_property
    def ego(self) -> EgoMotion:
        """How the drone really moved; empty where the scenes do not say."""
        motion = EgoMotion(self.frame_id, kept=None)
        for scene in self.scenes:
            if scene.ego is not None:
                motion.add(scene.ego)
        return motion

    def at(self, stamp_ns: int) -> TrueScene | None:
        """Return the scene at an instant; see `frame_at` for when it is None."""
        frame = self.frame_at(stamp_ns)
        if frame is None:
            return None
        objects = tuple(
            TrueObject(
                int(number),
                str(label),
                Box(*map(float, box)) if np.isfinite(box).all() else None,
                float(visibility),
                position,
                velocity,
                bool(clear),
                float(radar),
            )
            for number, label, box, visibility, position, velocity, _, clear, radar in zip(
                *frame[:9], strict=True
            )
        )
        ego, condition = self.ego.at(stamp_ns), self.scenes[0].condition
        return TrueScene(stamp_ns, self.frame_id, objects, *frame.conditions, ego, condition)

    def frame_at(self, stamp_ns: int) -> TrueFrame | None:
        """Return what is true at an instant, None where it is not known.

        Between neighbouring scenes objects that are in both are interpolated; up to one usual
        gap before the first scene and after the last they are carried on. Inside a hole of
        the recording only the scenes themselves are known.
        """
        if not self.scenes:
            return None
        place = bisect_left(self.stamps_ns, stamp_ns)
        if place < len(self.scenes) and self.stamps_ns[place] == stamp_ns:
            return self._frames[place]
        outside = place in (0, len(self.scenes))
        if outside and len(self.scenes) < 2:
            return None
        first = min(max(place - 1, 0), len(self.scenes) - 2)
        begin_ns, end_ns = self.stamps_ns[first : first + 2]
        if end_ns - begin_ns > self._longest_ns:
            return None
        if outside and not begin_ns - self.gap_ns <= stamp_ns <= end_ns + self.gap_ns:
            return None
        if self._pair is None or self._pair[0] != first:
            self._pair = first, _paired(self._frames[first], self._frames[first + 1])
        return _interpolated(self._pair[1], (stamp_ns - begin_ns) / (end_ns - begin_ns))

    def instants(self, step_ns: int) -> Iterator[int]:
        """Yield the multiples of a step at which the truth is known, in order."""
        for begin_ns, end_ns in pairwise(self.stamps_ns):
            if end_ns - begin_ns <= self._longest_ns:
                yield from range(-(-begin_ns // step_ns) * step_ns, end_ns, step_ns)
            elif begin_ns % step_ns == 0:
                yield begin_ns
        if self.stamps_ns and self.stamps_ns[-1] % step_ns == 0:
            yield self.stamps_ns[-1]

    @property
    def _longest_ns(self) -> int:
        """Neighbours further apart have a hole between them."""
        return min(max(_MOST_GAPS * self.gap_ns, 1), _LONGEST_GAP_NS)

    @cached_property
    def _frames(self) -> list[TrueFrame]:
        return [_frame_of(scene) for scene in self.scenes]


class _Pair(NamedTuple):
    """Two neighbouring frames, each with the objects of both in the same order."""

    before: TrueFrame
    after: TrueFrame


def _frame_of(scene: TrueScene) -> TrueFrame:
    objects = scene.objects
    positions = np.array([o.position for o in objects], np.float64).reshape(-1, 3)
    drone = np.full(3, np.nan) if scene.ego is None else scene.ego.pose.translation
    return TrueFrame(
        np.array([o.id for o in objects], np.int64),
        np.array([o.label for o in objects], np.str_),
        np.array([_NO_BOX if o.box is None else o.box for o in objects]).reshape(-1, 4),
        np.array([o.visibility for o in objects], np.float64),
        positions,
        np.array([o.velocity for o in objects], np.float64).reshape(-1, 3),
        np.linalg.norm(positions + BODY_MIDDLE - drone, axis=1),
        np.array([o.clear for o in objects], np.bool_),
        np.array([o.radar for o in objects], np.float64),
        Conditions(scene.surroundings, scene.light, scene.distance),
    )


def _paired(before: TrueFrame, after: TrueFrame) -> _Pair:
    _, first, second = np.intersect1d(
        before.ids, after.ids, assume_unique=True, return_indices=True
    )
    return _Pair(before.select(first), after.select(second))


def _interpolated(pair: _Pair, share: float) -> TrueFrame:
    """Mix two frames; a share below 0 or above 1 carries their change on."""
    before, after = pair

    def mixed(first: FloatArray, second: FloatArray) -> FloatArray:
        return first + share * (second - first)

    boxes = mixed(before.boxes, after.boxes)
    # What leaves the picture would be carried on to a box turned inside out.
    boxes[(boxes[:, 0] >= boxes[:, 2]) | (boxes[:, 1] >= boxes[:, 3])] = np.nan
    return TrueFrame(
        before.ids,
        before.labels,
        boxes,
        np.clip(mixed(before.visibility, after.visibility), 0.0, 1.0),
        mixed(before.positions, after.positions),
        mixed(before.velocities, after.velocities),
        mixed(before.ranges, after.ranges),
        before.clear if share < 0.5 else after.clear,
        np.clip(mixed(before.radar, after.radar), 0.0, 1.0),
        before.conditions,
    )

"""Imputation: a small network makes up the detections of a picture that is not ready.

People in the newest picture that is ready are moved to where the network expects them in the
missing one, or left out where it does not expect a detection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from mmedge_lab.policies.policy_features import partners, strong_detections
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Detection,
    FloatArray,
    UnitFeatures,
)
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.windows.gate import DenseNetwork

# Weaker detections are not made up.
LEAST_SCORE = 0.3
# Outputs: logit of being detected, then how far the box moves (in widths, heights), grows (log).
OUTPUTS = 5
_FASTEST = 20.0


class PersonFeatures(NamedTuple):
    """A person in the newest picture that is ready, and how they move.

    Durations in s, velocities in box widths or heights per second, growth in log per second.
    """

    lag: float
    since: float
    has_past: float
    right: float
    down: float
    widening: float
    growing: float
    # Where they would be if all went on, in widths, heights and log.
    onward_right: float
    onward_down: float
    onward_width: float
    onward_height: float
    # The same motion a picture earlier, and that of all the others on average.
    has_long_past: float
    earlier_right: float
    earlier_down: float
    common_right: float
    common_down: float
    score: float
    score_change: float
    height: float
    aspect: float
    left_margin: float
    right_margin: float
    people: float
    crowding: float
    # The radar: logarithm of the returns, and of how that changed since the newest picture.
    returns: float
    returns_news: float


PERSON_FIELDS: tuple[str, ...] = PersonFeatures._fields


@dataclass(frozen=True, eq=False)
class TrainedImputer:
    """Makes up pictures. ``scale`` (4,) is what the network's displacements are multiplied by."""

    network: DenseNetwork
    scale: FloatArray
    least: float = 0.5

    def impute(
        self, missing: UnitFeatures, ready: Mapping[str, Sequence[UnitFeatures]]
    ) -> UnitFeatures | None:
        """Return the missing picture with made-up detections; None where nothing is known."""
        pictures = sorted(ready.get(CAMERA, ()), key=lambda unit: unit.stamp_ns)
        if missing.modality != CAMERA or not pictures:
            return None
        people, inputs = person_features(missing.stamp_ns, pictures, ready.get(RADAR, ()))
        if not people:
            return replace(missing, detections=())
        outputs = self.network.outputs(inputs)
        moved = moved_boxes([person.box for person in people], outputs[:, 1:] * self.scale)
        detected = expit(outputs[:, 0])
        return replace(
            missing,
            detections=tuple(
                Detection(box, person.score, person.label)
                for person, box, probability in zip(people, moved, detected, strict=True)
                if probability >= self.least
            ),
        )


def moved_boxes(boxes: Sequence[Box], displacements: FloatArray) -> list[Box]:
    """Return boxes moved by displacements (N, 4): right, down, and growth of width and height."""
    moved = []
    for box, (right, down, wider, taller) in zip(boxes, displacements.tolist(), strict=True):
        x = (box.x0 + box.x1) / 2.0 + right * box.width
        y = (box.y0 + box.y1) / 2.0 + down * box.height
        half_width = box.width * math.exp(min(max(wider, -1.0), 1.0)) / 2.0
        half_height = box.height * math.exp(min(max(taller, -1.0), 1.0)) / 2.0
        moved.append(Box(x - half_width, y - half_height, x + half_width, y + half_height))
    return moved


def displacement(old: Box, new: Box) -> tuple[float, float, float, float]:
    """Return what `moved_boxes` needs to make the new box of the old one."""
    return (
        (new.x0 + new.x1 - old.x0 - old.x1) / (2.0 * old.width),
        (new.y0 + new.y1 - old.y0 - old.y1) / (2.0 * old.height),
        math.log(new.width / old.width),
        math.log(new.height / old.height),
    )


def person_features(
    missing_ns: int, pictures: Sequence[UnitFeatures], scans: Sequence[UnitFeatures] = ()
) -> tuple[list[Detection], FloatArray]:
    """Return the people in the newest picture, and the network's inputs (N, F) for each.

    :param missing_ns: stamp of the missing picture
    :param pictures: those that are ready, by stamp
    :param scans: those of the radar that are ready
    """
    newest, before = pictures[-1], list(pictures[-3:-1])
    people = strong_detections(newest, LEAST_SCORE)
    boxes = [person.box for person in people]
    paths = _paths(people, newest.stamp_ns, before)
    moving = [path.last for path in paths if path.last is not None]
    total = np.sum(moving, axis=0) if moving else np.zeros(4)
    lag = (missing_ns - newest.stamp_ns) / NS_PER_S
    since = (newest.stamp_ns - before[-1].stamp_ns) / NS_PER_S if before else 0.0
    returns = _returns(scans, newest.stamp_ns)
    rows = []
    for place, (person, path) in enumerate(zip(people, paths, strict=True)):
        last = _STILL if path.last is None else path.last
        others = len(moving) - (path.last is not None)
        common = (total - last) / others if others else _STILL
        rows.append(
            [
                *(lag, since, float(path.last is not None)),
                *last,
                *(last * lag),
                float(path.earlier is not None),
                *(_STILL if path.earlier is None else path.earlier)[:2],
                *common[:2],
                *(person.score, path.score_change),
                *_shape(person.box, newest.image_size),
                *(float(len(people)), _crowding(place, boxes)),
                *returns,
            ]
        )
    inputs = np.array(rows, np.float64).reshape(-1, len(PERSON_FIELDS))
    return people, np.nan_to_num(inputs, posinf=_FASTEST, neginf=-_FASTEST)


class _Path(NamedTuple):
    """Velocities (4,) between the newest two pictures and between the two before."""

    last: FloatArray | None = None
    earlier: FloatArray | None = None
    score_change: float = 0.0


_STILL = np.zeros(4)


def _paths(
    people: Sequence[Detection], stamp_ns: int, before: Sequence[UnitFeatures]
) -> list[_Path]:
    """Follow each back through the pictures before."""
    if not before:
        return [_Path()] * len(people)
    past = strong_detections(before[-1], LEAST_SCORE)
    earlier = _paths(past, before[-1].stamp_ns, before[:-1])
    paths = []
    links = partners([p.box for p in people], [p.box for p in past])
    dt = max(stamp_ns - before[-1].stamp_ns, 1) / NS_PER_S
    for person, place in zip(people, links, strict=True):
        if place is None:
            paths.append(_Path())
            continue
        before_it = past[place]
        velocity = np.array(displacement(before_it.box, person.box)) / dt
        velocity = np.clip(velocity, -_FASTEST, _FASTEST)
        paths.append(_Path(velocity, earlier[place].last, person.score - before_it.score))
    return paths


def _crowding(place: int, boxes: Sequence[Box]) -> float:
    """How much of a box and the one that overlaps it most is shared (IoU)."""
    others = (box for other, box in enumerate(boxes) if other != place)
    return max((overlap(boxes[place], box) for box in others), default=0.0)


def _shape(box: Box, size: tuple[int, int]) -> tuple[float, float, float, float]:
    """Height (log px), aspect (log), and the room to the left and right, in widths up to one."""
    room = (box.x0, size[0] - box.x1) if size[0] else (box.width, box.width)
    left, right = (min(max(side / box.width, -1.0), 1.0) for side in room)
    return math.log(box.height), math.log(box.width / box.height), left, right


def _returns(scans: Sequence[UnitFeatures], since_ns: int) -> tuple[float, float]:
    """How many returns the newest scan has (log), and its change since the newest picture."""
    ordered = sorted(scans, key=lambda scan: scan.stamp_ns)
    if not ordered:
        return 0.0, 0.0
    now = math.log1p(len(ordered[-1].returns))
    then = next((s for s in reversed(ordered) if s.stamp_ns <= since_ns), ordered[0])
    return now, now - math.log1p(len(then.returns))

"""The ground truth of a recording; what cannot be true is reported, not used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from mmedge_ros.core.data_types import Box, FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import ODOMETRY_FRAME, EgoState
from mmedge_ros.geometry.transforms import Transform, rotation_from_quaternion
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay import BagError, ReplayError
from mmedge_ros.replay.bag import Bag, BagMessage
from mmedge_ros.replay.ground_truth import GroundTruth, TrueObject, TrueScene
from mmedge_ros.replay.wire_formats import header_stamp_ns

GROUND_TRUTH = 'mmedge_ros/msg/GroundTruth'
REACH = 'mmedge_ros/msg/GroundTruthReach'

# Ten times a crowd; more would be a flood that takes minutes to compare with.
_MOST_OBJECTS = 1000
_FARTHEST = 1e6
_FASTEST = 1e3
_LARGEST_PIXEL = 1e6
_LONGEST_LABEL = 40
_ROUNDING = 1e-3


def read_truth(bag: Bag) -> GroundTruth | None:
    """Read the true scenes of a recording; None where it has no ground truth.

    Scenes and objects that cannot be true are left out, and ``problems`` of the result says
    which. Where nothing is left the result holds no scene.
    """
    topics = [t.name for t in bag.topics if t.msgtype == GROUND_TRUTH and t.count]
    if not topics:
        return None
    reader = _TruthReader(topics[0])
    if len(topics) > 1:
        reader.note(f'the recording has {len(topics)} topics with it; {topics[0]} is used')
    # Whom the sensors could see is said of scenes that are known.
    reaches = [t.name for t in bag.topics if t.msgtype == REACH and t.count]
    for message in chain(bag.messages(topics[:1]), bag.messages(reaches) if reaches else ()):
        try:
            reader.take(bag, message)
        except ReplayError as err:
            reader.note(f'message not used: {err}')
    return reader.result()


class _TruthReader:
    """Takes messages one by one; counts each kind of problem and keeps its first case."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._scenes: dict[int, TrueScene] = {}
        self._frame_id = ''
        self._newest_ns = 0
        self._problems: dict[str, tuple[str, int]] = {}

    def note(self, text: str, kind: str = '') -> None:
        first, count = self._problems.get(kind or text, (text, 0))
        self._problems[kind or text] = first, count + 1

    def result(self) -> GroundTruth:
        problems = [
            f'ground truth: {text}' + (f' (and {count - 1} more like it)' if count > 1 else '')
            for text, count in self._problems.values()
        ]
        if not self._scenes:
            problems.append(f'ground truth: no message of {self._topic} can be used')
        return GroundTruth(list(self._scenes.values()), problems)

    def take(self, bag: Bag, message: BagMessage) -> None:
        place = f'message {message.index} of {message.topic}'
        try:
            stamp_ns = header_stamp_ns(message.raw)
            content = bag.deserialize(message)
        except BagError as err:
            self.note(f'message not used: {err}', 'damaged')
            return
        try:
            if message.msgtype == REACH:
                self._take_reach(stamp_ns, content, place)
            else:
                self._take_scene(stamp_ns, message.log_ns, content, place)
        # A recording brings its own definition of the type, which may be another one.
        except (AttributeError, TypeError, ValueError, OverflowError, IndexError) as err:
            self.note(f'{place} has another content than {message.msgtype}: {err}', 'content')

    def _take_scene(self, stamp_ns: int, log_ns: int, content: Any, place: str) -> None:
        frame_id = str(content.header.frame_id).lstrip('/') or ODOMETRY_FRAME
        if not plausible_stamp(stamp_ns, log_ns):
            self.note(
                f'{place} is stamped {stamp_ns} ns but was received at {log_ns} ns: not used',
                'stamp',
            )
            return
        if len(content.objects) > _MOST_OBJECTS:
            self.note(
                f'{place} holds {len(content.objects)} objects, more than {_MOST_OBJECTS}: not '
                'used',
                'flood',
            )
            return
        self._frame_id = self._frame_id or frame_id
        if frame_id != self._frame_id:
            self.note(
                f'{place} is in the frame {frame_id[:_LONGEST_LABEL]!r}, those before in '
                f'{self._frame_id[:_LONGEST_LABEL]!r}: not used',
                'frame',
            )
            return
        if stamp_ns in self._scenes:
            self.note(f'{place} has the stamp of an earlier one: not used', 'repeated stamp')
            return
        if stamp_ns < self._newest_ns:
            self.note(f'{place} is stamped before its forerunner: sorted by stamp', 'disorder')
        self._newest_ns = max(self._newest_ns, stamp_ns)
        self._scenes[stamp_ns] = TrueScene(
            stamp_ns,
            frame_id,
            self._objects(content.objects, place),
            _name(content.surroundings),
            _name(content.light),
            _name(content.distance),
            self._ego(content, stamp_ns, place),
        )

    def _take_reach(self, stamp_ns: int, content: Any, place: str) -> None:
        scene = self._scenes.get(stamp_ns)
        if scene is None:
            self.note(f'{place} belongs to no scene that is known: not used', 'no scene')
            return
        columns = content.ids, content.camera, content.radar
        ids, camera, radar = map(len, columns)
        if not ids == camera == radar <= _MOST_OBJECTS:
            self.note(
                f'{place} has {ids} ids, {camera} of camera and {radar} of radar: not used',
                'columns',
            )
            return
        known = {item.id: item for item in scene.objects}
        for number, clear, probability in zip(*columns, strict=True):
            text = f'{place}: object {number}'
            if int(number) not in known:
                self.note(f'{text} is not in its scene: not used', 'reach of nothing')
            elif not 0.0 <= probability <= 1.0:
                self.note(
                    f'{text} has a probability of {probability:g}, not 0 to 1: not used',
                    'probability',
                )
            else:
                known[int(number)] = replace(
                    known[int(number)], clear=bool(clear), radar=float(probability)
                )
        self._scenes[stamp_ns] = replace(
            scene, objects=tuple(known.values()), condition=_name(content.condition)
        )

    def _objects(self, given: Sequence[Any], place: str) -> tuple[TrueObject, ...]:
        objects: dict[int, TrueObject] = {}
        for entry in given:
            try:
                known = _true_object(entry)
            except _UntrueError as err:
                self.note(f'{place}: {err}: object not used', err.kind)
                continue
            if known.id in objects:
                self.note(f'{place}: id {known.id} occurs more than once: the first is used', 'id')
                continue
            objects[known.id] = known
        return tuple(objects.values())

    def _ego(self, content: Any, stamp_ns: int, place: str) -> EgoState | None:
        p, q = content.pose.position, content.pose.orientation
        linear, angular = content.twist.linear, content.twist.angular
        try:
            pose = Transform(
                rotation_from_quaternion(q.x, q.y, q.z, q.w),
                _vector(p, _FARTHEST, 'pose of the drone'),
            )
            return EgoState(
                stamp_ns,
                pose,
                _vector(linear, _FASTEST, 'velocity of the drone'),
                _vector(angular, _FASTEST, 'angular velocity of the drone'),
            )
        except (GeometryError, _UntrueError) as err:
            self.note(f'{place}: {err}: where the drone was is not known', 'pose')
            return None


class _UntrueError(ReplayError):
    """An object that cannot be; ``kind`` is what the others like it have in common."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


def _true_object(entry: Any) -> TrueObject:
    number, visibility = int(entry.id), float(entry.visibility)
    place = f'object {number}'
    if not -_ROUNDING <= visibility <= 1.0 + _ROUNDING:
        _refuse(f'{place} has the visibility {visibility:g}, not 0 to 1', 'visibility')
    return TrueObject(
        number,
        _name(entry.label),
        _box(entry.box, place) if entry.in_picture else None,
        min(max(visibility, 0.0), 1.0),
        _vector(entry.position, _FARTHEST, f'position of {place}'),
        _vector(entry.velocity, _FASTEST, f'velocity of {place}'),
    )


def _box(given: Any, place: str) -> Box:
    edges = [float(edge) for edge in given]
    if len(edges) != 4 or not all(abs(edge) <= _LARGEST_PIXEL for edge in edges):
        _refuse(f'{place} has the box {edges[:5]}, no four numbers in a picture', 'box')
    box = Box(*edges)
    if box.x1 <= box.x0 or box.y1 <= box.y0:
        _refuse(f'{place} has the box {edges}, which is empty or turned inside out', 'box')
    return box


def _vector(given: Any, limit: float, what: str) -> FloatArray:
    values = [float(given.x), float(given.y), float(given.z)]
    if not all(math.isfinite(value) and abs(value) <= limit for value in values):
        _refuse(f'{what} is {values}, not finite or beyond {limit:g}', what.partition(' ')[0])
    return np.array(values)


def _name(text: Any) -> str:
    return str(text)[:_LONGEST_LABEL]


def _refuse(text: str, kind: str) -> NoReturn:
    raise _UntrueError(text, kind)

"""Rigid transforms between the frames of the rig (tf2's meaning, without tf2)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.rotations import quaternion_of, rotation_of

# Shorter than any quaternion meant as a rotation, longer than rounding errors of zeros.
_MIN_QUATERNION_NORM = 1e-6


@dataclass(frozen=True, eq=False)
class Transform:
    """Maps points of a child frame into its parent: p_parent = R p_child + t.

    ``rotation`` is (3, 3), ``translation`` (3,) in metres.
    """

    rotation: FloatArray
    translation: FloatArray

    @staticmethod
    def identity() -> Transform:
        return Transform(np.eye(3), np.zeros(3))

    def apply(self, points: ArrayLike) -> FloatArray:
        """Map (N, 3) points, or one point (3,)."""
        return np.asarray(points, np.float64) @ self.rotation.T + self.translation

    def rotate(self, vectors: ArrayLike) -> FloatArray:
        """Turn (N, 3) directions or velocities, or one (3,), without moving them."""
        return np.asarray(vectors, np.float64) @ self.rotation.T

    def inverse(self) -> Transform:
        """Return the transform from the parent into the child."""
        return Transform(self.rotation.T, -self.rotation.T @ self.translation)

    def compose(self, inner: Transform) -> Transform:
        """Return the transform that applies ``inner`` first and then this one."""
        return Transform(self.rotation @ inner.rotation, self.apply(inner.translation))


class StampedTransform(NamedTuple):
    """A static edge of the transform tree.

    ``translation`` (3,) in metres is the child's origin in the parent, ``rotation`` (3, 3)
    turns child axes into parent axes.
    """

    parent: str
    child: str
    translation: FloatArray
    rotation: FloatArray

    @property
    def transform(self) -> Transform:
        """The edge as a transform from child into parent."""
        return Transform(self.rotation, self.translation)


def rotation_from_quaternion(x: float, y: float, z: float, w: float) -> FloatArray:
    """Return the (3, 3) rotation of a quaternion, which need not have unit length.

    :raises GeometryError: if a component is not finite or all are (almost) zero
    """
    norm = math.hypot(x, y, z, w)
    if not _MIN_QUATERNION_NORM < norm < math.inf:
        raise GeometryError(
            f'rotation (x, y, z, w) = ({x}, {y}, {z}, {w}) is not a quaternion; '
            'no rotation is (0, 0, 0, 1)'
        )
    return rotation_of(w / norm, x / norm, y / norm, z / norm)


def quaternion_from_rotation(rotation: FloatArray) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w), w >= 0, of a (3, 3) rotation matrix."""
    w, x, y, z = quaternion_of(rotation)
    return x, y, z, w


def prefixed(prefix: str, frame: str) -> str:
    """Return the name of a frame behind a drone's prefix; '' and what has it already stay."""
    return frame if not frame or frame.startswith(prefix) else prefix + frame


def with_prefix(edge: StampedTransform, prefix: str) -> StampedTransform:
    """Return an edge between the same frames of a drone with a prefix."""
    return edge._replace(parent=prefixed(prefix, edge.parent), child=prefixed(prefix, edge.child))


def static_transform(
    parent: str, child: str, translation: Sequence[float], quaternion: Sequence[float]
) -> StampedTransform:
    """Make an edge from numbers of the outside: metres, and a quaternion (x, y, z, w).

    :raises GeometryError: for empty or equal names and numbers that are no transform
    """
    parent, child = parent.lstrip('/'), child.lstrip('/')
    where = f'transform {parent!r} -> {child!r}'
    if not parent or not child or parent == child:
        raise GeometryError(f'{where}: parent and child must be two different, non-empty names')
    moved = np.array(translation, np.float64)
    if moved.shape != (3,) or not np.isfinite(moved).all():
        raise GeometryError(
            f'{where}: translation {list(translation)} is not three finite numbers'
        )
    if len(quaternion) != 4:
        raise GeometryError(f'{where}: rotation {list(quaternion)} is not (x, y, z, w)')
    try:
        turned = rotation_from_quaternion(*quaternion)
    except GeometryError as error:
        raise GeometryError(f'{where}: {error}') from error
    return StampedTransform(parent, child, moved, turned)


def transform_from_message(message: Any) -> StampedTransform:
    """Make an edge from a (duck-typed) geometry_msgs/TransformStamped.

    :raises GeometryError: as ``static_transform``
    """
    t, q = message.transform.translation, message.transform.rotation
    return static_transform(
        str(message.header.frame_id),
        str(message.child_frame_id),
        (t.x, t.y, t.z),
        (q.x, q.y, q.z, q.w),
    )


def parse_static_transform(text: str) -> StampedTransform:
    """Read "parent child x y z qx qy qz qw" (metres, quaternion), as parameters give it.

    :raises GeometryError: for anything else
    """
    words = text.split()
    try:
        numbers = [float(word) for word in words[2:]]
    except ValueError as err:
        raise GeometryError(f'transform {text!r}: {err}') from err
    if len(numbers) != 7:
        raise GeometryError(f'transform {text!r} must read "parent child x y z qx qy qz qw"')
    return static_transform(words[0], words[1], numbers[:3], numbers[3:])


def format_static_transform(transform: StampedTransform) -> str:
    """Write what `parse_static_transform` reads."""
    numbers = [*transform.translation, *quaternion_from_rotation(transform.rotation)]
    return ' '.join([transform.parent, transform.child, *(f'{float(n):.9g}' for n in numbers)])


class TransformTree:
    """Static transforms by frame names; a frame has one parent."""

    def __init__(self, transforms: Iterable[StampedTransform] = ()) -> None:
        self._edges: dict[str, tuple[str, Transform]] = {}
        for edge in transforms:
            self.add(edge.parent, edge.child, edge.transform)

    @property
    def frames(self) -> tuple[str, ...]:
        parents = {parent for parent, _ in self._edges.values()}
        return tuple(sorted(parents | self._edges.keys()))

    def add(self, parent: str, child: str, transform: Transform) -> None:
        """Enter an edge; it replaces the child's former one.

        :raises GeometryError: if the edge would close a cycle
        """
        if child in self._path(parent):
            raise GeometryError(
                f'transform {parent!r} -> {child!r} closes a cycle: {child!r} is already above '
                f'{parent!r}; remove one of the edges'
            )
        self._edges[child] = (parent, transform)

    def root_of(self, frame: str) -> str:
        """Return the topmost frame above ``frame``.

        :raises GeometryError: if the frame is unknown
        """
        return self._path(self._known(frame))[-1]

    def lookup(self, target: str, source: str) -> Transform:
        """Return the transform that maps points of ``source`` into ``target``.

        :raises GeometryError: if a frame is unknown or nothing connects the two
        """
        target_root, to_target_root = self._to_root(self._known(target))
        source_root, to_source_root = self._to_root(self._known(source))
        if target_root != source_root:
            raise GeometryError(
                f'no transform connects {source!r} (below {source_root!r}) with {target!r} '
                f'(below {target_root!r}); publish the missing edge on /tf_static'
            )
        return to_target_root.inverse().compose(to_source_root)

    def _known(self, frame: str) -> str:
        frames = self.frames
        if frame not in frames:
            known = ', '.join(frames) or 'none'
            raise GeometryError(f'unknown frame {frame!r}; the transforms know: {known}')
        return frame

    def _path(self, frame: str) -> list[str]:
        path = [frame]
        while path[-1] in self._edges:
            path.append(self._edges[path[-1]][0])
        return path

    def _to_root(self, frame: str) -> tuple[str, Transform]:
        result = Transform.identity()
        while frame in self._edges:
            frame, step = self._edges[frame]
            result = step.compose(result)
        return frame, result

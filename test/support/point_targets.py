"""A small world of point targets: a drone with camera and radar, walkers, static clutter.

Makes encoded units (boxes and returns) with known truth, without pictures: enough to ask
whether geometry, ego motion and tracking agree with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Detection,
    FloatArray,
    StageTiming,
    UnitFeatures,
)
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import StampedTransform, Transform

START_NS = 1_000 * NS_PER_S
HEIGHT = 1.68
RADIUS = 0.25

Motion = Callable[[float], Transform]
Walk = Callable[[float], FloatArray]


def camera_model() -> CameraModel:
    """640x480, 70 degrees wide, no distortion."""
    k = np.array([[457.0, 0.0, 320.0], [0.0, 457.0, 240.0], [0.0, 0.0, 1.0]])
    return CameraModel(640, 480, k, np.zeros(0), 'none')


def pose(
    x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0, pitch: float = 0.0
) -> Transform:
    """A pose of the base in odom: metres, and radians (pitch positive nose down)."""
    turn = Rotation.from_euler('ZY', [yaw, pitch]).as_matrix()
    return Transform(turn, np.array([x, y, z]))


@dataclass
class PointTargets:
    """The world. ``motion`` gives the base's pose in odom at a time in seconds since the start.

    ``walks`` give the feet of each person, ``clutter`` (N, 3) stands still; ``hidden`` are
    spans in seconds during which neither sensor sees a person. The camera looks ``tilt``
    radians down; both sensors sit at the base's origin.
    """

    motion: Motion
    walks: list[Walk] = field(default_factory=list)
    clutter: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))
    hidden: list[tuple[float, float]] = field(default_factory=list)
    tilt: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.camera = camera_model()
        self._random = np.random.default_rng(self.seed)
        down = Rotation.from_euler('Y', self.tilt).as_matrix()
        self.camera_pose = Transform(down @ OPTICAL_TO_BODY, np.zeros(3))
        self.radar_pose = Transform(down, np.zeros(3))

    @property
    def transforms(self) -> list[StampedTransform]:
        """Where the sensors sit on the drone."""
        zero = np.zeros(3)
        return [
            StampedTransform('base_link', 'camera', zero, self.camera_pose.rotation),
            StampedTransform('base_link', 'radar', zero, self.radar_pose.rotation),
        ]

    def ego_state(self, time: float) -> EgoState:
        """True pose and velocity of the base."""
        before, here, after = (self.motion(time + dt) for dt in (-1e-4, 0.0, 1e-4))
        velocity = (after.translation - before.translation) / 2e-4
        turn = Rotation.from_matrix(after.rotation @ before.rotation.T).as_rotvec() / 2e-4
        return EgoState(at_ns(time), here, velocity, turn)

    def units(self, seconds: float) -> Iterator[UnitFeatures]:
        """Camera units at 20 Hz and radar scans at 25 Hz, by stamp."""
        times = [(k / 20.0 + 0.007, CAMERA, k) for k in range(int(20 * seconds))]
        times += [(k / 25.0, RADAR, k) for k in range(int(25 * seconds))]
        for time, modality, sequence in sorted(times):
            yield (
                self._camera(time, sequence) if modality == CAMERA else self._radar(time, sequence)
            )

    def _visible(self, time: float) -> list[Walk]:
        if any(begin <= time < end for begin, end in self.hidden):
            return []
        return self.walks

    def _camera(self, time: float, sequence: int) -> UnitFeatures:
        optical = self.motion(time).compose(self.camera_pose).inverse()
        found = []
        for walk in self._visible(time):
            box = self._box(optical, walk(time))
            if box is not None:
                found.append(Detection(box, 0.8, 'person'))
        return _unit(CAMERA, time, sequence, detections=tuple(found), image_size=(640, 480))

    def _box(self, optical: Transform, feet: FloatArray) -> Box | None:
        """Bounds of an upright cylinder in the picture, with a pixel of noise."""
        angles = np.linspace(0.0, 2 * np.pi, 16)
        ring = np.column_stack([RADIUS * np.cos(angles), RADIUS * np.sin(angles), 0 * angles])
        body = np.concatenate([feet + ring, feet + ring + np.array([0.0, 0.0, HEIGHT])])
        points = optical.apply(body)
        if (points[:, 2] < 0.5).any():
            return None
        pixels = points[:, :2] / points[:, 2:] * 457.0 + np.array([320.0, 240.0])
        low, high = pixels.min(axis=0), pixels.max(axis=0)
        if (low < 0).any() or (high > [639, 479]).any():
            return None
        noise = self._random.normal(0.0, 1.0, 4)
        return Box(*(float(v) for v in np.concatenate([low, high]) + noise))

    def _radar(self, time: float, sequence: int) -> UnitFeatures:
        state = self.ego_state(time)
        sensor = state.pose.compose(self.radar_pose)
        assert state.velocity is not None
        places, speeds = [self.clutter], [np.zeros((len(self.clutter), 3))]
        for walk in self._visible(time):
            velocity = (walk(time + 1e-4) - walk(time - 1e-4)) / 2e-4
            spread = self._random.normal(0.0, [0.1, 0.1, 0.4], (4, 3))
            places.append(walk(time) + np.array([0.0, 0.0, HEIGHT / 2]) + spread)
            speeds.append(np.tile(velocity, (4, 1)))
        world, moving = np.concatenate(places), np.concatenate(speeds)
        offset = world - sensor.translation
        distance = np.linalg.norm(offset, axis=1)
        relative = np.sum((moving - state.velocity) * offset, axis=1) / distance
        points = sensor.inverse().apply(world)
        ahead = points[:, 0] > 0.5
        returns = np.full((int(ahead.sum()), 5), np.nan, np.float32)
        returns[:, :3] = points[ahead] + self._random.normal(0.0, 0.03, (len(returns), 3))
        returns[:, 3] = relative[ahead] + self._random.normal(0.0, 0.03, len(returns))
        return _unit(RADAR, time, sequence, returns=returns)


def at_ns(time: float) -> int:
    """Stamp of a time in seconds since the start."""
    return START_NS + round(time * NS_PER_S)


def scattered_clutter(count: int = 30, seed: int = 5) -> FloatArray:
    """Static points all around, 3 to 25 m away, up to 4 m high."""
    random = np.random.default_rng(seed)
    angle, distance = random.uniform(-np.pi, np.pi, count), random.uniform(3.0, 25.0, count)
    return np.column_stack(
        [distance * np.cos(angle), distance * np.sin(angle), random.uniform(0.0, 4.0, count)]
    )


def _unit(modality: str, time: float, sequence: int, **content: object) -> UnitFeatures:
    stamp_ns = at_ns(time)
    trail = (StageTiming('acquisition', stamp_ns, stamp_ns),)
    return UnitFeatures(modality, sequence, stamp_ns, stamp_ns, modality, trail, **content)  # type: ignore[arg-type]

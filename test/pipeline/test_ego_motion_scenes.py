"""What a drone sees while it hovers, flies and turns, with people and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Decision,
    Detection,
    FloatArray,
    StageTiming,
    UnitFeatures,
)
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import StampedTransform, Transform
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline

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


FLIGHTS = {
    'hovering with a sway': lambda t: pose(0.3 * np.sin(t), 0.2 * np.cos(1.3 * t), 5.0),
    'translating': lambda t: pose(2.0 * t, 0.5 * t, 6.0),
    'yawing': lambda t: pose(z=5.0, yaw=0.6 * t),
    'climbing, turning and pitching': lambda t: pose(
        t, 0.0, 4.0 + 0.7 * t, 0.3 * np.sin(t), 0.1 * np.sin(2 * t)
    ),
}


def walking(x: float, y: float, vx: float, vy: float) -> Walk:
    return lambda t: np.array([x + vx * t, y + vy * t, 0.0])


def fly(
    world: PointTargets,
    seconds: float,
    odometry: bool = True,
    units: Sequence[UnitFeatures] | None = None,
) -> list[Decision]:
    """Feed a pipeline as encoders and a flight controller would; return its decisions."""
    pipeline = PerceptionPipeline()
    pipeline.rig.set_camera(world.camera)
    pipeline.rig.add_transforms(world.transforms)
    decisions = []
    for unit in units if units is not None else list(world.units(seconds)):
        if odometry:
            time = (unit.stamp_ns - at_ns(0.0)) / 1e9
            pipeline.rig.add_ego_state(world.ego_state(time), 'odom', 'base_link')
        pipeline.add_features(unit, unit.available_ns)
        decisions += pipeline.poll(unit.available_ns)
    return [d.published(d.window_end_ns) for d in decisions]


@pytest.mark.parametrize('flight', FLIGHTS)
def test_static_clutter_makes_no_tracks_however_the_drone_moves(flight: str) -> None:
    world = PointTargets(FLIGHTS[flight], clutter=scattered_clutter(60))
    decisions = fly(world, 6.0)
    assert len(decisions) > 50
    assert sum(len(d.tracks) for d in decisions) == 0


@pytest.mark.parametrize('flight', ['hovering with a sway', 'translating'])
def test_without_odometry_the_returns_of_the_ground_give_the_motion_of_the_drone(
    flight: str,
) -> None:
    world = PointTargets(FLIGHTS[flight], clutter=scattered_clutter(60))
    decisions = fly(world, 6.0, odometry=False)
    assert sum(len(d.tracks) for d in decisions) == 0
    assert any('no odometry' in text for text in decisions[-1].degraded)


def test_a_walker_keeps_its_place_in_odom_while_the_drone_passes_and_turns() -> None:
    world = PointTargets(
        lambda t: pose(-4.0 + 0.8 * t, 1.0, 2.0, 0.1 * np.sin(t)),
        [walking(6.0, -1.0, 0.2, 0.6)],
        scattered_clutter(40),
    )
    decisions = fly(world, 6.0)
    people = [t for d in decisions for t in d.tracks if t.label == 'person']
    assert {t.id for t in people} == {people[0].id}
    assert decisions[-1].frame_id == 'odom'
    for decision in decisions[20:]:
        truth = world.walks[0]((decision.state_ns - at_ns(0.0)) / 1e9)
        (track,) = [t for t in decision.tracks if t.label == 'person']
        assert np.linalg.norm(track.position[:2] - truth[:2]) < 0.5
        assert np.linalg.norm(track.velocity[:2] - [0.2, 0.6]) < 0.6


def test_a_radar_that_is_late_and_out_of_order_changes_nothing_but_its_age() -> None:
    world = PointTargets(
        lambda t: pose(0.5 * t, 0.0, 3.0),
        [walking(6.0, -1.0, 0.5, 0.5), walking(9.0, 2.0, -0.5, 0.0)],
        scattered_clutter(20),
    )
    units = list(world.units(5.0))
    delays = np.random.default_rng(3).integers(40, 120, len(units))
    late = [
        replace(u, available_ns=u.stamp_ns + int(d) * 1_000_000) if u.modality == RADAR else u
        for u, d in zip(units, delays, strict=True)
    ]
    late.sort(key=lambda u: u.available_ns)
    # Beyond the end both see the same units, if only the camera goes on.
    last = max(u.available_ns for u in late)
    prompt, delayed = fly(world, 5.0, units=units), fly(world, 5.0, units=late)
    assert delayed[-1].ages[RADAR] >= prompt[-1].ages[RADAR]
    final = [_final_tracks(world, arrival, last) for arrival in (units, late)]
    assert final[0].keys() == final[1].keys()
    assert len(final[0]) == 2
    for number, position in final[0].items():
        np.testing.assert_allclose(position, final[1][number], atol=1e-9)


def _final_tracks(
    world: PointTargets, units: Sequence[UnitFeatures], last_ns: int
) -> dict[int, np.ndarray]:
    """Positions by id once everything has arrived."""
    pipeline = PerceptionPipeline()
    pipeline.rig.set_camera(world.camera)
    pipeline.rig.add_transforms(world.transforms)
    for time in np.arange(0.0, 5.0, 0.02):
        pipeline.rig.add_ego_state(world.ego_state(float(time)), 'odom', 'base_link')
    for unit in units:
        pipeline.add_features(unit, unit.available_ns)
        pipeline.poll(unit.available_ns)
    decisions = pipeline.poll(last_ns + 300_000_000)
    return {t.id: t.position for t in decisions[-1].tracks}

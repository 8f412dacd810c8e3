"""People who walk before a rig, as camera and radar see them; the truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hand_made_units import BEGIN_NS, FRAMES, LENS
from scipy.spatial.transform import Rotation

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Box, Detection, UnitFeatures
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import StampedTransform, Transform
from mmedge_ros.replay.extrinsics.sightings import Sightings

CAMERA_FRAME, RADAR_FRAME = FRAMES[CAMERA], FRAMES[RADAR]
HEIGHT = 1.68
_TILT = Rotation.from_euler('Y', 8.0, degrees=True).as_matrix()
CAMERA_MOUNT = StampedTransform(
    'base_link', CAMERA_FRAME, np.array([0.1, 0.0, 0.05]), _TILT @ OPTICAL_TO_BODY
)
RADAR_MOUNT = StampedTransform('base_link', RADAR_FRAME, np.array([0.1, 0.0, 0.0]), _TILT)
# Returns of each person and of the world around in each scan.
_OF_A_PERSON, _AROUND = 5, 12

Walk = Callable[[float], np.ndarray]


def across(t: float) -> np.ndarray:
    """To and fro across the view, 7 m away: x forward, y left, m on the ground."""
    return np.array([7.0 + 0.8 * np.sin(0.5 * t), 2.2 * np.sin(0.6 * t)])


def along(t: float) -> np.ndarray:
    return np.array([9.5 + 1.5 * np.sin(0.7 * t), -1.5 + 1.8 * np.cos(0.45 * t)])


def stands(t: float) -> np.ndarray:
    return np.array([6.0, 1.0])


def walked(
    wrong: tuple[float, float, float] = (0.0, 0.0, 0.0),
    late: float = 0.0,
    *,
    walks: tuple[Walk, ...] = (across, along),
    shakes: bool = False,
    elevation: bool = True,
    seconds: float = 16.0,
) -> Sightings:
    """What is seen with a radar that is turned by ``wrong`` degrees against what is known.

    :param late: by how much the radar's stamps are late, s
    :param shakes: a drone with odometry that sways and shakes, instead of a tripod without
    :param elevation: without it all returns are in the plane of the radar
    """
    random = np.random.default_rng(5)
    base = _shaking if shakes else _standing
    pictures = [_picture(n, t, base, walks) for n, t in enumerate(np.arange(0.0, seconds, 0.05))]
    scans = []
    around = np.column_stack(
        [random.uniform(4, 20, 60), random.uniform(-10, 10, 60), random.uniform(0, 2, 60)]
    )
    for n, t in enumerate(np.arange(0.02, seconds - 0.2, 0.05)):
        returns = _returns(t, base, walks, around, random)
        if not elevation:
            flat = np.linalg.norm(returns[:, :3], axis=1) ** 2 - returns[:, 1] ** 2
            returns[:, 0], returns[:, 2] = np.sqrt(flat), 0.0
        stamp_ns = BEGIN_NS + round((t + late) * NS_PER_S)
        scans.append(UnitFeatures(RADAR, n, stamp_ns, stamp_ns, RADAR_FRAME, (), returns=returns))
    turn = Rotation.from_euler('ZYX', wrong, degrees=True).as_matrix()
    believed = RADAR_MOUNT._replace(rotation=RADAR_MOUNT.rotation @ turn.T)
    return Sightings(
        tuple(pictures),
        tuple(scans),
        LENS,
        (CAMERA_MOUNT, believed),
        _odometry(seconds) if shakes else None,
    )


def _standing(t: float) -> Transform:
    return Transform(np.eye(3), np.array([0.0, 0.0, 1.5]))


def _shaking(t: float) -> Transform:
    yaw = 0.1 * np.sin(0.9 * t) + 0.004 * np.sin(31.0 * t)
    pitch = 0.003 * np.sin(43.0 * t + 1.0)
    rotation = Rotation.from_euler('ZY', [yaw, pitch]).as_matrix()
    return Transform(rotation, np.array([0.5 * np.sin(1.3 * t), 0.6 * np.cos(1.7 * t), 1.5]))


def _rate(pose: Callable[[float], Transform], t: float) -> tuple[np.ndarray, np.ndarray]:
    before, after = pose(t - 1e-4), pose(t + 1e-4)
    turned = Rotation.from_matrix(after.rotation @ before.rotation.T).as_rotvec()
    return (after.translation - before.translation) / 2e-4, turned / 2e-4


def _odometry(seconds: float) -> EgoMotion:
    motion = EgoMotion('odom', 'base_link', kept=None)
    for t in np.arange(0.0, seconds, 0.01):
        motion.add(EgoState(BEGIN_NS + round(t * NS_PER_S), _shaking(t), *_rate(_shaking, t)))
    return motion


def _picture(
    number: int, t: float, base: Callable[[float], Transform], walks: tuple[Walk, ...]
) -> UnitFeatures:
    optical = base(t).compose(CAMERA_MOUNT.transform).inverse()
    detections = []
    for walk in walks:
        x, y = walk(t)
        pixels, _ = LENS.project(optical.apply([[x, y, HEIGHT], [x, y, 0.0]]))
        (u, top), (_, bottom) = pixels + 0.5
        half = 0.17 * (bottom - top)
        detections.append(Detection(Box(u - half, top, u + half, bottom), 0.9, 'person'))
    stamp_ns = BEGIN_NS + round(t * NS_PER_S)
    return UnitFeatures(
        CAMERA,
        number,
        stamp_ns,
        stamp_ns,
        CAMERA_FRAME,
        (),
        detections=tuple(detections),
        image_size=(640, 480),
    )


def _returns(
    t: float,
    base: Callable[[float], Transform],
    walks: tuple[Walk, ...],
    around: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray:
    points, velocities = [], []
    for walk in walks:
        middle = np.append(walk(t), 0.85)
        speed = np.append((walk(t + 1e-3) - walk(t - 1e-3)) / 2e-3, 0.0)
        points.append(middle + random.normal(0.0, [0.08, 0.08, 0.1], (_OF_A_PERSON, 3)))
        velocities.append(np.tile(speed, (_OF_A_PERSON, 1)))
    points.append(around[random.choice(len(around), _AROUND, replace=False)])
    velocities.append(np.zeros((_AROUND, 3)))
    radar = base(t).compose(RADAR_MOUNT.transform)
    seen = radar.inverse().apply(np.concatenate(points))
    own = _rate(lambda at: base(at).compose(RADAR_MOUNT.transform), t)[0]
    relative = (np.concatenate(velocities) - own) @ radar.rotation
    ranges = np.linalg.norm(seen, axis=1)
    doppler = np.einsum('ij,ij->i', relative, seen) / ranges
    cosines = seen[:, 1:] / ranges[:, None] + random.normal(0.0, [0.015, 0.05], (len(seen), 2))
    forward = np.sqrt(np.maximum(1.0 - (cosines**2).sum(axis=1), 0.01))
    placed = ranges[:, None] * np.column_stack([forward, cosines])
    return np.column_stack([placed, doppler, np.full(len(placed), 15.0)]).astype(np.float32)

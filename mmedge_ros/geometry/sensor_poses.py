"""Where the sensors are: from a tree of frames to the poses fusion needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform, TransformTree

BASE_FRAME = 'base_link'
# Of the package's own drivers, unless they are told otherwise.
CAMERA_FRAME = 'camera_color_optical_frame'
RADAR_FRAME = 'radar_link'

# An optical frame (z forward, x right, y down) seen from a body frame (x forward, y left).
OPTICAL_TO_BODY = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


@dataclass(frozen=True, eq=False)
class SensorGeometry:
    """Poses of the sensors in the tracking frame ``frame_id``, and the camera's model.

    ``camera_pose`` and ``radar_pose`` map sensor coordinates into the tracking frame, whose z
    axis points up. ``radar_velocity`` (3,) m/s is the radar's own in that frame; None where
    the frame moves with the radar and how is not known.
    ``degraded`` says in words what had to be assumed or is missing.
    """

    frame_id: str
    camera: CameraModel | None
    camera_pose: Transform
    radar_pose: Transform
    degraded: tuple[str, ...] = ()
    radar_velocity: FloatArray | None = None


def resolve_geometry(
    tree: TransformTree,
    camera: CameraModel | None = None,
    camera_frame: str = '',
    radar_frame: str = '',
    base_frame: str = BASE_FRAME,
) -> SensorGeometry:
    """Choose the tracking frame and look the sensors up in it.

    Without odometry tracks live in ``base_frame`` where the tree knows it, else in the root
    above the sensors.
    A sensor that is not in the tree is assumed to sit at the origin looking forward, and the
    result says so.
    """
    degraded: list[str] = []
    frame_id = _body_frame(tree, [f for f in (camera_frame, radar_frame) if f], base_frame)
    if frame_id != base_frame:
        degraded.append(f'no {base_frame} in the transforms: {frame_id} is taken for it')
    camera_pose = Transform(OPTICAL_TO_BODY, np.zeros(3))
    radar_pose = Transform.identity()
    if camera_frame:
        camera_pose = _pose(tree, frame_id, camera_frame, camera_pose, degraded)
    if radar_frame:
        radar_pose = _pose(tree, frame_id, radar_frame, radar_pose, degraded)
    if camera_frame and camera is None:
        degraded.append('no camera calibration: boxes cannot be placed in space')
    return SensorGeometry(frame_id, camera, camera_pose, radar_pose, tuple(degraded))


def _body_frame(tree: TransformTree, sensor_frames: list[str], base_frame: str) -> str:
    for frame in sensor_frames:
        try:
            tree.lookup(base_frame, frame)
        except GeometryError:
            continue
        return base_frame
    for frame in sensor_frames:
        try:
            return tree.root_of(frame)
        except GeometryError:
            continue
    return base_frame


def _pose(
    tree: TransformTree, frame_id: str, sensor: str, assumed: Transform, degraded: list[str]
) -> Transform:
    if sensor == frame_id:
        return Transform.identity()
    try:
        return tree.lookup(frame_id, sensor)
    except GeometryError:
        degraded.append(
            f'no transform from {frame_id} to {sensor}: assumed at the origin, looking forward'
        )
        return assumed

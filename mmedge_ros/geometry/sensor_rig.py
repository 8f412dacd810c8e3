"""The sensors on a drone that moves: calibration, mounts and ego motion joined."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from mmedge_ros.core.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import (
    ODOMETRY_FRAME,
    EgoMotion,
    EgoReport,
    EgoState,
    carried,
)
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rangefinder import HeightReport
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import StampedTransform, TransformTree, prefixed, with_prefix

_ASSUMED = (
    'no camera calibration: a lens of 53 degrees across the picture is assumed, so that places '
    'and speeds by the camera alone are guesses'
)
RigReport: TypeAlias = EgoReport | HeightReport

# Of some seconds.
_MOST_HEIGHTS = 500
# A beam looks down if its lowest part (cosine of 45 degrees) does.
_DOWN = 0.7


class SensorRig:
    """Collects what is known of the sensors' places, and answers for any instant.

    ``prefix``, set before anything is entered, comes before the name of each frame that does not
    have it: several drones share a tree of transforms.
    """

    def __init__(self) -> None:
        self.prefix = ''
        self.newest_ego_ns: int | None = None
        self._tree = TransformTree()
        self._camera: CameraModel | None = None
        self._assumed: CameraModel | None = None
        self._frames: dict[str, str] = {}
        self._geometry: SensorGeometry | None = None
        self._ego = EgoMotion()
        self._heights: deque[HeightReport] = deque(maxlen=_MOST_HEIGHTS)

    @property
    def geometry(self) -> SensorGeometry:
        if self._geometry is None:
            self._geometry = resolve_geometry(
                self._tree,
                self._camera or self._assumed,
                self._frames.get(CAMERA, ''),
                self._frames.get(RADAR, ''),
                self._ego.base_frame or prefixed(self.prefix, BASE_FRAME),
            )
        return self._geometry

    @property
    def frame_id(self) -> str:
        """The frame tracks live in: that of odometry where there is any."""
        return self._ego.frame_id or self.geometry.frame_id

    @property
    def degraded(self) -> tuple[str, ...]:
        """What is missing or was assumed, in words."""
        missing = () if self._camera or not self._assumed else (_ASSUMED,)
        if self._ego.frame_id:
            return (*self.geometry.degraded, *missing)
        no_odometry = f'no odometry: tracks live in {self.geometry.frame_id}'
        return (no_odometry, *self.geometry.degraded, *missing)

    @property
    def has_camera(self) -> bool:
        """Whether the camera is calibrated."""
        return self._camera is not None

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the camera's picture, px; zeros without one."""
        camera = self.geometry.camera
        return (camera.width, camera.height) if camera else (0, 0)

    def set_camera(self, camera: CameraModel) -> None:
        self._camera = camera
        self._geometry = None

    def see_picture(self, width: int, height: int) -> None:
        """Assume a usual lens for pictures of this size, px, as long as nothing is known of it."""
        known = self._camera or self._assumed
        if known is not None and (self._camera or (known.width, known.height) == (width, height)):
            return
        with contextlib.suppress(GeometryError):  # nothing can be assumed of an absurd size
            self._assumed = CameraModel.nominal(width, height, float(width))
            self._geometry = None

    def add_transforms(self, transforms: Sequence[StampedTransform]) -> None:
        """Enter static transforms.

        :raises GeometryError: for one that closes a cycle; those before it are entered
        """
        self._geometry = None
        for transform in transforms:
            edge = with_prefix(transform, self.prefix)
            self._tree.add(edge.parent, edge.child, edge.transform)

    def enter(self, report: RigReport) -> None:
        """Enter what odometry or a rangefinder says."""
        if isinstance(report, HeightReport):
            self._heights.append(report)
        else:
            self.add_ego_state(report.state, report.frame_id, report.base_frame)

    def add_ego_state(self, state: EgoState, frame_id: str, base_frame: str) -> None:
        """Enter how the drone moves: the pose of ``base_frame`` in ``frame_id``.

        Odometry that leaves its frames unnamed is taken to mean the usual ones.
        """
        frame_id = prefixed(self.prefix, frame_id or ODOMETRY_FRAME)
        base_frame = prefixed(self.prefix, base_frame or BASE_FRAME)
        if (frame_id, base_frame) != (self._ego.frame_id, self._ego.base_frame):
            self._ego = EgoMotion(frame_id, base_frame)
            self._geometry = None
        self._ego.add(state)
        self.newest_ego_ns = max(state.stamp_ns, self.newest_ego_ns or state.stamp_ns)

    def ego_at(self, stamp_ns: int) -> EgoState | None:
        """Return how the drone moved at one instant of the last seconds; None if not known."""
        return self._ego.nearest(stamp_ns)

    def set_frames(self, frames: Mapping[str, str]) -> None:
        named = {modality: prefixed(self.prefix, frame) for modality, frame in frames.items()}
        if any(self._frames.get(modality) != frame for modality, frame in named.items()):
            self._frames.update(named)
            self._geometry = None

    def ground_points(self, after_ns: int, until_ns: int) -> FloatArray:
        """Return where beams of rangefinders met the ground (N, 3) in that time.

        Beams that do not look down, and those of frames that nobody knows, are left out.
        """
        points = []
        for report in self._heights:
            ego = self._ego.at(report.stamp_ns) if after_ns < report.stamp_ns <= until_ns else None
            if ego is None:
                continue
            origin, beam = ego.pose.translation, -ego.pose.rotation[:, 2]
            if report.is_level:
                beam = np.array([0.0, 0.0, -1.0])
            elif report.frame_id:
                frame = prefixed(self.prefix, report.frame_id)
                try:
                    mount = self._tree.lookup(self._ego.base_frame, frame)
                except GeometryError:
                    if not report.looks_down:
                        continue
                else:
                    origin = ego.pose.apply(mount.translation)
                    beam = ego.pose.rotate(mount.rotation[:, 0])
            if beam[2] < -_DOWN:
                points.append(origin + report.distance * beam)
        return np.array(points).reshape(-1, 3)

    def geometry_at(self, stamp_ns: int) -> SensorGeometry:
        """Return sensor poses in the tracking frame at one instant."""
        state = self._ego.nearest(stamp_ns)
        return self.geometry if state is None else carried(self.geometry, state, self.frame_id)

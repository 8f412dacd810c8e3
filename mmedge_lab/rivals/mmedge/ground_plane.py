"""The cheapest range there is: people stand where the foot of their box meets flat ground.

Height above the ground is that of a rangefinder which looks down, where one says something, else
odometry's altitude; attitude is odometry's. All errors are taken for one of the angle under which
the foot is seen: from the height ``h`` it moves the foot at the distance ``g`` by (g^2 + h^2) / h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mmedge_lab.judging.encoded_flight import EncodedFlight, StoredEncoder
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    FloatArray,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.truth_matching import counted_people
from mmedge_ros.tracking.data_association import intersection_over_union

# Deviation of that angle, rad: 'error of foot' of `mmedge lab bench world` over every 23rd flight
# of hard_calibration (nine seeds: 0.0099 to 0.0268).
ANGLE_ERROR = 0.016
# Feet are nearer than the middle of the body, m.
_FOOT = 0.2
_OLDEST_NS = NS_PER_S // 4
_FLATTEST, _LEAST_IOU = 0.02, 0.5


class GroundPlaneEncoder(StoredEncoder):
    """Stored detections with the range of the ground plane in place of their own.

    ``readings`` are stamps (ns) and distances (m) of a rangefinder, in their order. ``errors`` of
    the angle (rad) are those of people whom a box meets, without their signs.
    """

    def __init__(
        self,
        flight: EncodedFlight,
        truth: GroundTruth,
        rig: SensorRig,
        readings: Sequence[tuple[int, float]] = (),
    ) -> None:
        super().__init__(flight, CAMERA)
        self._truth, self._rig, self._readings = truth, rig, readings
        self.errors: list[float] = []

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        features = super().encode(unit, configuration, configuration_id)
        detections, height = features.detections, self._height(unit.stamp_ns)
        geometry = self._rig.geometry_at(unit.stamp_ns)
        if geometry.camera is None or height <= 0.0 or not detections:
            return features
        boxes = np.array([detection.box for detection in detections])
        middles = (boxes[:, 0] + boxes[:, 2]) / 2.0
        feet, centres = (
            geometry.camera_pose.rotate(geometry.camera.bearing(np.column_stack([middles, rows])))
            for rows in (boxes[:, 3], (boxes[:, 1] + boxes[:, 3]) / 2.0)
        )
        falls = -feet[:, 2] / np.hypot(feet[:, 0], feet[:, 1])
        known = (falls > _FLATTEST) & (boxes[:, 3] < geometry.camera.height - 2.0)
        ground = height / np.where(known, falls, np.nan)
        per_angle = (ground**2 + height**2) / height
        self._compare(unit.stamp_ns, boxes, ground + _FOOT, per_angle)
        level = np.hypot(centres[:, 0], centres[:, 1])
        deviations = ANGLE_ERROR * per_angle / level
        ranged = zip(detections, (ground + _FOOT) / level, deviations, strict=True)
        return replace(
            features,
            detections=tuple(
                replace(one, distance=float(distance), distance_deviation=float(deviation))
                for one, distance, deviation in ranged
            ),
        )

    def _height(self, stamp_ns: int) -> float:
        """Return how high the camera is above the ground; NaN where nothing says."""
        ego = self._rig.ego_at(stamp_ns)
        if ego is None:
            return math.nan
        height = float(self._rig.geometry_at(stamp_ns).camera_pose.translation[2])
        near = [r for at_ns, r in self._readings if 0 <= stamp_ns - at_ns <= _OLDEST_NS]
        if near and math.isfinite(near[-1]):
            height += near[-1] * float(ego.pose.rotation[2, 2]) - float(ego.pose.translation[2])
        return height

    def _compare(
        self, stamp_ns: int, boxes: FloatArray, ground: FloatArray, per_angle: FloatArray
    ) -> None:
        frame, drone = self._truth.frame_at(stamp_ns), self._truth.ego.at(stamp_ns)
        if frame is None or drone is None:
            return
        people = frame.select(counted_people(frame))
        overlaps = intersection_over_union(boxes, people.boxes)
        eye = drone.pose.apply(self._rig.geometry.camera_pose.translation)
        away = np.linalg.norm(people.positions[:, :2] - eye[:2], axis=1)
        off = np.abs(ground[:, None] - away) / per_angle[:, None]
        self.errors += off[(overlaps >= _LEAST_IOU) & np.isfinite(off)].tolist()

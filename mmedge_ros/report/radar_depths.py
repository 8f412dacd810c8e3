"""Radar depths of boxes in the picture, computed again from a run's units."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Box, UnitFeatures
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters, fuse_detections

# Two scans: one alone is too thin to meet every person (5 to 25 returns at 20 to 25 Hz).
SCANS_PER_PICTURE = 2


class RadarScans:
    """The radar units of a run in the order of their stamps."""

    def __init__(self, record: RunRecord) -> None:
        units = [unit for unit in record.features if unit.modality == RADAR]
        self._scans: Sequence[UnitFeatures] = sorted(units, key=lambda unit: unit.stamp_ns)
        self._stamps = [unit.stamp_ns for unit in self._scans]
        self._horizon_ns = round(record.window * NS_PER_S)

    def before(self, stamp_ns: int) -> list[UnitFeatures]:
        """Return the last two scans at or before an instant, none older than a window.

        Without that limit a radar that fell silent would be compared with pictures taken
        seconds later.
        """
        end = bisect_right(self._stamps, stamp_ns)
        recent = self._scans[max(end - SCANS_PER_PICTURE, 0) : end]
        return [scan for scan in recent if stamp_ns - scan.stamp_ns <= self._horizon_ns]


def sensor_geometry(record: RunRecord) -> SensorGeometry | None:
    """Return the geometry of a run, or None when calibration or a pose is missing."""
    if record.camera is None or record.camera_pose is None or record.radar_pose is None:
        return None
    return SensorGeometry(record.frame_id, record.camera, record.camera_pose, record.radar_pose)


def radar_set_depths(
    record: RunRecord, parameters: DecisionFusionParameters | None = None
) -> list[tuple[int, Box, float]]:
    """List the depths that decision fusion took from the radar.

    Every camera unit is fused with the last two scans before it, as in flight; boxes whose
    range came from their height are left out.

    :return: (stamp in ns, box in px, depth along the optical axis in m) of each such box;
        empty without calibration
    """
    geometry = sensor_geometry(record)
    if geometry is None:
        return []
    scans = RadarScans(record)
    settings = parameters or DecisionFusionParameters()
    return [
        (measurement.stamp_ns, measurement.box, measurement.depth)
        for unit in record.features
        if unit.modality == CAMERA
        for measurement in fuse_detections(unit, scans.before(unit.stamp_ns), geometry, settings)
        if measurement.box is not None and measurement.range_from == RADAR
    ]

"""The pictures of a recording, read again after a run, and what the run knew drawn into them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Decision,
    FloatArray,
    Unit,
    UnitFeatures,
)
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.ego_motion import carried
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.pipeline.unit_intake import plausible_stamp
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.trajectories import sensor_pose
from mmedge_ros.report.truth_matching import counted_people
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.viewing.drawing import Picture, annotate, draw_returns

# Two scans: one alone is too thin to meet every person (5 to 25 returns at 20 to 25 Hz).
SCANS_PER_PICTURE = 2


class TimedPicture(NamedTuple):
    """A picture (H, W, 3) uint8 BGR, when it was measured and when it was there to be used."""

    stamp_ns: int
    available_ns: int
    picture: Picture


def recorded_pictures(recording: Recording) -> Iterator[TimedPicture]:
    """Return the pictures by the time they were available; damaged ones are left out."""
    for unit in recording.units():
        shot = _decoded(unit) if unit.modality == CAMERA else None
        if shot is not None:
            yield shot


def pictures_from(
    recording: Recording, instants_ns: Sequence[int]
) -> Iterator[tuple[list[int], TimedPicture]]:
    """Return for each instant the first picture of then or later that can be decoded.

    Only those are decoded, and only one is held at a time.

    :return: pictures, each with the instants it belongs to
    """
    ahead = sorted(instants_ns)
    for unit in recording.units():
        if not ahead:
            return
        if unit.modality != CAMERA or _stamp_ns(unit) < ahead[0]:
            continue
        shot = _decoded(unit)
        if shot is not None:
            reached = [instant for instant in ahead if instant <= shot.stamp_ns]
            ahead = ahead[len(reached) :]
            yield reached, shot


def fitted(picture: Picture, width: int, height: int) -> tuple[Picture, float, tuple[int, int]]:
    """Scale a copy of a picture until it just fits into a size.

    :return: the picture, its scale, and where its upper left corner lies to be in the middle
    """
    tall, wide = picture.shape[:2]
    scale = min(width / wide, height / tall)
    size = (max(1, round(wide * scale)), max(1, round(tall * scale)))
    method = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
    scaled = picture.copy()
    if size != (wide, tall):
        scaled = np.asarray(cv2.resize(picture, size, interpolation=method), np.uint8)
    return scaled, scale, ((width - size[0]) // 2, (height - size[1]) // 2)


def _decoded(unit: Unit) -> TimedPicture | None:
    try:
        picture = decode_image(unit.payload)
    except SensingError:
        return None
    return TimedPicture(_stamp_ns(unit), unit.available_ns, picture)


def _stamp_ns(unit: Unit) -> int:
    is_true = plausible_stamp(unit.stamp_ns, unit.available_ns)
    return unit.stamp_ns if is_true else unit.available_ns


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


class RunOverlay:
    """Draws tracks, radar returns and, where it is known, the truth."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._scans = RadarScans(record)
        self._geometry = sensor_geometry(record)
        self._moving_speed = DecisionFusionParameters().moving_speed
        self._published_ns: list[int] = []
        self._newest: list[Decision] = []
        for decision in sorted(record.decisions, key=lambda d: d.published_ns):
            before = self._newest[-1] if self._newest else decision
            is_newer = decision.window_end_ns >= before.window_end_ns
            self._published_ns.append(decision.published_ns)
            self._newest.append(decision if is_newer else before)

    def known_at(self, now_ns: int) -> Decision | None:
        """Return the newest of the decisions published by an instant."""
        count = bisect_right(self._published_ns, now_ns)
        return self._newest[count - 1] if count else None

    def frame(
        self,
        shot: TimedPicture,
        decision: Decision | None,
        width: int,
        height: int,
        *,
        ids_only: bool = False,
        radar: bool = False,
    ) -> Picture:
        """Draw a decision into a picture brought to that size, black beside it.

        :param ids_only: without ranges and speeds in the labels
        :param radar: also draw the radar returns
        """
        drawn, scale, (x, y) = fitted(shot.picture, width, height)
        if radar:
            self._draw_radar(drawn, shot.stamp_ns, scale)
        truth = self._people_at(shot.stamp_ns)
        # Without a decision there are no tracks, and the truth is shown all the same.
        shown = decision or Decision(shot.stamp_ns, shot.stamp_ns, '', (), {})
        origin = self._origin(shown)
        drawn = annotate(drawn, shot.stamp_ns, shown, origin, scale, truth, ids_only=ids_only)
        frame = np.zeros((height, width, 3), np.uint8)
        frame[y : y + drawn.shape[0], x : x + drawn.shape[1]] = drawn
        return frame

    def _people_at(self, stamp_ns: int) -> list[Box]:
        """Return the boxes of the visible people that are really there."""
        frame = self._record.truth.frame_at(stamp_ns) if self._record.truth else None
        if frame is None:
            return []
        return [Box(*map(float, box)) for box in frame.boxes[counted_people(frame)]]

    def _origin(self, decision: Decision) -> FloatArray | None:
        """Where ranges are measured from, in the frame of a decision."""
        if decision.frame_id != self._record.frame_id:
            return None
        return sensor_pose(self._record, decision.state_ns, decision.frame_id).translation

    def _draw_radar(self, picture: Picture, stamp_ns: int, scale: float) -> None:
        scans = self._scans.before(stamp_ns)
        if self._geometry is None or self._geometry.camera is None or not scans:
            return
        returns = np.concatenate([_placeable(scan) for scan in scans]).astype(np.float64)
        in_frame = self._geometry.radar_pose.apply(returns[:, :3])
        optical = self._geometry.camera_pose.inverse().apply(in_frame)
        pixels, in_view = self._geometry.camera.project(optical)
        speeds = np.concatenate([self._over_ground(scan) for scan in scans])
        with np.errstate(invalid='ignore'):  # NaN where a radar gives no velocity
            moving = np.abs(speeds) >= self._moving_speed
        # The middle of pixel 0 lies at half a pixel, in every scale.
        draw_returns(picture, (pixels[in_view] + 0.5) * scale - 0.5, moving[in_view])

    def _over_ground(self, scan: UnitFeatures) -> FloatArray:
        """Velocities (N,) of a scan's returns without the drone's own, where that is known."""
        returns = _placeable(scan).astype(np.float64)
        state = self._record.ego.nearest(scan.stamp_ns) if self._record.ego else None
        if state is None or self._geometry is None:
            return returns[:, 3]
        geometry = carried(self._geometry, state, self._record.frame_id)
        rays = returns[:, :3] / np.maximum(np.linalg.norm(returns[:, :3], axis=1), 1e-6)[:, None]
        own = np.zeros(3) if geometry.radar_velocity is None else geometry.radar_velocity
        return np.asarray(returns[:, 3] + geometry.radar_pose.rotate(rays) @ own)


def _placeable(scan: UnitFeatures) -> NDArray[np.float32]:
    return scan.returns[np.isfinite(scan.returns[:, :3]).all(axis=1)]

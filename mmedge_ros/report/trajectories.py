"""The tracks of a run, each put together from the decisions that hold it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box, Configuration, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.transforms import Transform

_NO_BOX = Box(np.nan, np.nan, np.nan, np.nan)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One track over its N decisions, in their order.

    ``times`` (N,) s since the start of the run, ``positions`` (N, 3) m in the run's frame,
    ``boxes`` (N, 4) px and NaN where there was none. ``ranges`` (N,) m are those from the sensor,
    ``depths`` (N,) m those along its optical axis, NaN without a camera whose pose is known.
    ``seen_by`` counts the decisions in which each modality saw it.
    """

    id: int
    label: str
    times: FloatArray
    positions: FloatArray
    boxes: FloatArray
    ranges: FloatArray
    depths: FloatArray
    seen_by: dict[str, int]

    @property
    def duration(self) -> float:
        """Time from the first to the last decision that holds the track, in seconds."""
        return float(self.times[-1] - self.times[0])


def start_ns(record: RunRecord) -> int:
    """Return the instant that figures call zero: the first thing known of the run."""
    instants = [*record.camera_stamps_ns[:1]]
    instants += [unit.stamp_ns for unit in record.features[:1]]
    if record.decisions:
        instants.append(record.decisions[0].window_end_ns - round(record.window * NS_PER_S))
    return min(instants, default=0)


def configurations_in_order(record: RunRecord) -> list[Configuration]:
    """Return the configurations in the order they took effect."""
    return sorted(record.configurations, key=lambda c: (c.effective_from_ns, c.id))


def sensor_mount(record: RunRecord) -> Transform:
    """Return the pose on the body of the sensor that ranges are measured from.

    That is the camera, else the radar, else the origin.
    """
    return record.camera_pose or record.radar_pose or Transform.identity()


def sensor_pose(record: RunRecord, stamp_ns: int, frame_id: str) -> Transform:
    """Return the pose of that sensor in the frame of a decision's tracks.

    Where that frame is the one of odometry the sensor moves in it; elsewhere it stands still.
    """
    mount = sensor_mount(record)
    if not record.ego or record.ego.frame_id != frame_id:
        return mount
    state = record.ego.nearest(stamp_ns)
    return mount if state is None else state.pose.compose(mount)


def trajectories(record: RunRecord) -> list[Trajectory]:
    """Collect the tracks of a run, longest first."""
    zero_ns = start_ns(record)
    rows: dict[int, list[_Row]] = {}
    for decision in record.decisions:
        if not decision.tracks:
            continue
        time = (decision.state_ns - zero_ns) / NS_PER_S
        pose = sensor_pose(record, decision.state_ns, decision.frame_id)
        for track in decision.tracks:
            with np.errstate(invalid='ignore', over='ignore'):  # of a track that diverged
                seen_from = pose.inverse().apply(track.position)
            rows.setdefault(track.id, []).append(_Row(time, track, seen_from))
    has_camera = record.camera_pose is not None
    joined = [_trajectory(number, entries, has_camera) for number, entries in rows.items()]
    return sorted(joined, key=lambda t: (-t.duration, -len(t.times), t.id))


class _Row(NamedTuple):
    time: float
    track: Track
    seen_from: FloatArray


def _trajectory(number: int, rows: list[_Row], has_camera: bool) -> Trajectory:
    tracks = [row.track for row in rows]
    seen_by = Counter(modality for track in tracks for modality in track.seen_by)
    seen_from = np.array([row.seen_from for row in rows], np.float64).reshape(-1, 3)
    with np.errstate(over='ignore'):
        ranges = np.asarray(np.linalg.norm(seen_from, axis=1))
    return Trajectory(
        number,
        tracks[-1].label,
        np.array([row.time for row in rows]),
        np.array([track.position for track in tracks], np.float64).reshape(-1, 3),
        np.array([track.box or _NO_BOX for track in tracks], np.float64).reshape(-1, 4),
        ranges,
        seen_from[:, 2] if has_camera else np.full(len(rows), np.nan),
        dict(sorted(seen_by.items())),
    )

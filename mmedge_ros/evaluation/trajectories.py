"""The tracks of a run, each put together from the decisions that hold it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import NS_PER_S, Box, FloatArray, Track
from mmedge_ros.evaluation.run_record import RunRecord

_NO_BOX = Box(np.nan, np.nan, np.nan, np.nan)


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One track over its N decisions, in their order.

    ``times`` (N,) s since the start of the run, ``positions`` (N, 3) m and ``covariances``
    (N, 3, 3) in the run's frame, ``boxes`` (N, 4) px and NaN where there was none.
    ``seen_by`` counts the decisions in which each modality saw it.
    """

    id: int
    label: str
    times: FloatArray
    positions: FloatArray
    covariances: FloatArray
    boxes: FloatArray
    seen_by: dict[str, int]

    @property
    def duration(self) -> float:
        """Time from the first to the last decision that holds the track, in seconds."""
        return float(self.times[-1] - self.times[0])

    @property
    def has_box(self) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(self.boxes).all(axis=1), np.bool_)


def start_ns(record: RunRecord) -> int:
    """Return the instant that figures call zero: the first thing known of the run."""
    instants = [*record.camera_stamps_ns[:1]]
    instants += [unit.stamp_ns for unit in record.features[:1]]
    if record.decisions:
        instants.append(record.decisions[0].window_end_ns - round(record.window * NS_PER_S))
    return min(instants, default=0)


def sensor_position(record: RunRecord) -> FloatArray:
    """Return where ranges are measured from: camera, else radar, else the frame's origin."""
    for pose in (record.camera_pose, record.radar_pose):
        if pose is not None:
            return np.asarray(pose.translation, np.float64)
    return np.zeros(3)


def trajectories(record: RunRecord) -> list[Trajectory]:
    """Collect the tracks of a run, longest first."""
    zero_ns = start_ns(record)
    rows: dict[int, list[tuple[float, Track]]] = {}
    for decision in record.decisions:
        time = (decision.state_ns - zero_ns) / NS_PER_S
        for track in decision.tracks:
            rows.setdefault(track.id, []).append((time, track))
    found = [_trajectory(number, entries) for number, entries in rows.items()]
    return sorted(found, key=lambda t: (-t.duration, -len(t.times), t.id))


def _trajectory(number: int, entries: list[tuple[float, Track]]) -> Trajectory:
    tracks = [track for _, track in entries]
    seen_by = Counter(modality for track in tracks for modality in track.seen_by)
    return Trajectory(
        number,
        tracks[-1].label,
        np.array([time for time, _ in entries]),
        np.array([track.position for track in tracks], np.float64).reshape(-1, 3),
        np.array([np.asarray(track.covariance)[:3, :3] for track in tracks], np.float64),
        np.array([track.box or _NO_BOX for track in tracks], np.float64).reshape(-1, 4),
        dict(sorted(seen_by.items())),
    )

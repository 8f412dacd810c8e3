"""What the live page shows: the newest results as one snapshot, and the annotated picture.

A snapshot holds plain numbers, lists and texts, in SI units and the frame of the tracks; what is
not known is None, so that it can be sent as JSON.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Configuration,
    Decision,
    FloatArray,
    ResultKind,
    Track,
    UnitFeatures,
)
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.replay.playback import PlaybackStatus
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.tracking.return_placement import speeds_over_ground, thinned
from mmedge_ros.viewing.drawing import Picture, annotate, colour_of
from mmedge_ros.viewing.recent_figures import RecentDecisions, RecentUnits

# Scans older than this before the newest decision are no longer drawn, s.
_RETURNS_SHOWN = 0.25
_MOST_RETURNS = 400
_WIDEST = 640
# Length of the camera's field of view as drawn, m.
_VIEW_LENGTH = 4.0
_DIGITS = 4


class LiveScene:
    """Takes in what the graph publishes; one thread enters, others may draw.

    :param deadline: s from a window's end to its decision, where no configuration says
    :param clock: returns seconds that never go back
    """

    def __init__(self, deadline: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rig = SensorRig()
        self._deadline = deadline
        self._clock = clock
        self._lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Forget results and figures, but not where the sensors sit."""
        self._decision: Decision | None = None
        self._decided_at: float | None = None
        self._configuration: Configuration | None = None
        self._system: SystemState | None = None
        self._scans: deque[tuple[int, list[list[float]]]] = deque(maxlen=20)
        self._decisions = RecentDecisions(self._clock)
        self._units: dict[str, RecentUnits] = {}
        self._origin: FloatArray | None = None
        self._playback: PlaybackStatus | None = None

    def add_decision(self, decision: Decision) -> None:
        """Take in a published decision, or the tracks of an update."""
        if decision.kind is ResultKind.UPDATE:
            with self._lock:
                last = self._decision or decision
                self._decision = replace(
                    decision, lost=last.lost, late=last.late, skipped=last.skipped
                )
                self._origin = _own_position(self._geometry_of(decision))
            return
        limit = self._configuration.latency_limit if self._configuration else math.nan
        self._decisions.add(decision, limit if math.isfinite(limit) else self._deadline)
        with self._lock:
            self._decision = decision
            self._decided_at = self._clock()
            self._origin = _own_position(self._geometry_of(decision))

    def add_unit(self, unit: UnitFeatures) -> None:
        """Take in an encoded unit: its rate, its level, and a radar's returns."""
        self.rig.set_frames({unit.modality: unit.frame_id})
        if unit.modality == CAMERA:
            self.rig.see_picture(*unit.image_size)
        self._units.setdefault(unit.modality, RecentUnits(self._clock)).add(unit)
        if unit.modality == RADAR:
            geometry = self.rig.geometry_at(unit.stamp_ns)
            self._scans.append((unit.stamp_ns, _placed(unit, geometry)))

    def set_configuration(self, configuration: Configuration) -> None:
        """Take in what the optimiser has chosen."""
        self._configuration = configuration

    def set_playback(self, status: PlaybackStatus) -> None:
        """Take in how far a recording has been played."""
        self._playback = status

    def set_system(self, state: SystemState) -> None:
        """Take in the state of computer and battery."""
        self._system = state

    def snapshot(self) -> dict[str, Any]:
        """Return all that is known, ready for JSON."""
        decision = self._decision
        silence = None if self._decided_at is None else self._clock() - self._decided_at
        state: dict[str, Any] = {
            'silence': silence,
            'replayed': self._playback is not None,
            'ended': self._playback is not None and self._playback.finished,
            'latency': self._decisions.figures(),
            'deadline': self._deadline,
            'modalities': self._modalities(),
            'configuration': _configured(self._configuration),
            'system': _shown_state(self._system),
            'tracks': [],
        }
        if decision is not None:
            geometry = self._geometry_of(decision)
            state |= {
                'frame': decision.frame_id,
                'stamp': decision.state_ns / NS_PER_S,
                'degraded': list(decision.degraded),
                'lost': list(decision.lost),
                'late': list(decision.late),
                'skipped': list(decision.skipped),
                'tracks': [
                    _shown_track(track, self._origin)
                    for track in decision.tracks
                    if np.isfinite(track.position).all() and np.isfinite(track.velocity).all()
                ],
                'rig': _shown_rig(geometry),
            }
        plain: dict[str, Any] = plain_values(state, _DIGITS)
        # Plain already, and many.
        plain['returns'] = [] if decision is None else self._recent_returns(decision.window_end_ns)
        return plain

    def annotated(self, picture: Picture, stamp_ns: int) -> Picture:
        """Return a picture (H, W, 3) BGR, at most 640 px wide, with the newest tracks drawn in."""
        height, width = picture.shape[:2]
        scale = min(1.0, _WIDEST / max(width, height))
        if scale < 1.0:
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
            picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
        with self._lock:
            decision, origin = self._decision, self._origin
        if decision is None:
            return picture
        return annotate(picture, stamp_ns, decision, origin, scale)

    def _geometry_of(self, decision: Decision) -> SensorGeometry | None:
        """Where the sensors are in the frame of a decision; None where that is another one."""
        geometry = self.rig.geometry_at(decision.state_ns)
        return geometry if geometry.frame_id == decision.frame_id else None

    def _recent_returns(self, now_ns: int) -> list[list[float]]:
        oldest_ns = now_ns - round(_RETURNS_SHOWN * NS_PER_S)
        # Those much newer are from before a clock was set back.
        shown = [rows for ns, rows in self._scans if oldest_ns <= ns < now_ns + NS_PER_S]
        return [row for rows in shown for row in rows][-_MOST_RETURNS:]

    def _modalities(self) -> dict[str, dict[str, Any]]:
        parts = () if self._configuration is None else self._configuration.modalities
        chosen = {part.modality: part for part in parts}
        shown: dict[str, dict[str, Any]] = {}
        for name in sorted({*self._units, *chosen}):
            units = self._units.get(name)
            shown[name] = {} if units is None else units.figures()
            if name in chosen:
                shown[name] |= {'limit': chosen[name].rate, 'level': chosen[name].level}
        return shown


def _placed(scan: UnitFeatures, geometry: SensorGeometry) -> list[list[float]]:
    """Rows x, y, z (m, frame of the tracks) and 1 for a return that moves, else 0."""
    returns = thinned(scan.returns).astype(np.float64)
    returns = returns[np.isfinite(returns[:, :3]).all(axis=1)]
    if not len(returns):
        return []
    known = np.nan_to_num(returns[:, 3])
    speeds = speeds_over_ground(returns[:, :3], known, geometry)
    moves = np.abs(speeds) >= DecisionFusionParameters().moving_speed
    rows = np.column_stack([geometry.radar_pose.apply(returns[:, :3]), moves])
    listed: list[list[float]] = np.round(rows[np.isfinite(rows).all(axis=1)], 2).tolist()
    return listed


def _own_position(geometry: SensorGeometry | None) -> FloatArray | None:
    return None if geometry is None else geometry.camera_pose.translation


def _shown_rig(geometry: SensorGeometry | None) -> dict[str, Any] | None:
    """Where the camera is, and the corners of its field of view a few metres ahead of it."""
    if geometry is None:
        return None
    pose = geometry.camera_pose
    corners: list[FloatArray] = []
    if geometry.camera is not None:
        k = geometry.camera.k
        for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)):
            across = (x * geometry.camera.width - k[0, 2]) / k[0, 0]
            down = (y * geometry.camera.height - k[1, 2]) / k[1, 1]
            corners.append(pose.apply(_VIEW_LENGTH * np.array([across, down, 1.0])))
    return {
        'position': pose.translation,
        'forward': pose.rotate(np.array([0.0, 0.0, 1.0])),
        'corners': corners,
    }


def _shown_track(track: Track, origin: FloatArray | None) -> dict[str, Any]:
    """Return a track with its range, and its ellipse of one standard deviation on the ground.

    The ellipse has two half axes (m) and the direction of the longer one (rad).
    """
    covariance = np.nan_to_num(track.covariance[:3, :3], nan=0.0, posinf=0.0, neginf=0.0)
    values, vectors = np.linalg.eigh(covariance[:2, :2])
    short, long = np.sqrt(np.maximum(values, 0.0))
    seen_from = np.zeros(3) if origin is None else origin
    red, green, blue = (round(255 * part) for part in colour_of(track.id))
    return {
        'id': track.id,
        'colour': f'rgb({red} {green} {blue})',
        'label': track.label,
        'score': track.score,
        'position': track.position,
        'velocity': track.velocity,
        'range': np.linalg.norm(track.position - seen_from),
        'deviation': [long, short],
        'direction': math.atan2(vectors[1, 1], vectors[0, 1]),
        'seen_by': list(track.seen_by),
        'in_picture': track.box is not None,
        'age': track.age,
    }


def _configured(configuration: Configuration | None) -> dict[str, Any] | None:
    if configuration is None:
        return None
    return {
        'id': configuration.id,
        'reason': configuration.reason,
        'latency_limit': configuration.latency_limit,
    }


def _shown_state(state: SystemState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        'voltage': state.voltage,
        'charge': state.charge,
        'power': state.shown_power,
        'cpu': state.mean_cpu,
        'cores': len(state.cpu),
        'gpu': state.gpu,
        'memory': state.memory,
        'temperature': state.temperature,
        'throttled': state.throttled,
    }

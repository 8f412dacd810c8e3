"""One followed object, and the state of the whole tracker; both immutable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmedge_ros.data_types import CAMERA, NS_PER_S, Box, FloatArray, Measurement, Track
from mmedge_ros.tracking.kalman_filter import (
    BoxNoise,
    BoxState,
    predict_box,
    start_box,
    update_box,
)


@dataclass(frozen=True, slots=True)
class TrackState:
    """A track between updates, its mean (6,) and covariance (6, 6) at the tracker's time.

    ``updated_ns`` maps each modality to its last update, ``strong_ns`` is that by a confident
    detection (its beginning for a track of the radar); ``box`` lives on while the camera
    is away, so that the object is found again where it should be.
    """

    id: int
    label: str
    score: float
    mean: FloatArray
    covariance: FloatArray
    box: BoxState | None
    born_ns: int
    updated_ns: dict[str, int]
    strong_ns: int
    hits: int = 1
    confirmed: bool = False

    @property
    def last_update_ns(self) -> int:
        return max(self.updated_ns.values())

    def camera_age(self, now_ns: int) -> float:
        """Seconds since the camera last saw it, infinite if never."""
        if CAMERA not in self.updated_ns:
            return float('inf')
        return (now_ns - self.updated_ns[CAMERA]) / NS_PER_S

    def moved(
        self, mean: FloatArray, covariance: FloatArray, dt: float, noise: BoxNoise
    ) -> TrackState:
        """Return the track ``dt`` seconds on, with its predicted mean and covariance."""
        return TrackState(
            self.id,
            self.label,
            self.score,
            mean,
            covariance,
            None if self.box is None else predict_box(self.box, dt, noise),
            self.born_ns,
            self.updated_ns,
            self.strong_ns,
            self.hits,
            self.confirmed,
        )

    def report(self, now_ns: int, box: Box | None, recent_ns: int) -> Track:
        """Turn into the published form; ``recent_ns`` bounds what counts as *seen by*."""
        seen_by = sorted(m for m, t in self.updated_ns.items() if t > recent_ns)
        rates = self.box.rates if self.box is not None and box is not None else np.zeros(2)
        return Track(
            self.id,
            self.label,
            self.score,
            box,
            self.mean[:3].copy(),
            self.mean[3:].copy(),
            self.covariance.copy(),
            tuple(seen_by),
            (now_ns - self.last_update_ns) / NS_PER_S,
            (float(rates[0]), float(rates[1])),
        )


@dataclass(frozen=True, slots=True)
class TrackerState:
    """Everything the tracker knows at one instant."""

    stamp_ns: int = 0
    tracks: tuple[TrackState, ...] = ()
    next_id: int = 1


def start_track(
    number: int, measurement: Measurement, velocity_deviation: FloatArray, noise: BoxNoise
) -> TrackState:
    """Begin a tentative track at rest where the measurement lies."""
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = measurement.covariance
    covariance[3:, 3:] = np.diag(np.square(velocity_deviation))
    return TrackState(
        number,
        measurement.label,
        measurement.score,
        np.concatenate([measurement.position, np.zeros(3)]),
        covariance,
        None if measurement.box is None else start_box(measurement.box, noise),
        measurement.stamp_ns,
        dict.fromkeys(measurement.seen_by, measurement.stamp_ns),
        measurement.stamp_ns,
    )


def corrected_box(
    old: BoxState | None, measured: Box | None, noise: BoxNoise, fresh: bool
) -> BoxState | None:
    """Correct a box, or begin it anew where the old one is not worth keeping."""
    if measured is None:
        return old
    if old is None or not fresh:
        return start_box(measured, noise)
    return update_box(old, measured, noise)

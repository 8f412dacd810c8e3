"""One followed object, and the state of the whole tracker; both immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from mmedge_ros.data_types import CAMERA, NS_PER_S, RADAR, Box, FloatArray, Measurement, Track
from mmedge_ros.tracking.claims import UNTRIED, Circumstances, Conduct, weighed_claim
from mmedge_ros.tracking.kalman_filter import (
    BoxNoise,
    BoxState,
    RateNoise,
    mixture,
    predict_boxes,
    stacked,
    start_box,
    update_boxes,
)
from mmedge_ros.tracking.stature import UNKNOWN, Stature

# Of pedestrian detectors: a centre lies within 4 % of the height, a width or height within
# 8 %. People walk about half their height per second across the picture; they grow in it by
# their speed over their distance, which is a fifth per second at 7 m.
_BOX_NOISE = BoxNoise(centre=RateNoise(0.04, 0.5, 0.8), size=RateNoise(0.08, 0.2, 0.2))


@dataclass(frozen=True, slots=True)
class TrackState:
    """A track between updates, its mean (6,) and covariance (6, 6) at the tracker's time.

    ``updated_ns`` maps each modality to its last update, ``strong_ns`` is that by a confident
    detection (its beginning for a track of the radar); ``box`` lives on while the camera
    is away, so that the object is found again where it should be. ``support`` grows by one
    with each picture that shows it and shrinks with each that does not, within limits.
    ``stature`` is how tall its body is; ``misled`` (3, 3) is how far off the position would be
    if the returns that range it, or did so and taught its stature, were somebody else's all
    along. ``conduct`` is how well it has foreseen its boxes.
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
    support: int = 0
    stature: Stature = UNKNOWN
    misled: FloatArray | None = None
    conduct: Conduct = UNTRIED

    @property
    def last_update_ns(self) -> int:
        return max(self.updated_ns.values())

    def camera_age(self, now_ns: int) -> float:
        """Seconds since the camera last saw it, infinite if never."""
        if CAMERA not in self.updated_ns:
            return float('inf')
        return (now_ns - self.updated_ns[CAMERA]) / NS_PER_S

    def moved(self, mean: FloatArray, covariance: FloatArray, box: BoxState | None) -> TrackState:
        """Return the track with its predicted mean, covariance and box."""
        return TrackState(
            self.id,
            self.label,
            self.score,
            mean,
            covariance,
            box,
            self.born_ns,
            self.updated_ns,
            self.strong_ns,
            self.hits,
            self.confirmed,
            self.support,
            self.stature,
            self.misled,
            self.conduct,
        )

    def missed(self) -> TrackState:
        """Return the track after a picture in which it was not found.

        To a tentative track of the camera that is also a detection less: clutter comes and
        goes, and would otherwise collect enough hits in time.
        """
        is_doubted = self.box is not None and not self.confirmed
        if not is_doubted and self.support <= 0:
            return self
        return TrackState(
            self.id,
            self.label,
            self.score,
            self.mean,
            self.covariance,
            self.box,
            self.born_ns,
            self.updated_ns,
            self.strong_ns,
            self.hits - is_doubted,
            self.confirmed,
            max(self.support - 1, 0),
            self.stature,
            self.misled,
            self.conduct,
        )

    def radar_age(self, now_ns: int) -> float:
        """Seconds since the radar last saw it, infinite if never."""
        if RADAR not in self.updated_ns:
            return float('inf')
        return (now_ns - self.updated_ns[RADAR]) / NS_PER_S

    def report(
        self,
        now_ns: int,
        box: Box | None,
        recent_ns: int,
        stranger_share: float = 0.0,
        company: float = 0.0,
        trust: float = 0.0,
    ) -> Track:
        """Turn into the published form; ``recent_ns`` bounds what counts as *seen by*.

        :param stranger_share: probability that the radar ranges somebody else in its place
        :param company: how near the line of sight another track is, see `company_of`
        :param trust: how far to weigh the covariance by conduct, see `weighed_claim`
        """
        covariance = self.covariance.copy()
        if self.misled is not None:
            covariance[:3, :3] += stranger_share * self.misled
        age = (now_ns - self.born_ns) / NS_PER_S
        where = Circumstances(age, self.radar_age(now_ns), company)
        covariance = weighed_claim(self.mean, covariance, self.conduct, where, trust)
        seen_by = sorted(m for m, t in self.updated_ns.items() if t > recent_ns)
        rates = self.box.rates if self.box is not None and box is not None else np.zeros(2)
        return Track(
            self.id,
            self.label,
            self.score,
            box,
            self.mean[:3].copy(),
            self.mean[3:].copy(),
            covariance,
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
    number: int, measurement: Measurement, velocity_deviation: FloatArray
) -> TrackState:
    """Begin a tentative track at rest where the measurement lies.

    Of one in doubt, where it lies on average: nothing is known yet by which to judge it.
    """
    position, spread = measurement.position, measurement.covariance
    if measurement.otherwise is not None:
        other = measurement.otherwise
        share = float(expit(measurement.odds))
        position, spread = mixture(
            np.array([share, 1.0 - share]),
            stacked([position, other.position]),
            stacked([spread, other.covariance]),
        )
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = spread
    covariance[3:, 3:] = np.diag(np.square(velocity_deviation))
    return TrackState(
        number,
        measurement.label,
        measurement.score,
        np.concatenate([position, np.zeros(3)]),
        covariance,
        None if measurement.box is None else start_box(measurement.box, _BOX_NOISE),
        measurement.stamp_ns,
        dict.fromkeys(measurement.seen_by, measurement.stamp_ns),
        measurement.stamp_ns,
        support=int(measurement.box is not None),
    )


def predicted_boxes(tracks: Sequence[TrackState], dt: float) -> list[BoxState | None]:
    """Return the boxes of tracks ``dt`` seconds on."""
    found: list[BoxState | None] = [track.box for track in tracks]
    at = [i for i, box in enumerate(found) if box is not None]
    for i, box in zip(at, predict_boxes([b for b in found if b], dt, _BOX_NOISE), strict=True):
        found[i] = box
    return found


def corrected_boxes(
    tracks: Sequence[TrackState], measured: Sequence[Box | None], fresh: Sequence[bool]
) -> list[BoxState | None]:
    """Correct the boxes of tracks, or begin those anew that are not fresh enough to keep."""
    found: list[BoxState | None] = [track.box for track in tracks]
    at, old, new = [], [], []
    for i, (before, box) in enumerate(zip(found, measured, strict=True)):
        if box is None:
            continue
        if before is None or not fresh[i]:
            found[i] = start_box(box, _BOX_NOISE)
            continue
        at.append(i)
        old.append(before)
        new.append(box)
    for i, corrected in zip(at, update_boxes(old, new, _BOX_NOISE), strict=True):
        found[i] = corrected
    return found

"""One followed object, and the state of the whole tracker; both immutable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    RADAR,
    Box,
    Cue,
    DetectionKey,
    FloatArray,
    Measurement,
    Track,
)
from mmedge_ros.geometry.camera_turn import CameraTurn, CameraView, turned_pixels
from mmedge_ros.tracking.existence import after_miss, after_scan, gained
from mmedge_ros.tracking.height_bias import (
    UNKNOWN,
    HeightBias,
    misassociation_spread,
    updated_bias,
)
from mmedge_ros.tracking.kalman_filter import (
    BoxNoise,
    BoxState,
    RateNoise,
    mixture,
    predict_boxes,
    radial_velocity,
    stacked,
    start_box,
    update_boxes,
    update_scalar,
)
from mmedge_ros.tracking.noise_scale import UNLEARNED, NoiseScale, updated_scale

# Of pedestrian detectors: a centre lies within 5 % of the height, a width or height within
# 9 %. People walk up to half their height per second across the picture; they grow in it by
# their speed over their distance, which is a fifth per second at 7 m. They go on as they walk:
# boxes that follow each detection lose their way while people are hidden.
_BOX_NOISE = BoxNoise(centre=RateNoise(0.05, 0.3, 0.3), size=RateNoise(0.09, 0.2, 0.1))


_ORIGIN = np.zeros(2)
# What the radar alone follows is believed once it has gone so far (m), and so many deviations:
# plants in the wind move as fast, and stay where they are.
_WALKED, _SURELY = 0.8, 2.0


class TrackState(NamedTuple):
    """A track between updates, its mean (6,) and covariance (6, 6) at the tracker's time.

    ``updated_ns`` maps each modality to its last update, ``strong_ns`` is that by a confident
    detection (its beginning for a track of the radar); ``box`` lives on while the camera
    is away, so that the object is matched again where it should be. ``support`` grows by one
    with each picture that shows it and shrinks with each that does not, within limits;
    ``evidence`` is how much speaks for it, see `existence`.
    ``height_bias`` is how tall its body is; ``misassociation`` (3, 3) is the covariance of its
    position if the returns that range it, or that its height bias was learned from, were another
    object's. ``noise_scale`` is how much larger its errors are than
    the noise models say. It was first seen at ``begun`` (2,) m. ``cues`` gave its newest range.
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
    evidence: float = 0.0
    confirmed: bool = False
    support: int = 0
    height_bias: HeightBias = UNKNOWN
    misassociation: FloatArray | None = None
    noise_scale: NoiseScale = UNLEARNED
    detection: DetectionKey | None = None
    begun: FloatArray = _ORIGIN
    cues: Cue = Cue.NONE

    @property
    def last_update_ns(self) -> int:
        return max(self.updated_ns.values())

    def camera_age(self, now_ns: int) -> float:
        """Seconds since the camera last saw it, infinite if never."""
        return self._age(CAMERA, now_ns)

    def radar_age(self, now_ns: int) -> float:
        """Seconds since the radar last saw it, infinite if never."""
        return self._age(RADAR, now_ns)

    def _age(self, modality: str, now_ns: int) -> float:
        seen_ns = self.updated_ns.get(modality)
        return math.inf if seen_ns is None else (now_ns - seen_ns) / NS_PER_S

    @property
    def has_moved(self) -> bool:
        """Whether it is no longer where it was first seen."""
        way = self.mean[:2] - self.begun
        least = max(_WALKED**2, _SURELY**2 * float(self.covariance[0, 0] + self.covariance[1, 1]))
        return float(way @ way) > least

    def unscanned(self) -> TrackState:
        """Return the track after a scan without it."""
        return self if self.box else self._replace(evidence=after_scan(self.evidence))

    def missed(self, trust: float = 1.0) -> TrackState:
        """Return the track after a picture without it.

        A tentative track of the camera also loses a hit: clutter comes and goes, and would
        otherwise collect enough hits in time.

        :param trust: how much the picture shows, 0 to 1
        """
        return self._replace(
            hits=self.hits - (not self.confirmed),
            evidence=after_miss(self.evidence, trust),
            support=max(self.support - 1, 0),
        )

    def scaled_covariance(self, usual_scale: float, misassociation_share: float) -> FloatArray:
        """Return the covariance (6, 6) of the state.

        :param usual_scale: of `read_noise_scale`
        :param misassociation_share: probability that the radar ranges another object in its place
        """
        covariance = self.covariance.copy()
        if self.misassociation is not None:
            covariance[:3, :3] += misassociation_share * self.misassociation
        return self.noise_scale.factor(usual_scale) * covariance

    def report(
        self,
        now_ns: int,
        box: Box | None,
        recent_ns: int,
        covariance: FloatArray,
        turn: CameraTurn | None = None,
        projected: Box | None = None,
    ) -> Track:
        """Turn into the published form.

        :param recent_ns: bounds what counts as *seen by*
        :param turn: how the camera turns, which moves boxes beside their own rates
        :param projected: where it is in the picture if the radar alone sees it
        """
        rates = np.zeros(2)
        if self.box is not None and box is not None:
            rates = self.box.rates[:2]
            if turn is not None:
                rates = rates + turn.speeds(self.box.values[None, :2])[0]
        return Track(
            id=self.id,
            label=self.label,
            score=self.score,
            box=box,
            position=self.mean[:3].copy(),
            velocity=self.mean[3:].copy(),
            covariance=covariance,
            seen_by=tuple(sorted(m for m, t in self.updated_ns.items() if t > recent_ns)),
            age=(now_ns - self.last_update_ns) / NS_PER_S,
            box_velocity=(float(rates[0]), float(rates[1])),
            detection=self.detection,
            cues=self.cues,
            projected=projected,
        )


@dataclass(frozen=True, slots=True)
class TrackerState:
    """Everything the tracker knows at one instant.

    ``view`` is that of boxes in the picture; ``clear_ns`` is the stamp of the last picture that
    showed all there was to see.
    """

    stamp_ns: int = 0
    tracks: tuple[TrackState, ...] = ()
    next_id: int = 1
    view: CameraView | None = None
    clear_ns: int = -(1 << 62)


def _logistic(odds: float) -> float:
    """Return the share that log odds stand for."""
    # Beyond it the exponential is no number any more, and the share is 0.
    return 1.0 / (1.0 + math.exp(min(-odds, 709.0)))


def start_track(
    number: int, measurement: Measurement, velocity_deviation: FloatArray
) -> TrackState:
    """Begin a tentative track at rest where the measurement lies.

    Of one in doubt, where it lies on average: nothing is known yet by which to judge it.
    """
    position, spread = measurement.position, measurement.covariance
    if measurement.otherwise is not None:
        other = measurement.otherwise
        share = _logistic(measurement.odds)
        position, spread = mixture(
            np.array([share, 1.0 - share]),
            stacked([position, other.position]),
            stacked([spread, other.covariance]),
        )
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = spread
    covariance[3:, 3:] = np.diag(np.square(velocity_deviation))
    mean = np.concatenate([position, np.zeros(3)])
    if measurement.box is None and math.isfinite(measurement.radial_velocity):
        speed, row = radial_velocity(mean, measurement.origin)
        innovation = np.asarray(measurement.radial_velocity - speed)
        variance = np.asarray(measurement.radial_variance)
        mean, covariance = update_scalar(mean, covariance, row, innovation, variance)
    return TrackState(
        id=number,
        label=measurement.label,
        score=measurement.score,
        mean=mean,
        covariance=covariance,
        box=None if measurement.box is None else start_box(measurement.box, _BOX_NOISE),
        born_ns=measurement.stamp_ns,
        updated_ns=dict.fromkeys(measurement.seen_by, measurement.stamp_ns),
        strong_ns=measurement.stamp_ns,
        evidence=gained(measurement),
        support=int(measurement.box is not None),
        detection=None if measurement.repeated else measurement.detection,
        begun=position[:2],
        cues=measurement.cue,
    )


def updated(
    track: TrackState, measurement: Measurement, own: float, exchanged: float, distance: float
) -> TrackState:
    """Learn from a measurement about a track's body, and how well the track was predicted.

    :param own: probability that the returns are the body's own
    :param exchanged: probability that the track has gone over to another body
    :param distance: squared Mahalanobis distance from the predicted position
    """
    if measurement.repeated:
        return track
    spread = track.misassociation
    # Also returns that a track was begun by, before a box came to it, may be another object's.
    if own >= 0.5 and (measurement.otherwise or (spread is None and RADAR in track.updated_ns)):
        new = misassociation_spread(measurement)
        spread = spread if new is None else new
    bias = track.height_bias
    if measurement.otherwise is not None or exchanged > 0.0:
        since = track.radar_age(measurement.stamp_ns)
        bias = updated_bias(bias, measurement, own, exchanged, since)
    return track._replace(
        height_bias=bias,
        misassociation=spread,
        noise_scale=updated_scale(track.noise_scale, measurement, distance),
    )


def predicted_boxes(
    tracks: Sequence[TrackState],
    dt: float,
    before: CameraView | None = None,
    after: CameraView | None = None,
) -> list[BoxState | None]:
    """Return the boxes of tracks ``dt`` seconds on, and after the camera has turned."""
    boxes: list[BoxState | None] = [track.box for track in tracks]
    at = [i for i, box in enumerate(boxes) if box is not None]
    ahead = predict_boxes([b for b in boxes if b], dt, _BOX_NOISE)
    if ahead and before is not None and after is not None and before is not after:
        centres = turned_pixels(stacked([b.values[:2] for b in ahead]), before, after)
        for box, centre in zip(ahead, centres, strict=True):
            box.values[:2] = centre
    for i, box in zip(at, ahead, strict=True):
        boxes[i] = box
    return boxes


def corrected_boxes(
    tracks: Sequence[TrackState], measured: Sequence[Box | None], fresh: Sequence[bool]
) -> list[BoxState | None]:
    """Correct the boxes of tracks, or begin those anew that are not fresh enough to keep."""
    boxes: list[BoxState | None] = [track.box for track in tracks]
    at, old, new = [], [], []
    for i, (before, box) in enumerate(zip(boxes, measured, strict=True)):
        if box is None:
            continue
        if before is None or not fresh[i]:
            boxes[i] = start_box(box, _BOX_NOISE)
            continue
        at.append(i)
        old.append(before)
        new.append(box)
    for i, corrected in zip(at, update_boxes(old, new, _BOX_NOISE), strict=True):
        boxes[i] = corrected
    return boxes

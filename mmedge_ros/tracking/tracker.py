"""Multi-object tracker: predict, associate, update, initiate, delete.

The words are the textbook's. A step takes a state and returns the next one; nothing is
hidden, so that a late unit can be put in its place by stepping again from an earlier state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mmedge_ros.data_types import NS_PER_S, Box, FloatArray, Measurement, Track
from mmedge_ros.parameter import parameter
from mmedge_ros.tracking.association_cost import (
    POSITION_GATE,
    box_cost,
    cluster_cost,
    overlap_cost,
    position_distance,
)
from mmedge_ros.tracking.data_association import assign
from mmedge_ros.tracking.kalman_filter import (
    BoxNoise,
    mahalanobis_squared,
    predict,
    radial_velocity,
    update_position,
    update_radial_velocity,
)
from mmedge_ros.tracking.track import (
    TrackerState,
    TrackState,
    advance_box,
    start_track,
    with_box,
)

_Cost = Callable[[list[TrackState], list[Measurement]], FloatArray]

# Four standard deviations: a Doppler reading further off belongs to a limb or to clutter.
_DOPPLER_GATE = 16.0


@dataclass(frozen=True)
class TrackerParameters:
    """How people move, and when a track is believed."""

    acceleration: float = parameter(
        1.5,
        'how briskly people change their walk; more follows turns faster, less is smoother',
        'm/s^2',
        0.05,
        20.0,
    )
    vertical_acceleration: float = parameter(0.3, 'the same for up and down', 'm/s^2', 0.01, 20.0)
    start_speed: float = parameter(
        1.5, 'how fast an object may already move when it is first seen', 'm/s', 0.1, 30.0
    )
    high_score: float = parameter(
        0.4, 'a detection needs this score to begin a track', '', 0.0, 1.0
    )
    low_score: float = parameter(
        0.1, 'a detection with less than this score is not used at all', '', 0.0, 1.0
    )
    confirm_hits: int = parameter(
        3, 'detections before a track of the camera is shown', '', 1, 100
    )
    confirm_hits_radar: int = parameter(
        8, 'detections before a track of the radar alone is shown; ghosts rarely last', '', 1, 100
    )
    tentative_time: float = parameter(
        0.35, 'an unconfirmed track not seen for this long is dropped', 's', 0.05, 5.0
    )
    lost_time: float = parameter(
        2.0, 'a confirmed track not seen for this long is dropped', 's', 0.1, 30.0
    )
    box_time: float = parameter(
        0.2, 'a track shows its box for this long after the camera last saw it', 's', 0.0, 5.0
    )
    fresh_time: float = parameter(
        0.3,
        'a track the camera has seen within this owns the radar returns around it, and may be '
        'continued by detections too weak to begin one',
        's',
        0.0,
        5.0,
    )
    minimum_iou: float = parameter(
        0.3, 'overlap at which a box continues a track whatever its range says', '', 0.05, 1.0
    )


class Tracker:
    """Stateless but for its parameters: every call passes the state in and out."""

    def __init__(self, parameters: TrackerParameters | None = None) -> None:
        self.parameters = p = parameters or TrackerParameters()
        self._acceleration = np.array([p.acceleration, p.acceleration, p.vertical_acceleration])
        self._start_speed = np.array([p.start_speed, p.start_speed, 0.2 * p.start_speed])
        self._box_noise = BoxNoise(measurement=0.04, motion=0.8)

    def step(
        self, state: TrackerState, stamp_ns: int, measurements: Sequence[Measurement]
    ) -> TrackerState:
        """Advance to ``stamp_ns`` and take in the measurements of one unit or fused pair."""
        p = self.parameters
        tracks = self._advance(state, stamp_ns)
        boxes = [m for m in measurements if m.box is not None and m.score >= p.high_score]
        weak = [m for m in measurements if m.box is not None and m.score < p.high_score]
        clusters = [m for m in measurements if m.box is None]
        fresh = [i for i, t in enumerate(tracks) if t.camera_age(stamp_ns) <= p.fresh_time]
        free = set(range(len(tracks)))

        boxes = self._match(tracks, free, boxes, partial(box_cost, minimum_iou=p.minimum_iou))
        weak = [m for m in weak if m.score >= p.low_score]
        overlap = partial(overlap_cost, minimum_iou=p.minimum_iou)
        self._match(tracks, free, weak, overlap, fresh)
        clusters = self._match(tracks, free, clusters, cluster_cost, fresh)
        clusters = _apart_from([tracks[i] for i in fresh], clusters)
        clusters = self._match(tracks, free, clusters, cluster_cost)

        begun = self._initiate(state.next_id, boxes)
        clusters = _apart_from([*tracks, *begun], clusters)
        begun += self._initiate(state.next_id + len(begun), clusters)
        return TrackerState(stamp_ns, (*tracks, *begun), state.next_id + len(begun))

    def report(
        self, state: TrackerState, at_ns: int, recent_ns: int, size: tuple[int, int] = (0, 0)
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``, by id.

        :param recent_ns: a modality counts as having seen a track if it did after this
        :param size: width and height of the picture, to which boxes are clipped
        """
        confirmed = TrackerState(
            state.stamp_ns, tuple(t for t in state.tracks if t.confirmed), state.next_id
        )
        shown = []
        for track in self._advance(confirmed, at_ns):
            box = None
            if track.box is not None and self._is_seen(track, at_ns):
                box = _clip(track.box.box(), size)
                box = box if box.width >= 1.0 and box.height >= 1.0 else None
            shown.append(track.report(at_ns, box, recent_ns))
        return tuple(sorted(shown, key=lambda t: t.id))

    def _is_seen(self, track: TrackState, now_ns: int) -> bool:
        """Whether the camera sees it now; weak detections alone convince only for a while."""
        p = self.parameters
        doubtful = (now_ns - track.strong_ns) / NS_PER_S > p.fresh_time
        return not doubtful and track.camera_age(now_ns) <= p.box_time

    def _advance(self, state: TrackerState, stamp_ns: int) -> list[TrackState]:
        """Predict the tracks, and delete those that were not seen for too long."""
        tracks = [t for t in state.tracks if not self._is_lost(t, stamp_ns)]
        if not tracks:
            return []
        dt = (stamp_ns - state.stamp_ns) / NS_PER_S
        means, covariances = predict(
            np.stack([t.mean for t in tracks]),
            np.stack([t.covariance for t in tracks]),
            dt,
            self._acceleration,
        )
        return [
            replace(
                track,
                mean=mean,
                covariance=covariance,
                box=advance_box(track, dt, self._box_noise),
            )
            for track, mean, covariance in zip(tracks, means, covariances, strict=True)
        ]

    def _match(
        self,
        tracks: list[TrackState],
        free: set[int],
        measurements: list[Measurement],
        cost: _Cost,
        among: Iterable[int] | None = None,
    ) -> list[Measurement]:
        """Associate free tracks (of those in ``among``) and update them in place.

        Returns the measurements that found no track.
        """
        candidates = sorted(free if among is None else free.intersection(among))
        if not candidates or not measurements:
            return measurements
        found = assign(cost([tracks[i] for i in candidates], measurements))
        for row, column in found.pairs:
            index = candidates[row]
            tracks[index] = self._update(tracks[index], measurements[column])
            free.discard(index)
        return [measurements[j] for j in found.columns]

    def _update(self, track: TrackState, measurement: Measurement) -> TrackState:
        """Correct position, Doppler velocity and box by one measurement."""
        mean, covariance = self._correct_state(track, measurement)
        updated_ns = {**track.updated_ns}
        updated_ns.update(dict.fromkeys(measurement.seen_by, measurement.stamp_ns))
        seen_in_picture = measurement.box is not None
        changed = replace(
            track,
            mean=mean,
            covariance=covariance,
            label=measurement.label if seen_in_picture else track.label,
            score=track.score + 0.3 * (measurement.score - track.score)
            if seen_in_picture
            else track.score,
            updated_ns=updated_ns,
            strong_ns=measurement.stamp_ns
            if seen_in_picture and measurement.score >= self.parameters.high_score
            else track.strong_ns,
            hits=track.hits + 1,
        )
        if measurement.box is not None:
            fresh = track.camera_age(measurement.stamp_ns) <= self.parameters.lost_time / 4
            changed = with_box(changed, measurement.box, self._box_noise, fresh)
        return replace(changed, confirmed=track.confirmed or self._is_believed(changed))

    def _correct_state(
        self, track: TrackState, measurement: Measurement
    ) -> tuple[FloatArray, FloatArray]:
        offset = measurement.position - track.mean[:3]
        spread = track.covariance[:3, :3] + measurement.covariance
        distance = float(mahalanobis_squared(offset, spread))
        # A box that continues the track but disagrees in range is believed less, not fully.
        doubt = max(1.0, distance / POSITION_GATE)
        mean, covariance = update_position(
            track.mean, track.covariance, measurement.position, measurement.covariance * doubt
        )
        if not math.isfinite(measurement.radial_velocity):
            return mean, covariance
        predicted, row = radial_velocity(mean, measurement.origin)
        variance = float(row @ covariance @ row) + measurement.radial_variance
        if (measurement.radial_velocity - predicted) ** 2 > _DOPPLER_GATE * variance:
            return mean, covariance
        return update_radial_velocity(
            mean,
            covariance,
            measurement.origin,
            measurement.radial_velocity,
            measurement.radial_variance,
        )

    def _is_believed(self, track: TrackState) -> bool:
        p = self.parameters
        return track.hits >= (p.confirm_hits if track.box else p.confirm_hits_radar)

    def _is_lost(self, track: TrackState, now_ns: int) -> bool:
        p = self.parameters
        limit = p.lost_time if track.confirmed else p.tentative_time
        return (now_ns - track.last_update_ns) / NS_PER_S > limit

    def _initiate(self, next_id: int, measurements: list[Measurement]) -> list[TrackState]:
        begun = [
            start_track(number, measurement, self._start_speed, self._box_noise)
            for number, measurement in enumerate(measurements, next_id)
        ]
        return [replace(track, confirmed=self._is_believed(track)) for track in begun]


def _apart_from(tracks: list[TrackState], measurements: list[Measurement]) -> list[Measurement]:
    """Leave out what lies beside a known object: a part of it, not another one."""
    if not tracks or not measurements:
        return measurements
    nearest = position_distance(tracks, measurements).min(axis=0)
    return [m for m, d in zip(measurements, nearest, strict=True) if d > POSITION_GATE]


def _clip(box: Box, size: tuple[int, int]) -> Box:
    """Cut to the picture; a size of zero leaves the box as it is."""
    width, height = size
    if not width or not height:
        return box
    return Box(
        min(max(box.x0, 0.0), width),
        min(max(box.y0, 0.0), height),
        min(max(box.x1, 0.0), width),
        min(max(box.y1, 0.0), height),
    )

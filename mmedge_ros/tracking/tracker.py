"""Multi-object tracker: predict, associate, update, initiate, delete.

The words are the textbook's. A step takes a state and returns the next one; nothing is
hidden, so that a late unit can be put in its place by stepping again from an earlier state.
"""

from __future__ import annotations

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
from mmedge_ros.tracking.body import Body, learned
from mmedge_ros.tracking.claims import company_of
from mmedge_ros.tracking.data_association import assign
from mmedge_ros.tracking.kalman_filter import BoxState, predict, stacked
from mmedge_ros.tracking.state_update import corrected_states
from mmedge_ros.tracking.stature import read_for
from mmedge_ros.tracking.track import (
    TrackerState,
    TrackState,
    corrected_boxes,
    predicted_boxes,
    start_track,
)

_Cost = Callable[[list[TrackState], list[Measurement]], FloatArray]
# Which track, by its place in a list, a measurement is of.
_Pair = tuple[int, Measurement]

# A box is shown from the second picture that holds it on, also when it was lost and is found
# again, and goes on through two pictures that do not. Beyond that the prediction is wrong
# more often than right: whoever was missed is hidden, has left, or never was.
_SHOWN_SUPPORT = 2
_MOST_SUPPORT = _SHOWN_SUPPORT + 2


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
        3,
        'detections before a track of the camera is shown; a picture without it takes one back',
        '',
        1,
        100,
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
        0.2,
        'a track shows its box for at most this long after the camera last saw it, and through '
        'two pictures without it',
        's',
        0.0,
        5.0,
    )
    fresh_time: float = parameter(
        0.3,
        'a track the camera has seen within this owns the radar returns around it, and may be '
        'continued by detections too weak to begin one',
        's',
        0.0,
        5.0,
    )
    clutter_density: float = parameter(
        0.02,
        'false radar clusters to be expected; more lets go of lost tracks sooner, less lets '
        'them be carried away by ghosts',
        'per m^3',
        1e-6,
        10.0,
    )
    minimum_iou: float = parameter(
        0.3, 'overlap at which a box continues a track whatever its range says', '', 0.05, 1.0
    )
    exchange_rate: float = parameter(
        0.1,
        'how often a box goes over from one object to another unnoticed; more gives up a range '
        'sooner that everything seen in the box contradicts',
        'per s',
        0.0,
        10.0,
    )
    stranger_share: float = parameter(
        0.02,
        'share of objects that the radar ranges by the returns of somebody else in the same box '
        'for long, such as people who stand while somebody walks before them; widens the range '
        'that is reported, not what the tracker takes for possible',
        '',
        0.0,
        0.5,
    )
    claim_correction: float = parameter(
        1.0,
        'how far the covariances reported of tracks with boxes are corrected by what errors came '
        'to in simulated flights, by how well a track foresees its readings, its age, speed and '
        'distance, its radar and its neighbours; 0 reports what the filter says; what the tracker '
        'does stays the same',
        '',
        0.0,
        1.0,
    )


class Tracker:
    """Stateless but for its parameters: every call passes the state in and out."""

    def __init__(self, parameters: TrackerParameters | None = None) -> None:
        self.parameters = p = parameters or TrackerParameters()
        self._acceleration = np.array([p.acceleration, p.acceleration, p.vertical_acceleration])
        self._start_speed = np.array([p.start_speed, p.start_speed, 0.2 * p.start_speed])

    def step(
        self,
        state: TrackerState,
        stamp_ns: int,
        measurements: Sequence[Measurement],
        has_picture: bool | None = None,
    ) -> TrackerState:
        """Advance to ``stamp_ns`` and take in the measurements of one unit or fused pair.

        :param has_picture: whether a picture is among the units, also if nobody was found in
            it; None if only one with boxes counts
        """
        p = self.parameters
        tracks = self._advance(state, stamp_ns)
        boxes = [m for m in measurements if m.box is not None and m.score >= p.high_score]
        weak = [m for m in measurements if m.box is not None and m.score < p.high_score]
        clusters = [m for m in measurements if m.box is None]
        fresh = [i for i, t in enumerate(tracks) if t.camera_age(stamp_ns) <= p.fresh_time]
        free = set(range(len(tracks)))

        found: list[_Pair] = []
        fit = partial(box_cost, minimum_iou=p.minimum_iou)
        # Two boxes of one person must not end in a second track that takes over the first.
        known = [i for i, t in enumerate(tracks) if t.confirmed]
        boxes = _match(tracks, free, boxes, fit, found, known)
        boxes = _match(tracks, free, boxes, fit, found)
        weak = [m for m in weak if m.score >= p.low_score]
        overlap = partial(overlap_cost, minimum_iou=p.minimum_iou)
        _match(tracks, free, weak, overlap, found, fresh)
        likelihood = partial(cluster_cost, clutter_density=p.clutter_density)
        clusters = _match(tracks, free, clusters, likelihood, found, fresh)
        # Who is found is out of the search, so that all can be corrected at once.
        self._update(tracks, found)
        clusters = _apart_from([tracks[i] for i in fresh], clusters)
        found = []
        clusters = _match(tracks, free, clusters, likelihood, found)
        self._update(tracks, found)

        if has_picture is None:
            has_picture = any(m.box is not None for m in measurements)
        if has_picture:
            tracks = [t if t.camera_age(stamp_ns) <= 0.0 else t.missed() for t in tracks]
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
        shown, p = [], self.parameters
        tracks = self._advance(confirmed, at_ns)
        company = company_of(
            np.array([t.mean[:3] for t in tracks]), [t.conduct.origin for t in tracks]
        )
        for track, near in zip(tracks, company, strict=True):
            box = None
            if track.box is not None and self._is_seen(track, at_ns):
                box = _clip(track.box.box(), size)
                box = box if box.width >= 1.0 and box.height >= 1.0 else None
            shown.append(
                track.report(at_ns, box, recent_ns, p.stranger_share, near, p.claim_correction)
            )
        return tuple(sorted(shown, key=lambda t: t.id))

    def _is_seen(self, track: TrackState, now_ns: int) -> bool:
        """Whether the camera sees it now; weak detections alone convince only for a while."""
        p = self.parameters
        if track.support < min(_SHOWN_SUPPORT, p.confirm_hits):
            return False
        doubtful = (now_ns - track.strong_ns) / NS_PER_S > p.fresh_time
        return not doubtful and track.camera_age(now_ns) <= p.box_time

    def _advance(self, state: TrackerState, stamp_ns: int) -> list[TrackState]:
        """Predict the tracks, and delete those that were not seen for too long."""
        tracks = [t for t in state.tracks if not self._is_lost(t, stamp_ns)]
        if not tracks:
            return []
        dt = (stamp_ns - state.stamp_ns) / NS_PER_S
        means, covariances = predict(
            stacked([t.mean for t in tracks]),
            stacked([t.covariance for t in tracks]),
            dt,
            self._acceleration,
        )
        return [
            track.moved(mean, covariance, box)
            for track, mean, covariance, box in zip(
                tracks, means, covariances, predicted_boxes(tracks, dt), strict=True
            )
        ]

    def _update(self, tracks: list[TrackState], found: Sequence[_Pair]) -> None:
        """Correct tracks in place, each by its measurement."""
        if not found:
            return
        chosen = [tracks[i] for i, _ in found]
        corrected = self._corrected(chosen, [measurement for _, measurement in found])
        for (i, _), track in zip(found, corrected, strict=True):
            tracks[i] = track

    def _corrected(
        self, tracks: list[TrackState], measurements: list[Measurement]
    ) -> list[TrackState]:
        """Correct each track by its measurement: position, Doppler velocity and box."""
        p = self.parameters
        read = [read_for(m, t.stature) for t, m in zip(tracks, measurements, strict=True)]
        found = corrected_states(tracks, read, p.acceleration, p.start_speed, p.exchange_rate)
        shares, exchanges = found.shares.tolist(), found.exchanged.tolist()
        distances = found.distances.tolist()
        believed = [
            m if own >= 0.5 else m.otherwise or m for m, own in zip(read, shares, strict=True)
        ]
        fresh = [
            t.camera_age(m.stamp_ns) <= p.lost_time / 4
            for t, m in zip(tracks, believed, strict=True)
        ]
        boxes = corrected_boxes(tracks, [m.box for m in believed], fresh)
        return [
            self._updated(
                track,
                believed[i],
                found.means[i],
                found.covariances[i],
                boxes[i],
                learned(track, measurements[i], shares[i], exchanges[i], distances[i]),
            )
            for i, track in enumerate(tracks)
        ]

    def _updated(
        self,
        track: TrackState,
        measurement: Measurement,
        mean: FloatArray,
        covariance: FloatArray,
        box: BoxState | None,
        body: Body,
    ) -> TrackState:
        p = self.parameters
        now_ns = measurement.stamp_ns
        label, score, strong_ns = track.label, track.score, track.strong_ns
        support = track.support
        if measurement.box is not None:
            # A camera that finds what the radar follows needs no second look.
            support = min(support + 1, _MOST_SUPPORT) if track.box else _SHOWN_SUPPORT
            label, score = measurement.label, score + 0.3 * (measurement.score - score)
            if measurement.score >= p.high_score:
                strong_ns = now_ns
        hits = track.hits + 1
        return TrackState(
            track.id,
            label,
            score,
            mean,
            covariance,
            box,
            track.born_ns,
            {**track.updated_ns, **dict.fromkeys(measurement.seen_by, now_ns)},
            strong_ns,
            hits,
            track.confirmed or self._is_believed(hits, box is not None),
            support,
            body.stature,
            body.misled,
            body.conduct,
        )

    def _is_believed(self, hits: int, has_box: bool) -> bool:
        p = self.parameters
        return hits >= (p.confirm_hits if has_box else p.confirm_hits_radar)

    def _is_lost(self, track: TrackState, now_ns: int) -> bool:
        p = self.parameters
        limit = p.lost_time if track.confirmed else p.tentative_time
        return (now_ns - track.last_update_ns) / NS_PER_S > limit

    def _initiate(self, next_id: int, measurements: list[Measurement]) -> list[TrackState]:
        begun = [
            start_track(number, measurement, self._start_speed)
            for number, measurement in enumerate(measurements, next_id)
        ]
        return [
            replace(track, confirmed=self._is_believed(track.hits, track.box is not None))
            for track in begun
        ]


def _match(
    tracks: list[TrackState],
    free: set[int],
    measurements: list[Measurement],
    cost: _Cost,
    found: list[_Pair],
    among: Iterable[int] | None = None,
) -> list[Measurement]:
    """Associate free tracks (of those in ``among``), and enter who is ``found``.

    Returns the measurements that found no track.
    """
    candidates = sorted(free if among is None else free.intersection(among))
    if not candidates or not measurements:
        return measurements
    best = assign(cost([tracks[i] for i in candidates], measurements))
    chosen = [candidates[row] for row, _ in best.pairs]
    found += zip(chosen, (measurements[column] for _, column in best.pairs), strict=True)
    free.difference_update(chosen)
    return [measurements[j] for j in best.columns]


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

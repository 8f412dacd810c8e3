"""Multi-object tracker: predict, associate, update, initiate, delete.

The words are the textbook's. A step takes a state and returns the next one; nothing is
hidden, so that a late unit can be put in its place by stepping again from an earlier state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, RADAR, Box, FloatArray, Measurement, Track
from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry.camera_turn import CameraTurn, CameraView
from mmedge_ros.tracking.association_cost import (
    POSITION_GATE,
    box_cost,
    box_overlaps,
    cluster_cost,
    overlap_cost,
    place_cost,
    position_distance,
)
from mmedge_ros.tracking.data_association import assign
from mmedge_ros.tracking.decision_fusion import RADAR_ONLY_LABEL
from mmedge_ros.tracking.existence import after_measurement, gained
from mmedge_ros.tracking.height_bias import unbiased
from mmedge_ros.tracking.kalman_filter import BoxState, predict, stacked
from mmedge_ros.tracking.state_update import corrected_states
from mmedge_ros.tracking.track import (
    TrackerState,
    TrackState,
    corrected_boxes,
    predicted_boxes,
    start_track,
    updated,
)

_Cost = Callable[[list[TrackState], list[Measurement]], FloatArray]
# The place of a track in a list, and its measurement.
_Match = tuple[int, Measurement]

# A box is shown from the second picture that holds it on, also after it was lost, and goes on
# through two pictures that do not. Beyond that the prediction is wrong
# more often than right: what was missed is hidden, has left, or never was.
_SHOWN_SUPPORT = 2
_MOST_SUPPORT = _SHOWN_SUPPORT + 2
# Evidence for a track of the camera from which it is reported, and below which it is no more,
# until it is seen again or its time is over.
_BELIEVED, _GIVEN_UP = 1.0, -0.67
# Evidence of a box that is believed where it overlaps no track: those on nobody lie anywhere.
_SURE = 1.0
# Trust of a picture, and height (px) of a body, from which on it is seen if it is there.
_CLEAR, _TALL = 0.9, 30.0
# Score of a cluster of two returns.
_LEAST_CLUSTER = 0.15
# A cluster so near (m) to somebody known is a part of the body.
_PART_OF_BODY = 1.5
# What moves no faster (m/s) and is found by the radar alone is taken for a person.
_FASTEST_RUN, _PERSON = 4.0, 'person'
# A track that began this short a time (s) ago, on an older one that is not seen: one person.
_NEW_TIME, _SAME_OVERLAP = 0.5, 0.5


@dataclass(frozen=True)
class TrackerParameters:
    """How people move, and when a track is believed."""

    # How briskly people change their walk; more follows turns faster, less is smoother (m/s^2).
    acceleration: float = 0.8
    # The same for up and down, m/s^2: people on the ground hardly change their height.
    vertical_acceleration: float = 0.3
    # How fast (m/s) an object may already move when it is first seen: people walk.
    start_speed: float = 1.5
    high_score: float = parameter(
        0.4, 'a detection needs this score to begin a track', '', 0.0, 1.0
    )
    # Gain of the score's exponential average: half of it is of the last two pictures.
    score_gain: float = 0.3
    confirm_hits: int = parameter(
        2,
        'detections before a track of the camera is shown, more where their scores are low; a '
        'picture without it takes one back',
        '',
        1,
        100,
    )
    # An unconfirmed track not seen for this long (s) is dropped.
    tentative_time: float = 0.35
    lost_time: float = parameter(
        2.0, 'a confirmed track not seen for this long is dropped', 's', 0.1, 30.0
    )
    # A track shows its box for at most this long (s) after the camera last saw it, and through
    # two pictures without it.
    box_time: float = 0.2
    # A box not seen for longer (s) starts anew: by then people walk another way.
    box_restart_time: float = 1.0
    # A track the camera has seen within this (s), nine pictures at 30 Hz, owns the radar returns
    # around it, and may be continued by detections too weak to begin one.
    fresh_time: float = 0.3
    # False radar clusters to be expected, per m^3. More lets go of lost tracks sooner, less lets
    # them be carried away by ghosts.
    clutter_density: float = 0.02
    # Overlap at which a box continues a track whatever its range says.
    minimum_iou: float = 0.3
    # How often (per s) a box goes over from one object to another unnoticed. More gives up a range
    # sooner that everything seen in the box contradicts.
    exchange_rate: float = 0.1
    # Share of objects that the radar ranges by the returns of another object in the same box for
    # long, such as people who stand while others walk before them. Widens the reported range only.
    misassociation_share: float = 0.02


class Tracker:
    """Stateless but for its parameters: every call passes the state in and out.

    :param noise_scale: how much larger errors usually are than the noise models say
    """

    def __init__(
        self,
        parameters: TrackerParameters | None = None,
        noise_scale: float = 1.0,
    ) -> None:
        self.parameters = p = parameters or TrackerParameters()
        self._noise_scale = noise_scale
        self._acceleration = np.array([p.acceleration, p.acceleration, p.vertical_acceleration])
        self._start_speed = np.array([p.start_speed, p.start_speed, 0.2 * p.start_speed])

    def step(
        self,
        state: TrackerState,
        stamp_ns: int,
        measurements: Sequence[Measurement],
        has_picture: bool | None = None,
        view: CameraView | None = None,
        has_scan: bool | None = None,
        trust: float = 1.0,
    ) -> TrackerState:
        """Advance to ``stamp_ns`` and take in the measurements of one unit or fused pair.

        :param has_picture: whether a picture is among the units, also one without detections;
            None if only one with boxes counts
        :param view: where the camera looks by then; boxes move in the picture as it turns
        :param has_scan: whether a scan is among the units; None if only one with returns counts
        :param trust: how much the picture shows, 0 to 1
        """
        p = self.parameters
        tracks = self._advance(state, stamp_ns, view)
        if has_picture is None:
            has_picture = any(m.box is not None for m in measurements)
        clear_ns = stamp_ns if has_picture and trust >= _CLEAR else state.clear_ns
        is_clear = (stamp_ns - clear_ns) / NS_PER_S <= p.box_time
        boxes = [m for m in measurements if m.box is not None and m.score >= p.high_score]
        weak = [m for m in measurements if m.box is not None and m.score < p.high_score]
        # Where the camera sees well a single return is rather a ghost.
        least = _LEAST_CLUSTER if is_clear else 0.0
        clusters = [m for m in measurements if m.box is None and m.score >= least]
        fresh = [i for i, t in enumerate(tracks) if t.camera_age(stamp_ns) <= p.fresh_time]
        free = set(range(len(tracks)))

        matches: list[_Match] = []
        fit = partial(box_cost, minimum_iou=p.minimum_iou)
        # Two boxes of one person must not end in a second track that takes over the first.
        known = [i for i, t in enumerate(tracks) if t.confirmed]
        boxes = _match(tracks, free, boxes, fit, matches, known)
        boxes = _match(tracks, free, boxes, fit, matches)
        # Who passes close by moves further in the picture than people do from picture to picture.
        sure = [m for m in boxes if gained(m) >= _SURE]
        unsure = [m for m in boxes if gained(m) < _SURE]
        boxes = unsure + _match(tracks, free, sure, place_cost, matches, fresh)
        overlap = partial(overlap_cost, minimum_iou=p.minimum_iou)
        _match(tracks, free, weak, overlap, matches, fresh)
        likelihood = partial(cluster_cost, clutter_density=p.clutter_density)
        clusters = _match(tracks, free, clusters, likelihood, matches, fresh)
        # Tracks with a match are not matched again, so that all can be corrected at once.
        self._update(tracks, matches)
        clusters = _apart_from([tracks[i] for i in fresh], clusters)
        matches = []
        clusters = _match(tracks, free, clusters, likelihood, matches)
        self._update(tracks, matches)

        if has_picture:
            trusts = _trusts(tracks, view or state.view, trust)
            tracks = [
                t if t.camera_age(stamp_ns) <= 0.0 else t.missed(of_track)
                for t, of_track in zip(tracks, trusts, strict=True)
            ]
            tracks = _merged(tracks, stamp_ns)
        if has_scan or (has_scan is None and any(RADAR in m.seen_by for m in measurements)):
            tracks = [t if t.radar_age(stamp_ns) <= 0.0 else t.unscanned() for t in tracks]
        begun = self._initiate(state.next_id, [m for m in boxes if not m.repeated])
        clusters = _apart_from([*tracks, *begun], clusters)
        begun += self._initiate(state.next_id + len(begun), clusters)
        return TrackerState(
            stamp_ns, (*tracks, *begun), state.next_id + len(begun), view or state.view, clear_ns
        )

    def report(
        self,
        state: TrackerState,
        at_ns: int,
        recent_ns: int,
        size: tuple[int, int] = (0, 0),
        turn: CameraTurn | None = None,
    ) -> tuple[Track, ...]:
        """Return the confirmed tracks predicted to ``at_ns``, by id.

        :param recent_ns: a modality counts as having seen a track if it did after this
        :param size: width and height of the picture, to which boxes are clipped
        :param turn: how the camera has turned before ``at_ns``, None where that is not known
        """
        confirmed = TrackerState(
            state.stamp_ns,
            tuple(t for t in state.tracks if t.confirmed and t.evidence > _GIVEN_UP),
            state.next_id,
            state.view,
        )
        shown, p = [], self.parameters
        view = turn.after if turn is not None else state.view
        for track in self._advance(confirmed, at_ns, turn and turn.after):
            box = projected = None
            if track.box is not None and self._is_seen(track, at_ns):
                box = _shown(track.box.box(), size)
            by_radar = track.updated_ns.get(RADAR, recent_ns) > recent_ns
            if box is None and view is not None and by_radar:
                projected = _shown(Box(*view.shown_boxes(track.mean[None, :3])[0].tolist()), size)
            covariance = track.scaled_covariance(self._noise_scale, p.misassociation_share)
            shown.append(track.report(at_ns, box, recent_ns, covariance, turn, projected))
        return tuple(sorted(shown, key=lambda t: t.id))

    def _is_seen(self, track: TrackState, now_ns: int) -> bool:
        """Whether the camera sees it now; weak detections alone convince only for a while."""
        p = self.parameters
        if track.support < min(_SHOWN_SUPPORT, p.confirm_hits):
            return False
        doubtful = (now_ns - track.strong_ns) / NS_PER_S > p.fresh_time
        return not doubtful and track.camera_age(now_ns) <= p.box_time

    def _advance(
        self, state: TrackerState, stamp_ns: int, view: CameraView | None = None
    ) -> list[TrackState]:
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
            track._replace(mean=mean, covariance=covariance, box=box)
            for track, mean, covariance, box in zip(
                tracks,
                means,
                covariances,
                predicted_boxes(tracks, dt, state.view, view),
                strict=True,
            )
        ]

    def _update(self, tracks: list[TrackState], matches: Sequence[_Match]) -> None:
        """Correct tracks in place, each by its measurement."""
        if not matches:
            return
        chosen = [tracks[i] for i, _ in matches]
        corrected = self._corrected(chosen, [measurement for _, measurement in matches])
        for (i, _), track in zip(matches, corrected, strict=True):
            tracks[i] = track

    def _corrected(
        self, tracks: list[TrackState], measurements: list[Measurement]
    ) -> list[TrackState]:
        """Correct each track by its measurement: position, Doppler velocity and box."""
        p = self.parameters
        read = [unbiased(m, t.height_bias) for t, m in zip(tracks, measurements, strict=True)]
        states = corrected_states(tracks, read, p.acceleration, p.start_speed, p.exchange_rate)
        evidence = zip(
            states.shares.tolist(),
            states.exchanged.tolist(),
            states.distances.tolist(),
            strict=True,
        )
        tracks = [
            updated(track, measurement, *of_track)
            for track, measurement, of_track in zip(tracks, measurements, evidence, strict=True)
        ]
        believed = [
            m if own >= 0.5 else m.otherwise or m
            for m, own in zip(read, states.shares.tolist(), strict=True)
        ]
        fresh = [
            t.camera_age(m.stamp_ns) <= p.box_restart_time
            for t, m in zip(tracks, believed, strict=True)
        ]
        boxes = corrected_boxes(tracks, [m.box for m in believed], fresh)
        return [
            self._counted(track, measurement, mean, covariance, box)
            for track, measurement, mean, covariance, box in zip(
                tracks, believed, states.means, states.covariances, boxes, strict=True
            )
        ]

    def _counted(
        self,
        track: TrackState,
        measurement: Measurement,
        mean: FloatArray,
        covariance: FloatArray,
        box: BoxState | None,
    ) -> TrackState:
        """Enter a measurement, and what the track comes to by it."""
        p, now_ns = self.parameters, measurement.stamp_ns
        seen_ns = {**track.updated_ns, **dict.fromkeys(measurement.seen_by, now_ns)}
        label, score, strong_ns = track.label, track.score, track.strong_ns
        support, hits, detection = track.support, track.hits, track.detection
        if not measurement.repeated:
            # What was detected once stands for its copies, but is not detected more often by them.
            hits += 1
            detection = measurement.detection or detection
        if measurement.box is not None:
            if not measurement.repeated:
                # A camera that detects what the radar follows needs no second look.
                support = min(support + 1, _MOST_SUPPORT) if track.box else _SHOWN_SUPPORT
            label, score = measurement.label, score + p.score_gain * (measurement.score - score)
            if measurement.score >= p.high_score:
                strong_ns = now_ns
        evidence = after_measurement(track.evidence, measurement, track.confirmed)
        counted = track._replace(
            label=label,
            score=score,
            mean=mean,
            covariance=covariance,
            box=box,
            updated_ns=seen_ns,
            strong_ns=strong_ns,
            hits=hits,
            evidence=evidence,
            support=support,
            detection=detection,
            cues=measurement.cue,
        )
        if track.confirmed or not self._is_confirmed(counted):
            return counted
        walks = float(np.hypot(*mean[3:5])) <= _FASTEST_RUN
        if counted.label == RADAR_ONLY_LABEL and walks:
            counted = counted._replace(label=_PERSON)
        return counted._replace(confirmed=True)

    def _is_confirmed(self, track: TrackState) -> bool:
        """Whether a track is shown: so many detections, convincing ones, or a way of its own."""
        if track.evidence < _BELIEVED:
            return False
        return track.has_moved if track.box is None else track.hits >= self.parameters.confirm_hits

    def _is_lost(self, track: TrackState, now_ns: int) -> bool:
        p = self.parameters
        limit = p.lost_time if track.confirmed else p.tentative_time
        return (now_ns - track.last_update_ns) / NS_PER_S > limit

    def _initiate(self, next_id: int, measurements: list[Measurement]) -> list[TrackState]:
        begun = [
            start_track(number, measurement, self._start_speed)
            for number, measurement in enumerate(measurements, next_id)
        ]
        return [track._replace(confirmed=self._is_confirmed(track)) for track in begun]


def _match(
    tracks: list[TrackState],
    free: set[int],
    measurements: list[Measurement],
    cost: _Cost,
    matches: list[_Match],
    among: Iterable[int] | None = None,
) -> list[Measurement]:
    """Associate free tracks (of those in ``among``), and append to ``matches``.

    :return: the measurements without a track
    """
    candidates = sorted(free if among is None else free.intersection(among))
    if not candidates or not measurements:
        return measurements
    best = assign(cost([tracks[i] for i in candidates], measurements))
    chosen = [candidates[row] for row, _ in best.pairs]
    matches += zip(chosen, (measurements[column] for _, column in best.pairs), strict=True)
    free.difference_update(chosen)
    return [measurements[j] for j in best.columns]


def _merged(tracks: list[TrackState], now_ns: int) -> list[TrackState]:
    """Give new tracks back to older ones that they lie on and that are not seen beside them.

    Who comes out from behind another is first seen in part, which may not look like the person
    that went there.
    """
    boxed = [t for t in tracks if t.box is not None]
    new = [
        t
        for t in boxed
        if t.camera_age(now_ns) <= 0.0 and (now_ns - t.born_ns) / NS_PER_S <= _NEW_TIME
    ]
    unseen = [t for t in boxed if t.confirmed and t.camera_age(now_ns) > 0.0]
    if not new or not unseen:
        return tracks
    overlaps = box_overlaps(new, unseen)
    pairs = assign(np.where(overlaps >= _SAME_OVERLAP, 1.0 - overlaps, np.inf)).pairs
    taken = {new[i].id: unseen[j] for i, j in pairs if unseen[j].born_ns < new[i].born_ns}
    gone = {old.id for old in taken.values()}
    return [
        t._replace(
            id=taken[t.id].id,
            born_ns=taken[t.id].born_ns,
            hits=t.hits + taken[t.id].hits,
            confirmed=True,
        )
        if t.id in taken
        else t
        for t in tracks
        if t.id not in gone
    ]


def _trusts(tracks: list[TrackState], view: CameraView | None, trust: float) -> list[float]:
    """Return how much it says that a picture does not show the tracks.

    Somebody whom the radar alone has found may be too small or hidden, or it is too dark. Only a
    good picture, in which the body would be tall, speaks against it.
    """
    alone = [i for i, track in enumerate(tracks) if track.box is None]
    trusts = [0.0 if track.box is None else trust for track in tracks]
    if alone and view is not None and trust >= _CLEAR:
        boxes = view.shown_boxes(stacked([tracks[i].mean[:3] for i in alone]))
        for i, height in zip(alone, (boxes[:, 3] - boxes[:, 1]).tolist(), strict=True):
            trusts[i] = float(height >= _TALL)
    return trusts


def _apart_from(tracks: list[TrackState], measurements: list[Measurement]) -> list[Measurement]:
    """Leave out what lies beside a known object: a part of it, not another one."""
    if not tracks or not measurements:
        return measurements
    places = stacked([t.mean[:2] for t in tracks])[:, None]
    apart = np.linalg.norm(places - stacked([m.position[:2] for m in measurements]), axis=2)
    same = (position_distance(tracks, measurements) <= POSITION_GATE) & (apart <= _PART_OF_BODY)
    return [
        m for m, known in zip(measurements, same.any(axis=0).tolist(), strict=True) if not known
    ]


def _shown(box: Box, size: tuple[int, int]) -> Box | None:
    """Cut to the picture, unless its size is zero; None if nothing is left."""
    width, height = size
    if width and height:
        limits = (width, height, width, height)
        box = Box(*(min(max(edge, 0.0), limit) for edge, limit in zip(box, limits, strict=True)))
    return box if box.width >= 1.0 and box.height >= 1.0 else None

"""A result beside the true scene of the same instant: boxes, places, and who is followed.

Visible people count: at least 8 px tall, and at least half of their outline in the picture and
not hidden. An unmatched box is *ignored*, neither right nor wrong, where at least half of it lies
on the box of an uncounted person: a smaller or more hidden one, or a cyclist, whom detectors call
a person. On a dog, a car or nothing it is wrong.

Odometry drifts (REP-105), and with it the frame of the tracks. So the truth is carried into the
frame of the body by the true pose of the drone, and on into the frame of the tracks by the pose
that odometry gave.

CLEAR MOT and identity figures are of boxes and of places. Boxes: visible people against the boxes
of people's tracks at the state time of each decision, without ignored boxes. Places: a track is
with a person when it is at most 2 m away on the ground, whatever sensor saw it and with or without
a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mmedge_ros.core.data_types import Box, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.replay.ground_truth import BODY_MIDDLE, CYCLIST, PERSON, GroundTruth, TrueFrame
from mmedge_ros.report.mot_metrics import (
    MINIMUM_IOU,
    MotFigures,
    MotFrame,
)
from mmedge_ros.tracking.data_association import intersection_over_union

POSITION_GATE = 2.0
# A car's returns come from its nearest corner.
_REACHES = {'car': 3.5}
MINIMUM_HEIGHT = 8.0
MINIMUM_VISIBILITY = 0.5
_IGNORED_SHARE = 0.5
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]


class Match(NamedTuple):
    """Matches of the P counted people and the M boxes of a result.

    ``overlaps`` (P,) are the IoU of the one-to-one assignment with the greatest sum, 0 for
    those missed. ``partners`` (P,) are the places of the boxes that meet them with an IoU of
    at least 0.5, -1 where none does. ``ignored`` (M,) marks boxes that are not judged.
    """

    overlaps: FloatArray
    partners: Places
    ignored: Mask

    @property
    def hits(self) -> int:
        """How many people were met by a box."""
        return int(np.count_nonzero(self.partners >= 0))

    @property
    def false(self) -> int:
        """How many boxes are wrong."""
        return len(self.ignored) - self.hits - int(np.count_nonzero(self.ignored))


def counted_people(frame: TrueFrame) -> Mask:
    """Mark (N,) the visible people."""
    mask: Mask = (
        (frame.labels == PERSON)
        & (frame.visibility >= MINIMUM_VISIBILITY)
        & (frame.heights >= MINIMUM_HEIGHT)
    )
    return mask


def uncounted_people(frame: TrueFrame) -> Mask:
    """Mark (N,) the people whose boxes are ignored."""
    mask: Mask = np.isin(frame.labels, (PERSON, CYCLIST)) & ~counted_people(frame)
    return mask


def person_boxes(
    tracks: Sequence[Track], elapsed: float, size: tuple[int, int] = (0, 0)
) -> tuple[list[Track], FloatArray]:
    """Return the tracks that show the box of a person, and those boxes (M, 4) some time later.

    :param elapsed: seconds since the state time of the tracks
    :param size: width and height of the picture, to which boxes are cut as the true ones are
    """
    shown: list[Track] = []
    boxes: list[Box] = []
    for track in tracks:
        box = track.box_at(elapsed) if track.label == PERSON else None
        if box is not None and np.isfinite(box).all():
            shown.append(track)
            boxes.append(box)
    corners = np.array(boxes, np.float64).reshape(-1, 4)
    width, height = size
    if width and height:
        corners = np.clip(corners, 0.0, (width, height, width, height))
    return shown, corners


def best_overlaps(people: FloatArray, boxes: FloatArray) -> FloatArray:
    """Return the IoU (P,) of people (P, 4) with the boxes (M, 4) assigned to them.

    One box to one person, so that the sum is as great as it can be; 0 for those left alone.
    """
    overlaps = np.zeros(len(people))
    iou = intersection_over_union(people, boxes)
    rows, columns = linear_sum_assignment(iou, maximize=True)
    overlaps[rows] = iou[rows, columns]
    return overlaps


def met_pairs(people: FloatArray, boxes: FloatArray) -> tuple[Places, Places]:
    """Return the places of people (P, 4) and of the boxes (M, 4) that meet them, one to one."""
    iou = intersection_over_union(people, boxes)
    # Pairs below the limit are worth nothing, so that they never break up one above it.
    worth = np.where(iou >= MINIMUM_IOU, iou, 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    met = worth[rows, columns] > 0.0
    return rows[met], columns[met]


def match_boxes(frame: TrueFrame, boxes: FloatArray) -> Match:
    """Compare the boxes (M, 4) of a result with everything that is true at its state time."""
    people = frame.boxes[counted_people(frame)]
    partners = np.full(len(people), -1, np.intp)
    rows, columns = met_pairs(people, boxes)
    partners[rows] = columns
    ignored = covered_boxes(boxes, frame.boxes[uncounted_people(frame)])
    ignored[partners[partners >= 0]] = False
    return Match(best_overlaps(people, boxes), partners, ignored)


def covered_boxes(boxes: FloatArray, regions: FloatArray) -> Mask:
    """Mark boxes (M,) of which at least half lies inside one of the regions (R, 4)."""
    regions = regions[np.isfinite(regions).all(axis=1)]
    if not len(regions) or not len(boxes):
        return np.zeros(len(boxes), np.bool_)
    low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
    inside = np.prod(np.clip(high - low, 0.0, None), axis=2).max(axis=1)
    area = np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0.0, None), axis=1)
    covered: Mask = (area > 0.0) & (inside >= _IGNORED_SHARE * area)
    return covered


class Aligned(NamedTuple):
    """True positions and velocities (N, 3) in the frame of the tracks, and the sensor (3,)."""

    positions: FloatArray
    velocities: FloatArray
    sensor: FloatArray

    @property
    def ranges(self) -> FloatArray:
        """Distances (N,) in m from the sensor to the middles of bodies."""
        return np.asarray(np.linalg.norm(self.positions + BODY_MIDDLE - self.sensor, axis=1))

    def select(self, places: NDArray[np.intp]) -> Aligned:
        """Return the objects at these places."""
        return Aligned(self.positions[places], self.velocities[places], self.sensor)


class Alignment:
    """Carries the truth into the frame of a run's tracks, where that can be done.

    ``problems`` lists where it cannot.
    """

    def __init__(self, record: RunRecord, truth: GroundTruth) -> None:
        self._truth = truth
        self._odometry = record.ego
        pose = record.camera_pose or record.radar_pose
        self._mount = np.zeros(3) if pose is None else np.asarray(pose.translation)
        self._refused: dict[str, int] = {}

    @property
    def problems(self) -> list[str]:
        return [
            f'ground truth: positions are in {self._truth.frame_id!r}, the tracks of {count} '
            f'decisions in {frame!r}: where people are was not compared there'
            for frame, count in self._refused.items()
        ]

    def carry(self, frame: TrueFrame, stamp_ns: int, frame_id: str) -> Aligned | None:
        """Return what is true at an instant in the frame of the tracks."""
        drone = self._truth.ego.at(stamp_ns)
        reckoned = None
        if self._odometry is not None and self._odometry.frame_id == frame_id:
            reckoned = self._odometry.nearest(stamp_ns)
        if drone is not None and reckoned is not None and reckoned.stamp_ns != stamp_ns:
            # Where odometry has stopped, its frame stays where it was.
            held = self._truth.ego.nearest(reckoned.stamp_ns) or drone
            drifted = reckoned.pose.compose(held.pose.inverse())
            reckoned = replace(reckoned, pose=drifted.compose(drone.pose))
        if drone is not None and (reckoned is not None or frame_id == BASE_FRAME):
            return self._carried(frame, drone, reckoned)
        if frame_id != self._truth.frame_id:
            self._refused[frame_id] = self._refused.get(frame_id, 0) + 1
            return None
        sensor = self._mount if drone is None else drone.pose.apply(self._mount)
        return Aligned(frame.positions, frame.velocities, sensor)

    def _carried(self, frame: TrueFrame, drone: EgoState, reckoned: EgoState | None) -> Aligned:
        inverse = drone.pose.inverse()
        positions = inverse.apply(frame.positions)
        if reckoned is not None:
            velocities = inverse.rotate(frame.velocities)
            pose = reckoned.pose
            return Aligned(pose.apply(positions), pose.rotate(velocities), pose.apply(self._mount))
        # In the frame of the body everything moves as the drone does not.
        arms = frame.positions - drone.pose.translation
        own = np.zeros(3) if drone.velocity is None else drone.velocity
        turning = np.zeros(3) if drone.angular_velocity is None else drone.angular_velocity
        relative = frame.velocities - own - np.cross(turning, arms)
        return Aligned(positions, inverse.rotate(relative), self._mount)


def tracking_report(figures: MotFigures) -> dict[str, Any]:
    """Return the values for a report; NaN where there is nothing to divide by."""
    return {
        'mota': figures.mota,
        'idf1': figures.idf1,
        'id_switches': figures.id_switches,
        'fragmentations': figures.fragmentations,
        'recall': figures.recall,
        'precision': figures.precision,
        'true_positives': figures.matches,
        'false_positives': figures.false_positives,
        'false_negatives': figures.false_negatives,
        'idtp': figures.idtp,
        'idfp': figures.result_boxes - figures.idtp,
        'idfn': figures.true_boxes - figures.idtp,
        'mostly_tracked': figures.mostly_tracked,
        'partially_tracked': figures.partially_tracked,
        'mostly_lost': figures.mostly_lost,
        'people': figures.true_ids,
        'ids': figures.result_ids,
    }


def box_frame(frame: TrueFrame, ids: Sequence[int], boxes: FloatArray, match: Match) -> MotFrame:
    """Return the visible people and the boxes (M, 4) of tracks with ``ids`` that are judged."""
    people = frame.select(counted_people(frame))
    judged = np.flatnonzero(~match.ignored)
    return MotFrame(
        people.ids.tolist(),
        [ids[place] for place in judged.tolist()],
        intersection_over_union(people.boxes, boxes[judged]),
    )


def position_frame(frame: TrueFrame, truth: Aligned, tracks: Sequence[Track]) -> MotFrame:
    """Return the visible people and the tracks that are judged, by their places on the ground.

    Tracks near uncounted people are not judged, nor are tracks of the radar alone near anything
    that can move: they only report that something moves.
    """
    counted = counted_people(frame)
    places = np.array([t.position for t in tracks], np.float64).reshape(-1, 3)
    distances = ground_distances(truth.positions[:, :2], places[:, :2])
    closeness = np.clip(1.0 - distances * (1.0 - MINIMUM_IOU) / POSITION_GATE, 0.0, 1.0)
    judged = ~_ignored(frame, distances, tracks) | (
        (closeness[counted] >= MINIMUM_IOU).any(axis=0)
    )
    chosen = np.flatnonzero(judged)
    return MotFrame(
        frame.ids[counted].tolist(),
        [tracks[place].id for place in chosen.tolist()],
        closeness[counted][:, chosen],
    )


def _ignored(frame: TrueFrame, distances: FloatArray, tracks: Sequence[Track]) -> Mask:
    """Mark the tracks (M,) near uncounted people."""
    near = distances <= mover_reaches(frame)[:, None]
    moving = np.array([track.label != PERSON for track in tracks], np.bool_)
    allowed = uncounted_people(frame)[:, None] | moving[None]
    return np.asarray((near & allowed).any(axis=0), np.bool_)


def mover_reaches(frame: TrueFrame) -> FloatArray:
    """Return how far (N,) m from the middle of each object a track may be that is on it."""
    return np.array([_REACHES.get(str(label), POSITION_GATE) for label in frame.labels], float)


def ground_distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Distances (N, M) between points (N, 2) and (M, 2); infinite where one is not finite."""
    with np.errstate(over='ignore', invalid='ignore'):
        distances: FloatArray = np.linalg.norm(first[:, None] - second[None], axis=2)
    return np.where(np.isfinite(distances), distances, np.inf)

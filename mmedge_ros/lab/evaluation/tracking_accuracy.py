"""How steadily people are followed: CLEAR MOT and identity figures of boxes and of places.

Boxes are asked as accuracy is: visible people against the boxes of people's tracks at the
state time of each decision, without the boxes that are not judged. Places are compared on the
ground: a track is with a person when it is at most 2 m away, whatever sensor saw it and
whether it shows a box or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mmedge_ros.data_types import FloatArray, Track
from mmedge_ros.lab.evaluation.mot_metrics import (
    MINIMUM_IOU,
    MotFigures,
    MotFrame,
    evaluate_frames,
)
from mmedge_ros.lab.evaluation.truth_alignment import Aligned
from mmedge_ros.lab.evaluation.truth_matching import Mask, Match, counted_people, uncounted_people
from mmedge_ros.records.ground_truth import PERSON, TrueFrame
from mmedge_ros.tracking.data_association import intersection_over_union

POSITION_GATE = 2.0
# A car's returns come from its nearest corner.
_REACHES = {'car': 3.5}


@dataclass(frozen=True)
class TrackingCounts:
    """What CLEAR MOT and identity figures are made from; adds up over flights.

    ``overlap`` is the sum of the closeness of matches; ``idtp`` counts the matches under the
    one id that is best assigned to each person.
    """

    people: int = 0
    ids: int = 0
    true_boxes: int = 0
    boxes: int = 0
    matches: int = 0
    idtp: int = 0
    id_switches: int = 0
    fragmentations: int = 0
    mostly_tracked: int = 0
    partially_tracked: int = 0
    mostly_lost: int = 0
    overlap: float = 0.0

    def __add__(self, other: TrackingCounts) -> TrackingCounts:
        return TrackingCounts(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        )

    @staticmethod
    def of(figures: MotFigures) -> TrackingCounts:
        """Take the counts out of figures of a result with ids."""
        matches = figures.true_boxes - figures.false_negatives
        return TrackingCounts(
            figures.true_ids,
            figures.result_ids or 0,
            figures.true_boxes,
            figures.result_boxes,
            matches,
            round(figures.idr * figures.true_boxes) if figures.true_boxes else 0,
            figures.id_switches or 0,
            figures.fragmentations or 0,
            figures.mostly_tracked,
            figures.partially_tracked,
            figures.mostly_lost,
            figures.motp * matches if matches else 0.0,
        )

    def report(self) -> dict[str, Any]:
        """Return the values for a report; NaN where nothing could be asked."""
        missed, extra = self.true_boxes - self.matches, self.boxes - self.matches
        wrong = missed + extra + self.id_switches
        return {
            'mota': 1.0 - _share(wrong, self.true_boxes),
            'idf1': _share(2 * self.idtp, self.true_boxes + self.boxes),
            'id_switches': self.id_switches,
            'fragmentations': self.fragmentations,
            'motp': _share(self.overlap, self.matches),
            'recall': _share(self.matches, self.true_boxes),
            'precision': _share(self.matches, self.boxes),
            'true_positives': self.matches,
            'false_positives': extra,
            'false_negatives': missed,
            'idtp': self.idtp,
            'idfp': self.boxes - self.idtp,
            'idfn': self.true_boxes - self.idtp,
            'mostly_tracked': self.mostly_tracked,
            'partially_tracked': self.partially_tracked,
            'mostly_lost': self.mostly_lost,
            'people': self.people,
            'ids': self.ids,
        }


def tracking_counts(frames: Iterable[MotFrame]) -> TrackingCounts:
    """Follow people through the frames of a flight."""
    return TrackingCounts.of(evaluate_frames(frames))


def box_frame(
    frame: TrueFrame, tracks: Sequence[Track], boxes: FloatArray, match: Match
) -> MotFrame:
    """Return who is visible and which boxes (M, 4) of ``tracks`` are judged."""
    people = frame.select(counted_people(frame))
    judged = np.flatnonzero(~match.ignored)
    return MotFrame(
        people.ids.tolist(),
        [tracks[place].id for place in judged.tolist()],
        intersection_over_union(people.boxes, boxes[judged]),
    )


def position_frame(frame: TrueFrame, truth: Aligned, tracks: Sequence[Track]) -> MotFrame:
    """Return who is visible and which tracks are judged, by where they are on the ground.

    Tracks near somebody who does not count are not judged, and neither are tracks of the radar
    alone near anything that can move: there is something, and that is all they say.
    """
    counted = counted_people(frame)
    places = np.array([t.position for t in tracks], np.float64).reshape(-1, 3)
    distances = _distances(truth.positions[:, :2], places[:, :2])
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


def position_report(counts: TrackingCounts) -> dict[str, Any]:
    """Return the values for a report; ``motp_m`` is the mean distance of matches in m."""
    values = counts.report()
    closeness = values.pop('motp')
    return values | {'motp_m': (1.0 - closeness) * POSITION_GATE / (1.0 - MINIMUM_IOU)}


def _ignored(frame: TrueFrame, distances: FloatArray, tracks: Sequence[Track]) -> Mask:
    """Mark the tracks (M,) near those whom to find is neither right nor wrong."""
    reaches = np.array([_REACHES.get(str(label), POSITION_GATE) for label in frame.labels])
    near = distances <= reaches[:, None]
    moving = np.array([track.label != PERSON for track in tracks], np.bool_)
    allowed = uncounted_people(frame)[:, None] | moving[None]
    return np.asarray((near & allowed).any(axis=0), np.bool_)


def _distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Distances (N, M) between points (N, 2) and (M, 2); infinite where one is not finite."""
    with np.errstate(over='ignore', invalid='ignore'):
        found: FloatArray = np.linalg.norm(first[:, None] - second[None], axis=2)
    return np.where(np.isfinite(found), found, np.inf)


def _share(part: float, whole: int) -> float:
    return part / whole if whole else math.nan

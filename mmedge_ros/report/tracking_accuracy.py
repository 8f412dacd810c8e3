"""Tracking accuracy: CLEAR MOT and identity figures of boxes and of places.

Boxes: visible people against the boxes of people's tracks at the state time of each decision,
without ignored boxes. Places: a track is with a person when it is at most 2 m away on the
ground, whatever sensor saw it and with or without a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import FloatArray, Track
from mmedge_ros.replay.ground_truth import PERSON, TrueFrame
from mmedge_ros.report.mot_metrics import (
    MINIMUM_IOU,
    MotFigures,
    MotFrame,
)
from mmedge_ros.report.truth_alignment import Aligned
from mmedge_ros.report.truth_matching import Mask, Match, counted_people, uncounted_people
from mmedge_ros.tracking.data_association import intersection_over_union

POSITION_GATE = 2.0
# A car's returns come from its nearest corner.
_REACHES = {'car': 3.5}


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


def _ignored(frame: TrueFrame, distances: FloatArray, tracks: Sequence[Track]) -> Mask:
    """Mark the tracks (M,) near uncounted people."""
    reaches = np.array([_REACHES.get(str(label), POSITION_GATE) for label in frame.labels])
    near = distances <= reaches[:, None]
    moving = np.array([track.label != PERSON for track in tracks], np.bool_)
    allowed = uncounted_people(frame)[:, None] | moving[None]
    return np.asarray((near & allowed).any(axis=0), np.bool_)


def _distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """Distances (N, M) between points (N, 2) and (M, 2); infinite where one is not finite."""
    with np.errstate(over='ignore', invalid='ignore'):
        distances: FloatArray = np.linalg.norm(first[:, None] - second[None], axis=2)
    return np.where(np.isfinite(distances), distances, np.inf)

"""This tracker beside its rivals on the same detections of simulated flights.

Each tracker is given every picture, in the order of stamps and without latency, and is judged in
each picture after it has taken it. Rivals are given the boxes of people and their scores. This
tracker is given the detections of all labels with the flight's calibration and odometry, and is
judged twice: with the camera alone, and with the radar as well. Detections are fused by decision
fusion, because feature fusion makes other ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.encoded_flight import set_up_geometry
from mmedge_lab.judging.flight_sums import Figure, SummedFlights, Sums
from mmedge_lab.judging.kept_detections import DetectedFlight
from mmedge_lab.rivals.trackers.rival_trackers import OURS, RIVALS
from mmedge_ros.data_types import CAMERA, NS_PER_S, FloatArray
from mmedge_ros.geometry.ego_motion import EgoReport
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.records.ground_truth import PERSON, GroundTruth
from mmedge_ros.records.plain_values import plain_values
from mmedge_ros.report.mot_metrics import MotFrame, evaluate_frames, ids_by_person
from mmedge_ros.report.tracking_accuracy import box_frame
from mmedge_ros.report.truth_matching import match_boxes, person_boxes
from mmedge_ros.skipping.skip_control import SkipParameters

OURS_CAMERA_ONLY = f'{OURS} without radar'
TRACKERS = (*RIVALS, OURS_CAMERA_ONLY, OURS)
# Detections of people with less than this score are not shown to a rival: SORT and norfair begin
# a track with every one. Of 0.1, 0.25, 0.4 and 0.55 this has the best MOTA and the best IDF1 on
# flights of the validation set. ByteTrack has limits of its own and uses nothing below 0.1.
LEAST_SCORES: Mapping[str, float] = {'SORT': 0.25, 'ByteTrack': 0.1, 'norfair': 0.25}
# Whoever is out of sight for longer (s) may come back under another id.
LONGEST_HIDDEN = 2.0
_DIGITS = 5


FIGURES: Mapping[str, Figure] = {
    'mota': Figure('errors', 'true_boxes', 1.0, -1.0),
    'idf1': Figure('same', 'boxes'),
    'switches_per_minute': Figure('switches', 'minutes'),
    'ids_per_person': Figure('ids', 'people'),
}
# What is summed up of each flight.
COLUMNS = ('errors', 'true_boxes', 'same', 'boxes', 'switches', 'minutes', 'ids', 'people')


class ShownBoxes(NamedTuple):
    """What a tracker shows in a picture: ids, and boxes (M, 4) in px."""

    stamp_ns: int
    ids: list[int]
    boxes: FloatArray


@dataclass(frozen=True)
class Comparison(SummedFlights):
    """What each tracker did in each flight: sums of `COLUMNS`."""

    figures: Mapping[str, Figure] = field(default_factory=lambda: FIGURES)

    def report(self) -> dict[str, Any]:
        """Return all figures, totals and differences; None where there is nothing to divide by."""
        names = list(self.subjects)
        values: dict[str, Any] = plain_values(
            {
                'trackers': {
                    name: {
                        **{figure: self.estimate(name, figure)._asdict() for figure in FIGURES},
                        'totals': {column: self.total(name, column) for column in COLUMNS},
                    }
                    for name in names
                },
                'differences': {
                    ours: {
                        rival: {
                            figure: self.difference(ours, rival, figure)._asdict()
                            for figure in FIGURES
                        }
                        for rival in names
                        if rival in RIVALS
                    }
                    for ours in names
                    if ours not in RIVALS
                },
            },
            _DIGITS,
        )
        return values


def known_trackers(names: Sequence[str]) -> tuple[str, ...]:
    """Return the trackers of these names; all for none.

    :raises EvaluationError: for an unknown one
    """
    for name in names:
        if name not in TRACKERS:
            raise EvaluationError(f'no tracker {name!r}; there are {", ".join(TRACKERS)}')
    return tuple(name for name in TRACKERS if name in names or not names)


def compare_on_flight(
    detected: DetectedFlight,
    trackers: Sequence[str] = TRACKERS,
    on_progress: Callable[[float], None] | None = None,
) -> dict[str, Sums]:
    """Track a flight with each tracker and judge it by the flight's truth.

    :param on_progress: called with the share done, 0..1
    :raises EvaluationError: if the library of a rival is not installed
    """
    truth = detected.flight.truth
    assert truth is not None  # `detected_flight` requires it
    size = _picture_size(detected)
    sums = {}
    for number, name in enumerate(trackers):
        if name in RIVALS:
            shown = _rival_boxes(name, detected)
        else:
            shown = _own_boxes(detected, with_radar=name == OURS)
        sums[name] = _judged(truth, shown, size, detected.flight.periods_ns[CAMERA])
        if on_progress:
            on_progress((number + 1) / len(trackers))
    return sums


def _rival_boxes(name: str, detected: DetectedFlight) -> Iterator[ShownBoxes]:
    tracker = RIVALS[name](NS_PER_S / detected.flight.periods_ns[CAMERA])
    for unit in detected.units:
        if unit.modality == CAMERA:
            people = [
                d for d in unit.detections if d.label == PERSON and d.score >= LEAST_SCORES[name]
            ]
            boxes = np.array([d.box for d in people], np.float64).reshape(-1, 4)
            tracked = tracker.update(boxes, np.array([d.score for d in people], np.float64))
            shown = np.array([t.box for t in tracked], np.float64).reshape(-1, 4)
            yield ShownBoxes(unit.stamp_ns, [t.id for t in tracked], shown)


def _own_boxes(detected: DetectedFlight, *, with_radar: bool) -> Iterator[ShownBoxes]:
    flight = detected.flight
    parameters = PipelineParameters(strategy=DECISION, skipping=SkipParameters(delta=0.0))
    pipeline = PerceptionPipeline(parameters)
    set_up_geometry(flight, pipeline)
    # A withheld radar is still mounted on the drone.
    pipeline.rig.set_frames({unit.modality: unit.frame_id for unit in detected.units})
    reports = [event for event in flight.events if isinstance(event, EgoReport)]
    frame_id, size = pipeline.rig.frame_id, pipeline.rig.picture_size
    for unit in detected.units:
        while reports and reports[0].available_ns <= unit.available_ns:
            report = reports.pop(0)
            pipeline.rig.add_ego_state(report.state, report.frame_id, report.base_frame)
        if pipeline.rig.frame_id != frame_id:
            frame_id = pipeline.rig.frame_id
            pipeline.tracker.reset()
        if with_radar or unit.modality == CAMERA:
            pipeline.tracker.update([unit])
        if unit.modality == CAMERA:
            recent_ns = unit.stamp_ns - pipeline.assembler.window_ns
            tracks = pipeline.tracker.report(unit.stamp_ns, recent_ns, size)
            people, boxes = person_boxes(tracks, 0.0, size)
            yield ShownBoxes(unit.stamp_ns, [track.id for track in people], boxes)


def _picture_size(detected: DetectedFlight) -> tuple[int, int]:
    pictures = (unit for unit in detected.units if unit.modality == CAMERA)
    return next((unit.image_size for unit in pictures), (0, 0))


def _judged(
    truth: GroundTruth, shown: Iterator[ShownBoxes], size: tuple[int, int], period_ns: int
) -> Sums:
    frames: list[MotFrame] = []
    seen_ns: dict[int, list[int]] = {}
    width, height = size
    for picture in shown:
        frame = truth.frame_at(picture.stamp_ns)
        if frame is None:
            continue
        boxes = np.clip(picture.boxes, 0.0, (width, height, width, height))
        frames.append(box_frame(frame, picture.ids, boxes, match_boxes(frame, boxes)))
        for number in frames[-1].true_ids:
            seen_ns.setdefault(number, []).append(picture.stamp_ns)
    figures = evaluate_frames(frames)
    ids = ids_by_person(frames)
    steady = [
        len(ids[number])
        for number, stamps_ns in seen_ns.items()
        if ids[number] and np.diff(stamps_ns).max(initial=0) <= LONGEST_HIDDEN * NS_PER_S
    ]
    wrong = figures.false_positives + figures.false_negatives + (figures.id_switches or 0)
    return {
        'errors': float(wrong),
        'true_boxes': float(figures.true_boxes),
        'same': 2.0 * figures.idtp,
        'boxes': float(figures.true_boxes + figures.result_boxes),
        'switches': float(figures.id_switches or 0),
        'minutes': figures.true_boxes * period_ns / (60.0 * NS_PER_S),
        'ids': float(sum(steady)),
        'people': float(len(steady)),
    }

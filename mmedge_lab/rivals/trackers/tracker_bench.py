"""This tracker beside its rivals on the same detections of simulated flights.

Each tracker is given every picture, in the order of stamps and without latency, and is judged in
each picture after it has taken it. Rivals are given the boxes of people and their scores. This
tracker is given the detections of all labels with the flight's calibration and odometry, and is
judged twice: with the camera alone, and with the radar as well. Detections are fused by decision
fusion, because feature fusion makes other ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES, tracking_sums
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums, flights_about
from mmedge_lab.judging.encoded_flight import EncodedFlight, set_up_geometry
from mmedge_lab.judging.judged_flight import FlightOpener, bundle_of
from mmedge_lab.rivals.trackers.rival_trackers import OURS, RIVALS, RivalTracker
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, FloatArray, Unit, UnitFeatures
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.replay.ground_truth import PERSON, GroundTruth
from mmedge_ros.report.mot_metrics import MotFrame, evaluate_frames, ids_by_person
from mmedge_ros.report.truth_matching import box_frame, match_boxes, person_boxes
from mmedge_ros.windows.skip_control import SkipParameters

OURS_CAMERA_ONLY = f'{OURS} without radar'
TRACKERS = (*RIVALS, OURS_CAMERA_ONLY, OURS)
# Whoever is out of sight for longer (s) may come back under another id.
LONGEST_HIDDEN = 2.0

_FIGURES: Mapping[str, Figure] = {
    **{name: FIGURES[name] for name in ('mota', 'idf1')},
    'switches_per_minute': Figure('switches / minute', 'switches', 'minutes', 2),
    'ids_per_person': Figure('ids per person', 'ids', 'people', 2),
}


class ShownBoxes(NamedTuple):
    """What a tracker shows in a picture: ids, and boxes (M, 4) in px."""

    stamp_ns: int
    ids: list[int]
    boxes: FloatArray


class DetectedFlight(NamedTuple):
    """A flight and its units with detections and returns, in the order of their stamps."""

    flight: EncodedFlight
    units: tuple[UnitFeatures, ...]


def _detected(
    opener: FlightOpener, subject: Subject, rows: Sequence[Row], on_share: OnShare
) -> DetectedFlight:
    """Open a flight with what a level detects in it."""
    flight = opener(subject, rows, on_share).flight
    units = [u for u in flight.features.values() if isinstance(u, UnitFeatures)]
    # A scan of the very stamp of a picture goes before it, as it does in the pipeline.
    units.sort(key=lambda u: (u.stamp_ns, u.modality == CAMERA))
    return DetectedFlight(flight, tuple(units))


def bench(request: BenchRequest, *, level: str = 'large') -> Bench:
    """Compare this tracker with SORT, ByteTrack and OC-SORT on the detections of one level.

    :param level: the camera's level that detects
    """
    bundle, subjects = bundle_of(request.detector), request.flights()
    levels = bundle.encoders()[CAMERA].levels
    if levels and level not in levels:
        raise EvaluationError(
            f'{bundle.folder} has no level {level!r}; it has {", ".join(levels)}'
        )
    return Bench(
        'This tracker beside others on the same detections',
        tuple(Row(name, partial(track_flight, name)) for name in TRACKERS),
        _FIGURES,
        subjects,
        partial(_detected, FlightOpener(bundle, (level,))),
        references=(OURS, OURS_CAMERA_ONLY),
        key=f'{bundle.digest} {level}',
        about={**flights_about(subjects), 'bundle': bundle.folder.name, 'level': level},
    )


def track_flight(name: str, detected: DetectedFlight) -> Sums:
    """Track a flight with one of `TRACKERS` and judge it by the flight's truth.

    :raises UnmeasuredError: if the package of rivals is not installed
    """
    truth = detected.flight.truth
    assert truth is not None  # `encoded_with_truth` requires it
    if name in RIVALS:
        shown = _rival_boxes(name, detected)
    else:
        shown = _own_boxes(detected, with_radar=name == OURS)
    return _judged(truth, shown, _picture_size(detected), detected.flight.periods_ns[CAMERA])


def _rival_boxes(name: str, detected: DetectedFlight) -> Iterator[ShownBoxes]:
    tracker = RivalTracker(name, NS_PER_S / detected.flight.periods_ns[CAMERA])
    for unit in detected.units:
        if unit.modality == CAMERA:
            people = [d for d in unit.detections if d.label == PERSON]
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
    reports = [event for event in flight.events if not isinstance(event, Unit)]
    frame_id, size = pipeline.rig.frame_id, pipeline.rig.picture_size
    for unit in detected.units:
        while reports and reports[0].available_ns <= unit.available_ns:
            report = reports.pop(0)
            pipeline.rig.enter(report)
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
    return {
        **tracking_sums(figures),
        'switches': float(figures.id_switches or 0),
        'minutes': figures.true_boxes * period_ns / (60.0 * NS_PER_S),
        'ids': float(sum(steady)),
        'people': float(len(steady)),
    }

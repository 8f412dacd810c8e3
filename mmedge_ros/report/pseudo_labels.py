"""Judges a run by what another detector, a teacher, detects in the same pictures.

For recordings without labels. The teacher's boxes are pseudo-labels, not ground truth:
agreement says how well a run keeps up with the teacher, and where the teacher is wrong a right
box counts as wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mmedge_ros.core.data_types import CAMERA, Box, Decision
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.replay.ground_truth import PERSON
from mmedge_ros.report import ReportError
from mmedge_ros.report.box_comparison import (
    box_array,
    count_matches,
    decisions_near,
    moved_boxes,
)
from mmedge_ros.report.truth_matching import best_overlaps

# What a teacher is less sure of is no label.
TEACHER_SCORE = 0.35
# Of the detector alone, as wherever detectors are judged; a tracker also uses weaker boxes.
DETECTOR_SCORE = 0.25

Labels = Mapping[int, Sequence[Box]]


class FindsObjects(Protocol):
    """A detector, as far as it is judged."""

    def detect(self, image: Image) -> DetectorOutput: ...


class SeenPicture(Protocol):
    """A picture and its stamp."""

    @property
    def stamp_ns(self) -> int: ...

    @property
    def picture(self) -> Image: ...


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """Agreement of boxes with pseudo-labels; NaN where nothing could be compared.

    mean_iou: over the pseudo-labels, of the box assigned one to one, 0 for those without.
    recall: share of pseudo-labels met with an IoU of at least 0.5; precision: share of the
    ``boxes`` that meet one.
    """

    mean_iou: float
    recall: float
    precision: float
    boxes: int


@dataclass(frozen=True, slots=True)
class PseudoLabelComparison:
    """How decisions, and the run's own detector alone, agree with a teacher.

    ``labels`` are the teacher's boxes in ``frames`` pictures. At ``frames_without_decision`` no
    decision was within one stride; their labels count as missed by decisions.
    """

    teacher: str
    first_frame: int
    last_frame: int
    frames: int
    labels: int
    teacher_score: float
    frames_without_decision: int
    decisions: LabelAgreement
    detector: LabelAgreement


def teacher_labels(
    pictures: Iterable[SeenPicture],
    teacher: FindsObjects,
    stamps_ns: Sequence[int],
    on_progress: Callable[[float], None] | None = None,
) -> dict[int, list[Box]]:
    """Return the people a teacher detects, by the stamp of the picture.

    :param stamps_ns: of the pictures to label
    """
    wanted = set(stamps_ns)
    labels: dict[int, list[Box]] = {}
    for picture in pictures:
        if picture.stamp_ns not in wanted or picture.stamp_ns in labels:
            continue
        try:
            seen = teacher.detect(picture.picture).detections
        except EncodingError:
            continue
        labels[picture.stamp_ns] = [
            d.box for d in seen if d.label == PERSON and d.score >= TEACHER_SCORE
        ]
        if on_progress:
            on_progress(len(labels) / len(wanted))
        if len(labels) == len(wanted):
            break
    return labels


def frame_range(
    record: RunRecord, first_frame: int | None, last_frame: int | None
) -> tuple[int, int]:
    """Return the first and last frame of a range that are in the recording.

    :raises ReportError: if none is
    """
    count = len(record.camera_stamps_ns)
    first = first_frame or 0
    last = count - 1 if last_frame is None else min(last_frame, count - 1)
    if first > last:
        raise ReportError(
            f'frames {first} to {"the last" if last_frame is None else last_frame} are not in '
            f'the recording, which holds {count} pictures; give another range with --frames'
        )
    return first, last


def compare_with_teacher(
    record: RunRecord, labels: Labels, teacher: str, first_frame: int, last_frame: int
) -> PseudoLabelComparison:
    """Compare the boxes of decisions, and those of the detector alone, with pseudo-labels.

    A decision answers for the picture its state time is nearest to, within one stride; its
    boxes are moved to the picture's stamp by their own velocities.

    :param labels: see `teacher_labels`
    """
    stamps = [s for s in record.camera_stamps_ns[first_frame : last_frame + 1] if s in labels]
    given = [labels[stamp] for stamp in stamps]
    nearest = zip(stamps, decisions_near(record, stamps), strict=True)
    decided = [
        None if decision is None else _people_at(decision, stamp_ns)
        for stamp_ns, decision in nearest
    ]
    detected = _detected_boxes(record)
    return PseudoLabelComparison(
        teacher,
        first_frame,
        last_frame,
        len(stamps),
        sum(map(len, given)),
        TEACHER_SCORE,
        sum(boxes is None for boxes in decided),
        _agreement(given, [boxes or [] for boxes in decided]),
        _agreement(given, [detected.get(stamp, []) for stamp in stamps]),
    )


def _agreement(given: Sequence[Sequence[Box]], shown: Sequence[Sequence[Box]]) -> LabelAgreement:
    overlaps: list[float] = []
    hits = 0
    for labels, boxes in zip(given, shown, strict=True):
        overlaps += best_overlaps(box_array(labels), box_array(boxes)).tolist()
        hits += count_matches(labels, boxes)
    total = sum(map(len, shown))
    return LabelAgreement(
        float(np.mean(overlaps)) if overlaps else math.nan,
        hits / len(overlaps) if overlaps else math.nan,
        hits / total if total else math.nan,
        total,
    )


def _people_at(decision: Decision, stamp_ns: int) -> list[Box]:
    people = (track for track in decision.tracks if track.label == PERSON)
    return moved_boxes(people, stamp_ns - decision.state_ns)


def _detected_boxes(record: RunRecord) -> dict[int, list[Box]]:
    return {
        unit.stamp_ns: [
            d.box for d in unit.detections if d.label == PERSON and d.score >= DETECTOR_SCORE
        ]
        for unit in record.features
        if unit.modality == CAMERA
    }

"""Comparison with a teacher's boxes, whose answers are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hand_made_truth import BOX, at, decided, moved, run, track

from mmedge_ros.core.data_types import Detection, UnitFeatures
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorOutput
from mmedge_ros.report import ReportError
from mmedge_ros.report.pseudo_labels import (
    DETECTOR_SCORE,
    TEACHER_SCORE,
    compare_with_teacher,
    frame_range,
    teacher_labels,
)
from mmedge_ros.report.timed_pictures import TimedPicture

FAR = moved(BOX, 200.0)
# Half of it lies beside: an IoU of one third.
ASIDE = moved(BOX, 20.0)


def pictured(*decisions, detected=(), frames=5):
    """A run with a picture every 100 ms, in each of which its detector finds the same."""
    features = [
        UnitFeatures('camera', n, at(100 * n), at(100 * n), 'camera', (), detections=detected)
        for n in range(frames)
    ]
    stamps = [unit.stamp_ns for unit in features]
    return replace(run(decisions), features=features, camera_stamps_ns=stamps)


def compared(record, boxes, first=0, last=4):
    labels = {at(100 * n): list(boxes) for n in range(5)}
    return compare_with_teacher(record, labels, 'teacher', first, last)


def test_equal_boxes_agree_in_full() -> None:
    record = pictured(
        *(decided(100 * n, track(1, BOX)) for n in range(5)),
        detected=(Detection(BOX, 0.9, 'person'),),
    )
    result = compared(record, [BOX])
    for agreement in (result.decisions, result.detector):
        assert (agreement.mean_iou, agreement.recall, agreement.precision) == (1.0, 1.0, 1.0)
        assert agreement.boxes == 5
    assert (result.frames, result.labels, result.frames_without_decision) == (5, 5, 0)


def test_decisions_and_the_detector_alone_are_judged_apart() -> None:
    record = pictured(
        *(decided(100 * n, track(1, BOX), track(2, FAR)) for n in range(5)),
        detected=(Detection(ASIDE, 0.9, 'person'), Detection(FAR, 0.1, 'person')),
    )
    result = compared(record, [BOX, FAR])
    assert result.decisions.mean_iou == pytest.approx(1.0)
    assert result.detector.mean_iou == pytest.approx(1.0 / 6.0)
    assert (result.detector.recall, result.detector.precision) == (0.0, 0.0)
    # What the detector itself hardly believes is no box of its own.
    assert result.detector.boxes == 5
    assert DETECTOR_SCORE > 0.1


def test_a_label_no_one_meets_counts_as_zero() -> None:
    record = pictured(*(decided(100 * n, track(1, BOX)) for n in range(5)))
    result = compared(record, [BOX, FAR])
    assert result.decisions.mean_iou == pytest.approx(0.5)
    assert (result.decisions.recall, result.decisions.precision) == (0.5, 1.0)
    assert (result.detector.mean_iou, result.detector.recall) == (0.0, 0.0)
    assert math.isnan(result.detector.precision)


def test_boxes_where_the_teacher_sees_nobody_are_wrong() -> None:
    record = pictured(*(decided(100 * n, track(1, BOX)) for n in range(5)))
    result = compared(record, [])
    assert result.decisions.precision == 0.0
    assert math.isnan(result.decisions.mean_iou)


def test_boxes_are_moved_to_the_stamp_of_the_picture() -> None:
    moving = track(1, moved(BOX, -10.0), drift=(200.0, 0.0))
    record = pictured(*(decided(100 * n + 50, moving, state=100 * n - 50) for n in range(6)))
    assert compared(record, [BOX]).decisions.mean_iou == pytest.approx(1.0)


def test_only_the_frame_range_for_count() -> None:
    record = pictured(decided(0, track(1, BOX)), decided(400, track(1, FAR)))
    assert compared(record, [BOX], 0, 0).decisions.recall == 1.0
    assert compared(record, [BOX], 4, 4).decisions.recall == 0.0
    silent = compared(record, [BOX], 2, 2)
    assert (silent.frames_without_decision, silent.decisions.recall) == (1, 0.0)


def test_other_things_than_people_are_left_out() -> None:
    record = pictured(
        *(decided(100 * n, track(1, BOX, label='car')) for n in range(5)),
        detected=(Detection(BOX, 0.9, 'car'),),
    )
    result = compared(record, [BOX])
    assert result.decisions.boxes == result.detector.boxes == 0


class Teacher:
    """Sees the same in every picture; counts them, and fails at dark ones."""

    def __init__(self, *detections: Detection) -> None:
        self.pictures = 0
        self._detections = detections

    def detect(self, image) -> DetectorOutput:
        if not image.any():
            raise EncodingError('too dark')
        self.pictures += 1
        return DetectorOutput(self._detections)


def test_a_teacher_looks_at_the_wanted_pictures_only() -> None:
    teacher = Teacher(
        Detection(BOX, TEACHER_SCORE, 'person'),
        Detection(FAR, TEACHER_SCORE - 0.01, 'person'),
        Detection(FAR, 0.9, 'dog'),
    )
    bright, dark = np.ones((4, 4, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)
    pictures = [TimedPicture(at(n), at(n), dark if n == 3 else bright) for n in range(10)]
    shares: list[float] = []
    labels = teacher_labels(pictures, teacher, [at(2), at(3), at(4)], shares.append)
    assert labels == {at(2): [BOX], at(4): [BOX]}
    assert teacher.pictures == 2
    assert shares[-1] == pytest.approx(2 / 3)


def test_a_range_beyond_the_recording_is_refused() -> None:
    record = pictured()
    assert frame_range(record, None, None) == (0, 4)
    assert frame_range(record, 2, 90) == (2, 4)
    with pytest.raises(ReportError, match=r'frames 7 to the last .* holds 5 pictures'):
        frame_range(record, 7, None)

"""Comparison with another detector's boxes, whose answers are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hand_made_truth import BOX, at, decided, moved, run, track
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box, Detection, UnitFeatures
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorOutput
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.report import ReportError
from mmedge_ros.report.pseudo_labels import (
    DETECTOR_SCORE,
    TEACHER_SCORE,
    PseudoLabels,
    compare_with_labels,
    frame_range,
    given_labels,
    read_boxes,
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
    labels = PseudoLabels('teacher', {at(100 * n): list(boxes) for n in range(5)})
    return compare_with_labels(record, labels, first, last)


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
    labels = teacher_labels('t', pictures, teacher, [at(2), at(3), at(4)], shares.append)
    assert labels == PseudoLabels('t', {at(2): [BOX], at(4): [BOX]})
    assert teacher.pictures == 2
    assert shares[-1] == pytest.approx(2 / 3)


def test_a_range_beyond_the_recording_is_refused() -> None:
    record = pictured()
    assert frame_range(record, None, None) == (0, 4)
    assert frame_range(record, 2, 90) == (2, 4)
    with pytest.raises(ReportError, match=r'frames 7 to the last .* holds 5 pictures'):
        frame_range(record, 7, None)


def test_ids_count_people_with_a_box_in_at_least_three_decisions_of_the_range() -> None:
    record = pictured(
        *(
            decided(
                100 * n, track(1, BOX), track(2 if n < 2 else 3, FAR), track(4, FAR, label='car')
            )
            for n in range(5)
        )
    )
    assert compared(record, [BOX]).ids == 2
    assert compared(record, [BOX], 0, 3).ids == 1


def test_given_boxes_are_in_pixels_of_the_recording_and_frames_beyond_it_are_counted() -> None:
    record = replace(pictured(decided(0, track(1, BOX))), picture_scale=2.0)
    large = Box(*(2.0 * edge for edge in BOX))
    labels = given_labels(record, 'boxes.csv', {0: [large], 7: [large]})
    result = compare_with_labels(record, labels)
    assert (result.teacher, result.frames, result.frames_outside) == ('boxes.csv', 1, 1)
    assert result.decisions.mean_iou == 1.0
    with pytest.raises(ReportError, match='give the boxes of this recording'):
        compare_with_labels(record, labels, 1, 3)


def outcome_of(path):
    try:
        return read_boxes(path), None
    except ReportError as err:
        return None, err


def scan(number, stamp_ms, *rows):
    returns = np.array([[*row, 15.0] for row in rows], np.float32).reshape(-1, 5)
    return UnitFeatures('radar', number, at(stamp_ms), at(stamp_ms), 'radar', (), returns=returns)


def radar_matched(scans, **changes) -> tuple[float, int]:
    """Compare a box in the middle of a camera that looks along x from where the radar is."""
    matrix = np.array([[100.0, 0, 50], [0, 100, 50], [0, 0, 1]])
    forward = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    calibrated = {
        'camera': CameraModel(100, 100, matrix, np.zeros(0), 'none'),
        'camera_pose': Transform(forward, np.zeros(3)),
        'radar_pose': Transform.identity(),
        'features': scans,
        'camera_stamps_ns': [at(500)],
    }
    record = replace(run([]), **{**calibrated, **changes})
    labels = given_labels(record, 'boxes.csv', {0: [Box(40, 30, 60, 70)]})
    result = compare_with_labels(record, labels)
    return result.radar_matched, result.radar_boxes


@pytest.mark.parametrize(
    ('scans', 'share'),
    [
        ([scan(0, 500, (5, 0, 0, -0.5))], 1.0),
        ([scan(0, 490, (5, 0, 0, 0.05))], 0.0),  # stands still
        ([scan(0, 501, (5, 0, 0, 0.5)), scan(1, 450, (5, 4, 0, 0.5))], 0.0),  # after the picture
        ([scan(0, 490, (5, 0.5, 0, 0.5))], 0.0),  # on the edge of the box
        ([scan(0, 490, (-5, 0, 0, 0.5))], 0.0),  # behind the camera
        ([scan(0, 450, (5, 0, 0, 0.5)), scan(1, 490)], 1.0),  # last but one scan
        ([scan(0, 440, (5, 0, 0, 0.5)), scan(1, 450), scan(2, 490)], 0.0),  # third to last
    ],
)
def test_a_box_is_radar_matched_by_a_moving_return_strictly_inside(scans, share):
    assert radar_matched(scans) == (share, 1)


@pytest.mark.parametrize(
    ('stamp_ms', 'changes'), [(-1, {}), (490, {'radar_pose': None})], ids=['silent', 'no pose']
)
def test_a_radar_that_cannot_be_compared_has_no_say(stamp_ms, changes):
    share, boxes = radar_matched([scan(0, stamp_ms, (5, 0, 0, 0.5))], **changes)
    assert (math.isnan(share), boxes) == (True, 0)


# ------------------------------------------------------------------- files of boxes


HEADER = 'frame,x0,y0,x1,y1,score\n'


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / 'boxes.csv'
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_boxes(path)

    return read_text


def test_frames_may_read_as_decimals_and_boxes_keep_their_order(read):
    result = read(HEADER + '0.00,1,2,3,4,0.5\n2,1,2,3,4,0.6\n0.00,5,6,7,8.5,1\n')
    assert result == {
        0: [Box(1, 2, 3, 4), Box(5, 6, 7, 8.5)],
        2: [Box(1, 2, 3, 4)],
    }


def test_a_byte_order_mark_windows_lines_and_empty_lines_are_no_harm(read):
    text = '\ufeff' + HEADER.replace('\n', '\r\n') + '3,1,2,3,4,0.5\r\n\r\n'
    assert list(read(text)) == [3]


@pytest.mark.parametrize(
    ('row', 'words'),
    [
        ('x,1,2,3,4,0.5', "frame is 'x'"),
        ('0.5,1,2,3,4,0.5', 'index of a picture'),
        ('-1,1,2,3,4,0.5', 'index of a picture'),
        ('0,1,2,nan,4,0.5', "x1 is 'nan'"),
        ('0,1,2,inf,4,0.5', 'give a number'),
        ('0,1e30,2,3,4,0.5', 'give a number'),
        ('0,3,2,3,4,0.5', 'is empty'),
        ('0,1,9,3,4,0.5', 'is empty'),
        ('0,1,2,3,4,1.5', 'score'),
        ('0,1,2,3,4', '5 values instead of 6'),
        ('0,1,2,3,4,0.5,7', '7 values instead of 6'),
        ('0,' + '9' * 200_000 + ',2,3,4,0.5', 'plain CSV'),
    ],
)
def test_a_line_that_is_no_box_is_named_by_its_number(read, row, words):
    with pytest.raises(ReportError, match='line 3: ') as caught:
        read(HEADER + '0,1,2,3,4,0.5\n' + row + '\n')
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        ('frame,left,top,width,height,score\n', 'line 1: the columns must be frame,x0'),
        ('', 'line 1'),
        (b'\x89PNG\xff\xfe', 'give a CSV file in UTF-8'),
    ],
)
def test_what_is_no_table_of_boxes_is_refused(read, content, words):
    with pytest.raises(ReportError, match=words):
        read(content)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ReportError, match=r'none\.csv: No such file .*; give a CSV file'):
        read_boxes(tmp_path / 'none.csv')


@settings(deadline=None)
@given(text=st.text(alphabet='0123456789.,-+enaif"\n\r\0 ', max_size=60))
def test_foreign_text_gives_boxes_or_a_clear_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp('boxes') / 'boxes.csv'
    path.write_text(HEADER + text, newline='')
    result, error = outcome_of(path)
    if error is None:
        assert all(box.x0 < box.x1 for rows in result.values() for box in rows)
    else:
        assert 'line ' in str(error)

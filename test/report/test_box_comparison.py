"""Comparison with pseudo-labels whose answers are known."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box, Decision, Detection, Track, UnitFeatures
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.report import ReportError
from mmedge_ros.report.box_comparison import (
    compare_with_boxes,
    count_matches,
    read_boxes,
)

MS = 1_000_000
HEADER = 'frame,x0,y0,x1,y1,score\n'
LEFT, RIGHT = Box(100, 100, 200, 300), Box(400, 100, 500, 300)


def outcome_of(read, path):
    try:
        return read(path), None
    except ReportError as err:
        return None, err


def track(number, box, box_velocity=(0.0, 0.0)):
    return Track(
        number,
        'person',
        0.9,
        box,
        np.zeros(3),
        np.zeros(3),
        np.eye(6),
        ('camera',),
        0.0,
        box_velocity,
    )


def decision(state_ms, *tracks):
    state_ns = state_ms * MS
    return Decision(state_ns, state_ns, 'base_link', tracks, {}, published_ns=state_ns)


def run(empty_run, decisions, stamps_ms):
    return replace(
        empty_run, decisions=decisions, camera_stamps_ns=[stamp * MS for stamp in stamps_ms]
    )


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
        0: [(Box(1, 2, 3, 4), 0.5), (Box(5, 6, 7, 8.5), 1.0)],
        2: [((1, 2, 3, 4), 0.6)],
    }


def test_a_byte_order_mark_windows_lines_and_empty_lines_are_no_harm(read):
    text = '\ufeff' + HEADER.replace('\n', '\r\n') + '3,1,2,3,4,0.5\r\n\r\n'
    assert list(read(text)) == [3]


def test_only_a_header_gives_no_boxes(read):
    assert read(HEADER) == {}


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


def test_other_columns_are_refused(read):
    with pytest.raises(ReportError, match='line 1: the columns must be frame,x0'):
        read('frame,left,top,width,height,score\n')


def test_an_empty_file_is_refused(read):
    with pytest.raises(ReportError, match='line 1'):
        read('')


def test_a_picture_is_no_text(read):
    with pytest.raises(ReportError, match='give a CSV file in UTF-8'):
        read(b'\x89PNG\xff\xfe')


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(ReportError, match=r'none\.csv: No such file .*; give a CSV file'):
        read_boxes(tmp_path / 'none.csv')


@settings(deadline=None)
@given(text=st.text(alphabet='0123456789.,-+enaif"\n\r\0 ', max_size=60))
def test_foreign_text_gives_boxes_or_a_clear_error(tmp_path_factory, text):
    path = tmp_path_factory.mktemp('boxes') / 'boxes.csv'
    path.write_text(HEADER + text, newline='')
    result, error = outcome_of(read_boxes, path)
    if error is None:
        assert all(box.x0 < box.x1 for rows in result.values() for box, _ in rows)
    else:
        assert 'line ' in str(error)


def test_each_box_is_matched_once():
    assert count_matches([LEFT], [LEFT, LEFT]) == 1
    assert count_matches([LEFT, LEFT], [LEFT]) == 1
    assert count_matches([], [LEFT]) == count_matches([LEFT], []) == 0


def test_a_pair_above_the_limit_is_not_broken_up_for_a_larger_sum():
    # The best sum of all four (0.90 + 0.18) would leave one pair below the limit.
    given = [Box(0, 0, 10, 100), Box(0, 37, 10, 137)]
    result = [Box(0, -32, 10, 68), Box(0, 5, 10, 105)]
    assert count_matches(given, result) == 2


def test_coverage_and_precision_count_boxes_of_all_frames(empty_run):
    decisions = [
        decision(0, track(1, LEFT), track(2, Box(0, 0, 10, 10))),
        decision(100, track(1, LEFT), track(2, RIGHT)),
    ]
    boxes = {0: [(LEFT, 0.9), (RIGHT, 0.9)], 1: [(LEFT, 0.9), (RIGHT, 0.9)]}
    result = compare_with_boxes(run(empty_run, decisions, [0, 100]), boxes)
    assert (result.boxes, result.track_boxes, result.frames) == (4, 4, 2)
    assert result.coverage == 0.75
    assert result.precision == 0.75


def test_every_frame_asks_the_nearest_decision(empty_run):
    decisions = [decision(0, track(1, LEFT)), decision(100, track(1, RIGHT))]
    boxes = {0: [(LEFT, 1.0)], 1: [(LEFT, 1.0)], 2: [(RIGHT, 1.0)]}
    result = compare_with_boxes(run(empty_run, decisions, [0, 49, 51]), boxes)
    assert result.coverage == 1.0


def test_boxes_are_moved_to_the_stamp_of_the_picture(empty_run):
    still = run(empty_run, [decision(0, track(1, LEFT))], [80])
    moving = run(empty_run, [decision(0, track(1, LEFT, (1000.0, -500.0)))], [80])
    boxes = {0: [(Box(180, 60, 280, 260), 1.0)]}
    assert compare_with_boxes(still, boxes).coverage == 0.0
    assert compare_with_boxes(moving, boxes).coverage == 1.0


def test_a_picture_without_a_decision_within_one_stride_is_missed(empty_run):
    record = run(empty_run, [decision(0, track(1, LEFT))], [100, 101])
    result = compare_with_boxes(record, {0: [(LEFT, 1.0)], 1: [(LEFT, 1.0)]})
    assert result.frames_without_decision == 1
    assert result.coverage == 0.5
    assert result.precision == 1.0


def test_without_decisions_nothing_is_covered_and_there_is_no_precision(empty_run):
    result = compare_with_boxes(run(empty_run, [], [0]), {0: [(LEFT, 1.0)]})
    assert result.coverage == 0.0
    assert math.isnan(result.precision)
    assert math.isnan(result.radar_matched)
    assert math.isnan(result.range_rel_median)


def test_a_track_the_camera_does_not_see_has_no_box_to_be_wrong(empty_run):
    record = run(empty_run, [decision(0, track(1, LEFT), track(2, None))], [0])
    assert compare_with_boxes(record, {0: [(LEFT, 1.0)]}).precision == 1.0


def test_ids_count_those_with_a_box_in_at_least_three_decisions_of_the_range(empty_run):
    decisions = [
        decision(ms, track(1, LEFT), *([track(2, RIGHT)] if ms < 200 else [track(3, None)]))
        for ms in range(0, 500, 100)
    ]
    record = run(empty_run, decisions, [0, 400])
    boxes = {0: [(LEFT, 1.0)], 1: [(LEFT, 1.0)]}
    assert compare_with_boxes(record, boxes).ids == 1
    assert compare_with_boxes(record, boxes, 0, 0).ids == 0


def test_only_frames_of_the_range_are_compared(empty_run):
    record = run(empty_run, [decision(0, track(1, LEFT))], [0, 10, 20])
    boxes = {0: [(RIGHT, 1.0)], 1: [(LEFT, 1.0)], 2: [(RIGHT, 1.0)]}
    result = compare_with_boxes(record, boxes, 1, 1)
    assert (result.coverage, result.first_frame, result.last_frame) == (1.0, 1, 1)


def test_frames_beyond_the_recording_are_counted_and_left_out(empty_run):
    record = run(empty_run, [decision(0, track(1, LEFT))], [0])
    result = compare_with_boxes(record, {0: [(LEFT, 1.0)], 7: [(LEFT, 1.0)]})
    assert (result.frames, result.frames_outside, result.coverage) == (1, 1, 1.0)


@pytest.mark.parametrize(('first', 'last'), [(5, None), (1, 0), (None, -1)])
def test_a_range_without_frames_is_an_error(empty_run, first, last):
    record = run(empty_run, [decision(0, track(1, LEFT))], [0])
    with pytest.raises(ReportError, match='give the boxes of this recording'):
        compare_with_boxes(record, {0: [(LEFT, 1.0)]}, first, last)


def scan(number, stamp_ms, *rows):
    returns = np.array([[*row, 15.0] for row in rows], np.float32).reshape(-1, 5)
    stamp_ns = stamp_ms * MS
    return UnitFeatures('radar', number, stamp_ns, stamp_ns, 'radar', (), returns=returns)


@pytest.fixture
def calibrated(empty_run):
    """A camera that looks along x from the origin, where the radar is too."""
    matrix = np.array([[100.0, 0, 50], [0, 100, 50], [0, 0, 1]])
    forward = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
    return replace(
        empty_run,
        camera=CameraModel(100, 100, matrix, np.zeros(0), 'none'),
        camera_pose=Transform(forward, np.zeros(3)),
        radar_pose=Transform.identity(),
        camera_stamps_ns=[100 * MS],
    )


MIDDLE = {0: [(Box(40, 30, 60, 70), 1.0)]}


@pytest.mark.parametrize(
    ('scans', 'share'),
    [
        ([scan(0, 90, (5, 0, 0, 0.5))], 1.0),
        ([scan(0, 100, (5, 0, 0, -0.5))], 1.0),
        ([scan(0, 90, (5, 0, 0, 0.05))], 0.0),  # stands still
        ([scan(0, 101, (5, 0, 0, 0.5)), scan(1, 50, (5, 4, 0, 0.5))], 0.0),  # after the picture
        ([scan(0, 90, (5, 0.5, 0, 0.5))], 0.0),  # on the edge of the box
        ([scan(0, 90, (-5, 0, 0, 0.5))], 0.0),  # behind the camera
        ([scan(0, 50, (5, 0, 0, 0.5)), scan(1, 90)], 1.0),  # last but one scan
        ([scan(0, 40, (5, 0, 0, 0.5)), scan(1, 50), scan(2, 90)], 0.0),  # third to last
    ],
)
def test_a_box_is_radar_matched_by_a_moving_return_strictly_inside(calibrated, scans, share):
    result = compare_with_boxes(replace(calibrated, features=scans), MIDDLE)
    assert (result.radar_matched, result.radar_boxes) == (share, 1)


def test_a_radar_that_fell_silent_is_not_asked(calibrated):
    record = replace(calibrated, features=[scan(0, -401, (5, 0, 0, 0.5))])
    result = compare_with_boxes(record, MIDDLE)
    assert result.radar_boxes == 0
    assert math.isnan(result.radar_matched)


def test_the_radar_has_no_say_without_calibration(calibrated):
    record = replace(calibrated, features=[scan(0, 90, (5, 0, 0, 0.5))], radar_pose=None)
    assert math.isnan(compare_with_boxes(record, MIDDLE).radar_matched)


def test_the_range_error_compares_radar_depth_with_the_one_from_box_height(calibrated):
    # 100 px x 1.68 m / 42 px = 4 m by height; the radar says 5 m,
    # which is the near side of a body whose middle is 0.1 m behind.
    detection = Detection(Box(40, 30, 60, 72), 0.9, 'person')
    camera = UnitFeatures('camera', 0, 100 * MS, 100 * MS, 'c', (), detections=(detection,))
    record = replace(calibrated, features=[camera, scan(0, 100, (5, 0, 0, 0.5))])
    result = compare_with_boxes(record, MIDDLE)
    assert result.range_samples == 1
    assert result.range_rel_median == pytest.approx(0.275, rel=1e-4)


def test_the_synthetic_run_agrees_with_its_own_boxes(build_run):
    record = build_run(4.0)
    cameras = [unit for unit in record.features if unit.modality == 'camera']
    boxes = {unit.sequence: [(d.box, d.score) for d in unit.detections] for unit in cameras}
    result = compare_with_boxes(record, boxes, 10)
    assert result.coverage > 0.97
    assert result.precision > 0.97
    assert result.ids == 2
    assert result.radar_matched > 0.8
    assert result.range_rel_median < 0.05


def test_the_pseudo_labels_of_the_night_recording_are_read(data_folder):
    boxes = read_boxes(data_folder / 'millieye/20200729-213410_auto_person_boxes_yoloxnano.csv')
    assert (len(boxes), sum(map(len, boxes.values()))) == (401, 1106)
    assert min(boxes) == 0
    assert max(boxes) == 400

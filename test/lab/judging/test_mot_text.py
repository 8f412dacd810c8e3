"""MOTChallenge text as it should be, as it is found, and as nobody should write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging.mot_text import (
    NO_CLASS,
    MotBoxes,
    read_mot_text,
    scores,
    write_mot_text,
)
from mmedge_ros.report import ReportError

LINE = '1,3,11,21,40,100,0.9,-1,-1,-1\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / 'boxes.txt'


def read(file: Path, text: str | bytes) -> MotBoxes:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_mot_text(file)


# ------------------------------------------------------------------------------ reading


def test_a_line_is_a_box_in_pixels_that_begin_at_nought(file: Path) -> None:
    boxes = read(file, LINE)
    assert (boxes.frames.tolist(), boxes.ids.tolist()) == ([1], [3])
    assert boxes.boxes.tolist() == [[10.0, 20.0, 50.0, 120.0]]
    assert (boxes.confidences.tolist(), boxes.classes.tolist()) == ([0.9], [NO_CLASS])


def test_lines_may_come_in_any_order_and_stay_in_it_within_a_frame(file: Path) -> None:
    rows = [(9, 1), (2, 7), (9, 5), (2, 4)]
    boxes = read(file, ''.join(f'{frame},{n},1,1,5,5,1,-1,-1,-1\n' for frame, n in rows))
    assert boxes.frames.tolist() == [2, 2, 9, 9]
    assert boxes.ids.tolist() == [7, 4, 1, 5]
    assert boxes.by_frame() == {2: slice(0, 2), 9: slice(2, 4)}


@pytest.mark.parametrize(
    'text',
    [
        '\ufeff' + LINE,
        LINE.replace('\n', '\r\n'),
        LINE.replace(',', ', '),
        '\n\n' + LINE + '\n',
        LINE.strip(),
        LINE.replace('\n', ',\n'),
        '1.0,3.00,1.1e1,21,40,100,0.9,-1,-1,-1',
        '1,3,11,21,40,100,0.9',
    ],
)
def test_files_as_they_are_found_are_read(file: Path, text: str) -> None:
    boxes = read(file, text)
    assert boxes.boxes.tolist() == [[10.0, 20.0, 50.0, 120.0]]
    assert (boxes.frames[0], boxes.ids[0], boxes.confidences[0]) == (1, 3, 0.9)


def test_nine_columns_are_ground_truth_with_classes(file: Path) -> None:
    boxes = read(file, '1,3,11,21,40,100,0,8,0.5\n2,3,11,21,40,100,1,1,1\n')
    assert (boxes.confidences.tolist(), boxes.classes.tolist()) == ([0, 1], [8, 1])


@pytest.mark.parametrize('text', ['', '\n\n', ',,,\n'])
def test_a_file_without_a_line_holds_no_box(file: Path, text: str) -> None:
    boxes = read(file, text)
    assert len(boxes) == 0
    assert boxes.by_frame() == {}


def test_boxes_without_area_are_counted_and_said(file: Path) -> None:
    boxes = read(file, '1,1,5,5,0,10,1\n1,2,5,5,10,0,1\n1,3,5,5,10,10,1\n')
    assert len(boxes) == 3
    assert boxes.notes == (f'{file}: 2 boxes have no area and meet nothing',)


# ------------------------------------------------------------------------------ refusing


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('1,3,11,21,40\n', r'line 1: 5 columns'),
        ('1,3,11,21,40,100,1,1,1,1,1\n', r'line 1: 11 columns'),
        ('frame,id,x,y,w,h,conf\n', r"line 1: frame is 'frame'"),
        ('1 3 11 21 40 100 1\n', r'line 1: 1 columns'),
        (LINE + '2,3,11,21,40,100,0.9\n', r'line 2: 7 columns, where the lines before have 10'),
        (LINE + '\n' + '2,3,nan,21,40,100,0.9,-1,-1,-1\n', r"line 3: left is 'nan'"),
        ('1,3,11,inf,40,100,1\n', r"line 1: top is 'inf'"),
        ('1,3,11,21,40,1e300,1\n', r"line 1: height is '1e300'"),
        ('1,3,11,21,40,100,nan\n', r"line 1: confidence is 'nan'"),
        ('1,3,11,21,,100,1\n', r"line 1: width is ''"),
        ('1,3,11,21,-40,100,1\n', r'line 1: the box is -40 x 100 px'),
        ('1,3,11,21,40,-1,1\n', r'line 1: the box is 40 x -1 px'),
        ('1.5,3,11,21,40,100,1\n', r"line 1: frame is '1.5'; give a whole number"),
        ('-1,3,11,21,40,100,1\n', r"line 1: frame is '-1'"),
        ('1000000001,3,11,21,40,100,1\n', r'line 1: frame is'),
        ('1e300,3,11,21,40,100,1\n', r'line 1: frame is'),
        ('1,-2,11,21,40,100,1\n', r"line 1: id is '-2'"),
        ('1,3.5,11,21,40,100,1\n', r"line 1: id is '3.5'"),
        ('1,3,11,21,40,100,1,car,1\n', r"line 1: class is 'car'"),
        (LINE + LINE, r'line 2: id 3 is in frame 1 already, in line 1'),
        ('2' + LINE[1:] + LINE + '2' + LINE[1:], r'line 3: id 3 is in frame 2 already, in line 1'),
        (1001 * '7,-1,5,5,10,10,1\n', r'frame 7 has 1001 boxes; at most 1000'),
        (LINE.encode() + b'\xff\xfe\x00', r'line 2: no text but bytes'),
        (b'\x89PNG\r\n\x1a\n\x00\x00', r'line 1: no text but bytes'),
        (100 * b'\x00', r'line 1: 1 columns'),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_a_line_that_holds_no_box_is_named(file: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(ReportError, match=words) as caught:
        read(file, text)
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(file))


@pytest.mark.parametrize('name', ['none.txt', '.', 'a\x00b'])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError, match='give a text file with the columns'):
        read_mot_text(tmp_path / name)


@given(data=st.one_of(st.binary(max_size=200), st.text('0123456789.,-e+\n nainf', max_size=200)))
def test_whatever_a_file_holds_it_is_read_or_refused(
    data: str | bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / 'whatever.txt'
    try:
        boxes = read(file, data)
    except ReportError:
        return
    assert np.isfinite(boxes.boxes).all()
    assert (boxes.boxes[:, 2:] >= boxes.boxes[:, :2]).all()


# ------------------------------------------------------------------------------ writing


def test_what_was_written_is_read_again(file: Path) -> None:
    rows = [[1, 4, 0.5, 1.25, 30.0, 99.75, 0.5, NO_CLASS], [9, 2, -3.0, 0.0, 5.0, 7.5, 1, -1]]
    write_mot_text(file, MotBoxes.from_rows(rows))
    again = read_mot_text(file)
    assert again.frames.tolist() == [1, 9]
    assert again.ids.tolist() == [4, 2]
    np.testing.assert_allclose(again.boxes, [row[2:6] for row in rows])
    assert file.read_text().startswith('1,4,1.50,2.25,29.50,98.50,0.5000,-1,-1,-1\n')


# ------------------------------------------------------------------------------ scores


@pytest.mark.parametrize(
    ('confidences', 'expected'),
    [
        ([0.5, 0.9, 1.0], [0.5, 0.9, 1.0]),
        ([-1.0, -1.0], [1.0, 1.0]),
        ([1.0, 1.0], [1.0, 1.0]),
        ([25.0, 50.0, 100.0], [0.25, 0.5, 1.0]),
        ([0.0, 1.0, -1.0], [0.5, 0.731059, 0.268941]),
        ([-1e300, 1e300], [0.0, 1.0]),
        ([], []),
    ],
)
def test_confidences_of_any_scale_become_scores(
    confidences: list[float], expected: list[float]
) -> None:
    result, words = scores(np.array(confidences))
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert words

"""MOTChallenge text: one box of one object in one picture per line.

``frame,id,left,top,width,height,confidence,x,y,z`` in pixels, the upper left pixel of a
picture being (1, 1) (Leal-Taixe et al., "MOTChallenge 2015", section 3.2). Ground truth of
2016 and later has nine columns, the last three being flag, class and visibility. Boxes in
memory are corners in our own pixels, of which the upper left one is (0, 0).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.report import ReportError
from mmedge_ros.report.mot_metrics import NO_ID
from mmedge_ros.report.report_files import write_files

COLUMNS = 'frame,id,left,top,width,height,confidence,x,y,z'
# A picture with more boxes is no picture of people, and would take minutes to assign.
MOST_BOXES_PER_FRAME = 1000
LARGEST_FRAME = 1_000_000_000
# No class is given.
NO_CLASS = -1

_ORIGIN = 1.0
_ROW_LENGTH = 8
_FEWEST_COLUMNS, _MOST_COLUMNS = 6, 10
_CLASS_COLUMNS = 9
_LARGEST_PIXEL = 1e6
_LARGEST_ID = 2**53
_LARGEST_FILE = 256 << 20

IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MotBoxes:
    """Boxes of a sequence, in the order of frames and within a frame as they were written.

    ``frames`` (N,), ``ids`` (N,) with `NO_ID` where it is unknown, ``boxes`` (N, 4) x0, y0,
    x1, y1 in px, ``confidences`` (N,) on whatever scale the file has, ``classes`` (N,) with
    `NO_CLASS` where the file has none. ``notes`` list what was tolerated.
    """

    frames: IntArray
    ids: IntArray
    boxes: FloatArray
    confidences: FloatArray
    classes: IntArray
    notes: tuple[str, ...] = ()

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[float]], notes: Sequence[str] = ()) -> MotBoxes:
        """Make from rows of frame, id, x0, y0, x1, y1, confidence, class."""
        return cls.from_table(np.array(rows, np.float64).reshape(-1, _ROW_LENGTH), notes)

    @classmethod
    def from_table(cls, table: FloatArray, notes: Sequence[str] = ()) -> MotBoxes:
        """Make from an array (N, 8) of such rows; whole numbers up to 2^53 are exact."""
        table = table[np.argsort(table[:, 0], kind='stable')]
        whole = table[:, [0, 1, 7]].astype(np.int64)
        return cls(whole[:, 0], whole[:, 1], table[:, 2:6], table[:, 6], whole[:, 2], tuple(notes))

    def __len__(self) -> int:
        return len(self.frames)

    def select(self, keep: NDArray[np.bool_]) -> MotBoxes:
        """Return the boxes marked in ``keep`` (N,)."""
        return MotBoxes(
            self.frames[keep],
            self.ids[keep],
            self.boxes[keep],
            self.confidences[keep],
            self.classes[keep],
            self.notes,
        )

    def by_frame(self) -> dict[int, slice]:
        """Return where each frame's boxes lie; frames without boxes are not in it."""
        frames, starts = np.unique(self.frames, return_index=True)
        bounds = [*starts.tolist(), len(self)]
        return {
            frame: slice(start, end)
            for frame, (start, end) in zip(frames.tolist(), pairwise(bounds), strict=True)
        }


def read_mot_text(path: Path) -> MotBoxes:
    """Read a MOTChallenge file: ground truth, detections or a tracker's output.

    Lines may come in any order and numbers may read ``3.0``. Six to ten columns are read, as
    many in each line as in the first; a confidence that is not there is 1. A file without a
    line holds no box, which for a tracker's output is an answer.

    :raises ReportError: for a file that cannot be read or a line that holds no box; the
        message holds the line number
    """
    numbers, lines = array('d'), array('q')
    columns = 0
    for number, line in enumerate(_text(path).split('\n'), 1):
        fields = line.rstrip(', \t\r').split(',')
        if fields == ['']:
            continue
        place = f'{path}, line {number}'
        columns = columns or _count_columns(fields, place)
        numbers.extend(_row(fields, columns, place))
        lines.append(number)
    table = np.frombuffer(numbers, np.float64).reshape(-1, _ROW_LENGTH)
    _check_frames(table, np.frombuffer(lines, np.int64), path)
    empty = np.count_nonzero((table[:, 2] == table[:, 4]) | (table[:, 3] == table[:, 5]))
    notes = [f'{path}: {empty} boxes have no area and meet nothing'] if empty else []
    return MotBoxes.from_table(table, notes)


def write_mot_text(path: Path, boxes: MotBoxes) -> None:
    """Write the ten columns of a tracker's output; an existing file is replaced as a whole.

    :raises ReportError: when the file cannot be written
    """
    corners = boxes.boxes.tolist()
    rows = zip(
        boxes.frames.tolist(), boxes.ids.tolist(), corners, boxes.confidences.tolist(), strict=True
    )
    lines = [
        f'{frame},{number},{x0 + _ORIGIN:.2f},{y0 + _ORIGIN:.2f},'
        f'{x1 - x0:.2f},{y1 - y0:.2f},{confidence:.4f},-1,-1,-1\n'
        for frame, number, (x0, y0, x1, y1), confidence in rows
    ]
    write_files(path.parent, {path.name: ''.join(lines).encode()})


def scores(confidences: FloatArray) -> tuple[FloatArray, str]:
    """Bring the confidences of a file of detections to 0..1, and say how in words.

    Where all are equal every box scores 1; numbers within 0..1 are taken as they are; larger
    ones as shares of the largest; where some are negative they are margins (0 being the
    detector's own limit), whose logistic function is the score.
    """
    if not len(confidences):
        return confidences, 'there are none'
    low, high = float(confidences.min()), float(confidences.max())
    if low == high:
        return np.ones_like(confidences), f'all are {low:g}: every box is believed'
    if low < 0.0:
        # Beyond +-50 nothing changes but the risk of an overflow.
        margins = np.clip(confidences, -50.0, 50.0)
        return 1.0 / (1.0 + np.exp(-margins)), 'some are negative: taken as margins'
    if high > 1.0:
        return confidences / high, f'taken as shares of the largest, {high:g}'
    return confidences, 'taken as they are'


def _text(path: Path) -> str:
    remedy = f'give a text file with the columns {COLUMNS}'
    content = read_bounded(path, _LARGEST_FILE, ReportError, remedy)
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as err:
        raise ReportError(
            f'{path}, line {content.count(10, 0, err.start) + 1}: no text but bytes; {remedy}'
        ) from err


def _count_columns(fields: Sequence[str], place: str) -> int:
    if not _FEWEST_COLUMNS <= len(fields) <= _MOST_COLUMNS:
        raise ReportError(
            f'{place}: {len(fields)} columns in {",".join(fields)[:30]!r}; a line of '
            f'MOTChallenge text has {_FEWEST_COLUMNS} to {_MOST_COLUMNS}: {COLUMNS}'
        )
    return len(fields)


def _row(fields: Sequence[str], columns: int, place: str) -> list[float]:
    """Return frame, id, x0, y0, x1, y1, confidence, class."""
    if len(fields) != columns:
        raise ReportError(
            f'{place}: {len(fields)} columns, where the lines before have {columns}; correct or '
            'remove the line'
        )
    names = COLUMNS.split(',')
    frame = _whole(fields[0], 'frame', 0, LARGEST_FRAME, place)
    number = _whole(fields[1], 'id', NO_ID, _LARGEST_ID, place)
    left, top, width, height = (
        _number(text, name, place, _LARGEST_PIXEL)
        for text, name in zip(fields[2:6], names[2:6], strict=True)
    )
    if width < 0.0 or height < 0.0:
        raise ReportError(
            f'{place}: the box is {width:g} x {height:g} px; give its width and height, both '
            'positive'
        )
    confidence = _number(fields[6], 'confidence', place) if columns > _FEWEST_COLUMNS else 1.0
    kind = NO_CLASS
    if columns == _CLASS_COLUMNS:
        kind = _whole(fields[7], 'class', NO_CLASS, _LARGEST_ID, place)
    x0, y0 = left - _ORIGIN, top - _ORIGIN
    return [frame, number, x0, y0, x0 + width, y0 + height, confidence, kind]


def _number(text: str, name: str, place: str, largest: float = math.inf) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > largest:
        limit = f' of at most {largest:.0f}' if math.isfinite(largest) else ''
        raise ReportError(f'{place}: {name} is {text[:40]!r}; give a number{limit}')
    return value


def _whole(text: str, name: str, least: int, largest: int, place: str) -> int:
    value = _number(text, name, place)
    if value != int(value) or not least <= value <= largest:
        raise ReportError(
            f'{place}: {name} is {text[:40]!r}; give a whole number from {least} to {largest}'
        )
    return int(value)


def _check_frames(table: FloatArray, lines: IntArray, path: Path) -> None:
    """Refuse an object that is twice in one frame, and frames too full to be of a picture."""
    order = np.lexsort((lines, table[:, 1], table[:, 0]))
    keys = table[order, :2]
    again = np.flatnonzero((keys[1:] == keys[:-1]).all(axis=1) & (keys[1:, 1] != NO_ID))
    if len(again):
        frame, number = keys[again[0]]
        first, second = lines[order[again[0] : again[0] + 2]]
        raise ReportError(
            f'{path}, line {second}: id {number:.0f} is in frame {frame:.0f} already, in line '
            f'{first}; an object has one box per frame'
        )
    frames, counts = np.unique(table[:, 0], return_counts=True)
    if np.any(counts > MOST_BOXES_PER_FRAME):
        fullest = int(np.argmax(counts))
        raise ReportError(
            f'{path}: frame {frames[fullest]:.0f} has {counts[fullest]} boxes; at most '
            f'{MOST_BOXES_PER_FRAME} are taken'
        )

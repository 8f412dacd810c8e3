"""Judges a run by the people that another detector, a teacher, sees in the same pictures.

For recordings without labels. The teacher's boxes are pseudo-labels, not ground truth:
agreement says how well a run keeps up with the teacher, and where the teacher is wrong a right
box counts as wrong.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Box, Decision, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.replay.ground_truth import PERSON
from mmedge_ros.report import ReportError
from mmedge_ros.report.mot_metrics import share
from mmedge_ros.report.run_overlay import RadarScans, sensor_geometry
from mmedge_ros.report.truth_matching import best_overlaps, met_pairs
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.tracking.return_placement import place_returns

# What a teacher is less sure of is no label.
TEACHER_SCORE = 0.35
# Of the detector alone, as wherever detectors are judged; a tracker also uses weaker boxes.
DETECTOR_SCORE = 0.25
# An id seen in fewer decisions is a flicker, not a person who was tracked.
MINIMUM_DECISIONS = 3
COLUMNS = ('frame', 'x0', 'y0', 'x1', 'y1', 'score')
_LARGEST = 1e6
_LARGEST_BYTES = 50_000_000


class FindsObjects(Protocol):
    """A detector, as far as it is judged."""

    def detect(self, image: Image) -> DetectorOutput: ...


class SeenPicture(Protocol):
    """A picture and its stamp."""

    @property
    def stamp_ns(self) -> int: ...

    @property
    def picture(self) -> Image: ...


class PseudoLabels(NamedTuple):
    """Boxes of people by the stamp of their picture, and the name of the teacher they are from.

    Boxes are in px of the pictures that were replayed. ``outside`` counts the labelled frames that
    the recording does not hold.
    """

    teacher: str
    boxes: Mapping[int, Sequence[Box]]
    outside: int = 0


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

    ``labels`` are the teacher's boxes in ``frames`` pictures from ``first_frame`` to
    ``last_frame``. At ``frames_without_decision`` no decision was within one stride; their labels
    count as missed by decisions. ``frames_outside`` are not in the recording, and left out.
    ``ids`` are the tracks of people with a box in at least 3 decisions of the range.
    ``radar_matched`` is the share of the ``radar_boxes`` labels (those at most a window after a
    radar scan) that hold a moving return of the last two scans, NaN where there is none.
    """

    teacher: str
    first_frame: int
    last_frame: int
    frames: int
    labels: int
    frames_without_decision: int
    frames_outside: int
    decisions: LabelAgreement
    detector: LabelAgreement
    ids: int
    radar_matched: float
    radar_boxes: int


def read_boxes(path: Path) -> dict[int, list[Box]]:
    """Read boxes of people: CSV with the columns frame, x0, y0, x1, y1 (px) and score.

    A frame is the index of a picture in the recording and may read ``12.00``.

    :raises ReportError: for a file that cannot be read or a line that holds no box; the
        message holds the line number
    """
    remedy = f'give a CSV file of one recording with the columns {",".join(COLUMNS)}'
    content = read_bounded(path, _LARGEST_BYTES, ReportError, remedy)
    try:
        text = content.decode('utf-8-sig')
    except UnicodeDecodeError as err:
        raise ReportError(
            f'{path}: no text but bytes at offset {err.start}; give a CSV file in UTF-8'
        ) from err
    reader = csv.reader(io.StringIO(text, newline=''))
    boxes: dict[int, list[Box]] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        if tuple(header) != COLUMNS:
            raise ReportError(
                f'{path}, line 1: the columns must be {",".join(COLUMNS)}, '
                f'not {",".join(header)[:80]!r}'
            )
        for row in reader:
            if row:
                frame, box = _box(row, f'{path}, line {reader.line_num}')
                boxes.setdefault(frame, []).append(box)
    except csv.Error as err:
        raise ReportError(
            f'{path}, line {reader.line_num}: {err}; write the file anew as plain CSV'
        ) from err
    return boxes


def _box(row: Sequence[str], place: str) -> tuple[int, Box]:
    if len(row) != len(COLUMNS):
        raise ReportError(
            f'{place}: {len(row)} values instead of {len(COLUMNS)} ({",".join(COLUMNS)}); '
            f'correct or remove the line'
        )
    values = []
    for name, text in zip(COLUMNS, row, strict=True):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not abs(value) <= _LARGEST:
            raise ReportError(
                f'{place}: {name} is {text[:40]!r}; give a number of at most {_LARGEST:.0f}'
            )
        values.append(value)
    frame, x0, y0, x1, y1, score = values
    if frame < 0 or frame != int(frame):
        raise ReportError(
            f'{place}: frame is {row[0]!r}; give the index of a picture, from 0 upwards'
        )
    if x1 <= x0 or y1 <= y0:
        raise ReportError(
            f'{place}: the box {x0:g},{y0:g},{x1:g},{y1:g} is empty; give x0 < x1 and y0 < y1'
        )
    if not 0.0 <= score <= 1.0:
        raise ReportError(f'{place}: score is {row[5]!r}; give a number from 0 to 1')
    return int(frame), Box(x0, y0, x1, y1)


def given_labels(record: RunRecord, name: str, boxes: Mapping[int, Sequence[Box]]) -> PseudoLabels:
    """Return boxes as `read_boxes` gives them as pseudo-labels of a run.

    :param name: what they are called
    """
    stamps, scale = record.camera_stamps_ns, record.picture_scale
    inside = {
        stamps[frame]: [Box(*(edge / scale for edge in box)) for box in of]
        for frame, of in boxes.items()
        if frame < len(stamps)
    }
    return PseudoLabels(name, inside, sum(frame >= len(stamps) for frame in boxes))


def teacher_labels(
    name: str,
    pictures: Iterable[SeenPicture],
    teacher: FindsObjects,
    stamps_ns: Sequence[int],
    on_progress: Callable[[float], None] | None = None,
) -> PseudoLabels:
    """Return the people a teacher detects.

    :param name: what the teacher is called
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
    return PseudoLabels(name, labels)


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


def compare_with_labels(
    record: RunRecord,
    labels: PseudoLabels,
    first_frame: int | None = None,
    last_frame: int | None = None,
) -> PseudoLabelComparison:
    """Compare the boxes of decisions, and those of the detector alone, with pseudo-labels.

    A decision answers for the picture its state time is nearest to, within one stride; its
    boxes are moved to the picture's stamp by their own velocities.

    :param first_frame: first picture to compare; None = the first one
    :param last_frame: last picture to compare, inclusive; None = the last one
    :raises ReportError: if no picture of the range is labelled
    """
    first, last = frame_range(record, first_frame, last_frame)
    stamps = [s for s in record.camera_stamps_ns[first : last + 1] if s in labels.boxes]
    if not stamps:
        raise ReportError(
            f'none of the frames {first} to {last} of the recording is labelled; give the boxes '
            'of this recording or another range with --frames'
        )
    given = [labels.boxes[stamp] for stamp in stamps]
    nearest = zip(stamps, _decisions_near(record, stamps), strict=True)
    decided = [
        None if decision is None else _people_at(decision, stamp_ns)
        for stamp_ns, decision in nearest
    ]
    detected = _detected_boxes(record)
    matched, radar_boxes = _radar_matches(record, stamps, given)
    return PseudoLabelComparison(
        labels.teacher,
        first,
        last,
        len(stamps),
        sum(map(len, given)),
        sum(boxes is None for boxes in decided),
        labels.outside,
        _agreement(given, [boxes or [] for boxes in decided]),
        _agreement(given, [detected.get(stamp, []) for stamp in stamps]),
        _count_ids(record.decisions, stamps[0], stamps[-1]),
        share(matched, radar_boxes),
        radar_boxes,
    )


def _decisions_near(record: RunRecord, stamps_ns: Sequence[int]) -> list[Decision | None]:
    """Return the decision whose state time is nearest to each stamp, None beyond one stride."""
    decisions = sorted(record.decisions, key=lambda decision: decision.state_ns)
    states = [decision.state_ns for decision in decisions]
    nearest: list[Decision | None] = []
    for stamp_ns in stamps_ns:
        place = bisect_left(states, stamp_ns)
        near = decisions[max(place - 1, 0) : place + 1]
        best = min(near, key=lambda d: abs(d.state_ns - stamp_ns), default=None)
        if best is not None and abs(best.state_ns - stamp_ns) > record.stride * NS_PER_S + 1:
            best = None
        nearest.append(best)
    return nearest


def _agreement(given: Sequence[Sequence[Box]], shown: Sequence[Sequence[Box]]) -> LabelAgreement:
    overlaps: list[float] = []
    hits = 0
    for labels, boxes in zip(given, shown, strict=True):
        people, found = _box_array(labels), _box_array(boxes)
        overlaps += best_overlaps(people, found).tolist()
        hits += len(met_pairs(people, found)[0])
    total = sum(map(len, shown))
    mean_iou = share(sum(overlaps), len(overlaps))
    return LabelAgreement(mean_iou, share(hits, len(overlaps)), share(hits, total), total)


def _box_array(boxes: Sequence[Box]) -> FloatArray:
    return np.array(boxes, np.float64).reshape(-1, 4)


def _people_at(decision: Decision, stamp_ns: int) -> list[Box]:
    elapsed = (stamp_ns - decision.state_ns) / NS_PER_S
    boxes = (track.box_at(elapsed) for track in decision.tracks if track.label == PERSON)
    return [box for box in boxes if box is not None]


def _detected_boxes(record: RunRecord) -> dict[int, list[Box]]:
    return {
        unit.stamp_ns: [
            d.box for d in unit.detections if d.label == PERSON and d.score >= DETECTOR_SCORE
        ]
        for unit in record.features
        if unit.modality == CAMERA
    }


def _count_ids(decisions: Sequence[Decision], first_ns: int, last_ns: int) -> int:
    seen = Counter(
        track.id
        for decision in decisions
        if first_ns <= decision.state_ns <= last_ns
        for track in decision.tracks
        if track.box is not None and track.label == PERSON
    )
    return sum(count >= MINIMUM_DECISIONS for count in seen.values())


def _radar_matches(
    record: RunRecord, stamps_ns: Sequence[int], given: Sequence[Sequence[Box]]
) -> tuple[int, int]:
    """Return the given boxes that hold a moving return, and those that could hold one."""
    geometry = sensor_geometry(record)
    if geometry is None:
        return 0, 0
    scans, moving_speed = RadarScans(record), DecisionFusionParameters().moving_speed
    matched = compared = 0
    for stamp_ns, boxes in zip(stamps_ns, given, strict=True):
        recent = scans.before(stamp_ns)
        if not recent:
            continue
        returns = place_returns(recent, stamp_ns, geometry, moving_speed)
        pixels = returns.pixels[returns.in_view]
        for box in boxes:
            low, high = np.array(box[:2]), np.array(box[2:])
            matched += bool(((pixels > low) & (pixels < high)).all(axis=1).any())
        compared += len(boxes)
    return matched, compared

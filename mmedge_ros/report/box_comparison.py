"""Comparison of a run with given boxes of its pictures.

The boxes come from another detector, not from annotators: they are pseudo-labels, and agreement
with them says how well a run keeps up with that detector, not how right it is.
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, FloatArray, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.report import ReportError
from mmedge_ros.report.mot_metrics import share
from mmedge_ros.report.radar_depths import RadarScans, radar_set_depths, sensor_geometry
from mmedge_ros.report.truth_matching import met_pairs
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.tracking.return_placement import place_returns

# An id seen in fewer decisions is a flicker, not a person who was tracked.
MINIMUM_DECISIONS = 3
COLUMNS = ('frame', 'x0', 'y0', 'x1', 'y1', 'score')
_LARGEST = 1e6
_LARGEST_BYTES = 50_000_000

PseudoLabels = Mapping[int, Sequence[tuple[Box, float]]]


@dataclass(frozen=True, slots=True)
class BoxesComparison:
    """Agreement of a run with pseudo-labels; shares are 0..1, NaN where nothing could be compared.

    coverage: share of given boxes that the box of a confirmed track meets with an IoU of at
    least 0.5, one to one. precision: share of the tracks' boxes met by a given box. ids:
    track ids with a box in at least 3 decisions of the frame range. radar_matched: share of
    the ``radar_boxes`` given boxes (those at most a window after a radar scan) that hold a
    moving return of the last two scans. range_rel_median: median over ``range_samples`` boxes
    of |depth by radar - depth by box height| / depth by box height.

    ``frames_without_decision`` had no decision within one stride of their stamp; their boxes
    count as missed. ``frames_outside`` are frames of the range that the recording does not
    hold; they are left out.
    """

    coverage: float
    precision: float
    ids: int
    radar_matched: float
    range_rel_median: float
    frames: int
    boxes: int
    track_boxes: int
    radar_boxes: int
    range_samples: int
    first_frame: int
    last_frame: int
    frames_without_decision: int
    frames_outside: int


def read_boxes(path: Path) -> dict[int, list[tuple[Box, float]]]:
    """Read pseudo-labels: CSV with the columns frame, x0, y0, x1, y1 (px) and score.

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
    boxes: dict[int, list[tuple[Box, float]]] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        if tuple(header) != COLUMNS:
            raise ReportError(
                f'{path}, line 1: the columns must be {",".join(COLUMNS)}, '
                f'not {",".join(header)[:80]!r}'
            )
        for row in reader:
            if row:
                frame, box, score = _box(row, f'{path}, line {reader.line_num}')
                boxes.setdefault(frame, []).append((box, score))
    except csv.Error as err:
        raise ReportError(
            f'{path}, line {reader.line_num}: {err}; write the file anew as plain CSV'
        ) from err
    return boxes


def _box(row: Sequence[str], place: str) -> tuple[int, Box, float]:
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
    return int(frame), Box(x0, y0, x1, y1), score


class _Frame(NamedTuple):
    stamp_ns: int
    given: list[Box]


def compare_with_boxes(
    record: RunRecord,
    boxes: PseudoLabels,
    first_frame: int | None = None,
    last_frame: int | None = None,
) -> BoxesComparison:
    """Compare the boxes of a run with pseudo-labels at the stamp of every labelled picture.

    The decision compared is the one whose state time is nearest to the stamp, within one stride;
    its boxes are moved to the stamp with their own velocity.

    :param first_frame: first frame to compare; None = the first given
    :param last_frame: last frame to compare, inclusive; None = the last given
    :raises ReportError: when no given frame belongs to the recording
    """
    wanted = sorted(
        frame
        for frame in boxes
        if (first_frame is None or frame >= first_frame)
        and (last_frame is None or frame <= last_frame)
    )
    stamps = record.camera_stamps_ns
    inside = [frame for frame in wanted if 0 <= frame < len(stamps)]
    if not inside:
        raise ReportError(
            f'none of the frames {first_frame or 0} to '
            f'{"the last" if last_frame is None else last_frame} has both a box and a picture: '
            f'{len(boxes)} frames have boxes and the recording holds {len(stamps)} pictures; '
            f'give the boxes of this recording or another range'
        )
    frames = [
        _Frame(stamps[n], [_scaled(box, record.picture_scale) for box, _ in boxes[n]])
        for n in inside
    ]
    matches, track_boxes, undecided = _match_tracks(record, frames)
    given = sum(len(frame.given) for frame in frames)
    radar_matched, radar_boxes = _match_returns(record, frames)
    first_ns, last_ns = frames[0].stamp_ns, frames[-1].stamp_ns
    errors = _range_errors(record, first_ns, last_ns)
    return BoxesComparison(
        coverage=share(matches, given),
        precision=share(matches, track_boxes),
        ids=_count_ids(record.decisions, first_ns, last_ns),
        radar_matched=share(radar_matched, radar_boxes),
        range_rel_median=float(np.median(errors)) if errors else math.nan,
        frames=len(frames),
        boxes=given,
        track_boxes=track_boxes,
        radar_boxes=radar_boxes,
        range_samples=len(errors),
        first_frame=inside[0],
        last_frame=inside[-1],
        frames_without_decision=undecided,
        frames_outside=len(wanted) - len(inside),
    )


def _scaled(box: Box, scale: float) -> Box:
    """Return a box of the recording's own pictures in pixels of those that were replayed."""
    return Box(*(edge / scale for edge in box))


def count_matches(given: Sequence[Box], boxes: Sequence[Box]) -> int:
    """Count the pairs with an IoU of at least 0.5 in the best one-to-one assignment."""
    return len(met_pairs(box_array(given), box_array(boxes))[0])


def box_array(boxes: Sequence[Box]) -> FloatArray:
    """Return boxes as an array (N, 4)."""
    return np.array(boxes, np.float64).reshape(-1, 4)


def decisions_near(record: RunRecord, stamps_ns: Sequence[int]) -> list[Decision | None]:
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


def moved_boxes(tracks: Iterable[Track], elapsed_ns: int) -> list[Box]:
    """Return the boxes of tracks that have one, moved on by their own velocities."""
    boxes = (track.box_at(elapsed_ns / NS_PER_S) for track in tracks)
    return [box for box in boxes if box is not None]


def _match_tracks(record: RunRecord, frames: Sequence[_Frame]) -> tuple[int, int, int]:
    """Return the matches, the tracks' boxes, and the frames without a decision near them."""
    matches = track_boxes = undecided = 0
    nearest = decisions_near(record, [frame.stamp_ns for frame in frames])
    for frame, decision in zip(frames, nearest, strict=True):
        if decision is None:
            undecided += 1
            continue
        boxes = moved_boxes(decision.tracks, frame.stamp_ns - decision.state_ns)
        track_boxes += len(boxes)
        matches += count_matches(frame.given, boxes)
    return matches, track_boxes, undecided


def _match_returns(record: RunRecord, frames: Sequence[_Frame]) -> tuple[int, int]:
    """Return the given boxes that hold a moving return, and those that could hold one."""
    geometry = sensor_geometry(record)
    if geometry is None:
        return 0, 0
    scans = RadarScans(record)
    matched = compared = 0
    for frame in frames:
        recent = scans.before(frame.stamp_ns)
        if not recent:
            continue
        returns = place_returns(
            recent, frame.stamp_ns, geometry, DecisionFusionParameters().moving_speed
        )
        pixels = returns.pixels[returns.in_view]
        for box in frame.given:
            low, high = np.array(box[:2]), np.array(box[2:])
            matched += bool(((pixels > low) & (pixels < high)).all(axis=1).any())
        compared += len(frame.given)
    return matched, compared


def _range_errors(record: RunRecord, first_ns: int, last_ns: int) -> list[float]:
    if record.camera is None:
        return []
    person_height = DecisionFusionParameters().person_height
    errors = []
    for stamp_ns, box, depth in radar_set_depths(record):
        if first_ns <= stamp_ns <= last_ns:
            expected = height_depth(box, record.camera, person_height)
            errors.append(abs(depth - expected) / expected)
    return errors


def _count_ids(decisions: Sequence[Decision], first_ns: int, last_ns: int) -> int:
    seen = Counter(
        track.id
        for decision in decisions
        if first_ns <= decision.state_ns <= last_ns
        for track in decision.tracks
        if track.box is not None
    )
    return sum(count >= MINIMUM_DECISIONS for count in seen.values())


def height_depth(box: Box, camera: CameraModel, person_height: float) -> float:
    """Depth (m) at which a person of that height fills the box before a level camera."""
    return float(camera.k[1, 1]) * person_height / max(box.height, 1.0)

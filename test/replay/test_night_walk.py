"""The night recording from end to end: three people walk, a detector and a radar watch.

Most boxes compared with are a detector's output (pseudo-labels), not ground truth.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hand_made_units import MS
from night_walk_boxes import night_walk_boxes

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Decision, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.report.timed_pictures import RadarScans, sensor_geometry
from mmedge_ros.report.truth_matching import covered_boxes, met_pairs
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.tracking.return_placement import place_returns

ROOT = Path(__file__).resolve().parents[2]
SHIPPED_PROFILE = ROOT / 'config' / 'profiles' / 'default.yaml'
SHIPPED_BUNDLE = ROOT / 'models' / 'flight_people'
# A hundred pictures labelled by eye; what cannot be told for sure is ignored.
BY_EYE = Path(__file__).with_name('night_walk_by_eye.csv')
# Frames in which both sensors are sound; see the notes of the data.
FRAMES = (20, 319)
# A brisk walk, m/s; what a track may move between decisions besides its own uncertainty.
FASTEST = 3.0


def replayed(data_folder: Path, detector: Path) -> RunRecord:
    options = OfflineOptions(
        str(data_folder / 'millieye' / 'night_walk'),
        detector=str(detector),
        profile=str(SHIPPED_PROFILE),
    )
    return replay_offline(options)


@pytest.fixture(scope='module')
def run(data_folder: Path) -> RunRecord:
    """The recording replayed."""
    return replayed(data_folder, data_folder / 'models' / 'yolox_nano.onnx')


def test_the_tracks_keep_up_with_the_detector(run: RunRecord, data_folder: Path) -> None:
    covered, right = beside_the_detector(run, data_folder)
    assert covered >= 0.98
    assert right >= 0.95
    assert 3 <= people_of(run) <= 4, 'three people, and at most one of them twice'


def test_the_shipped_networks_follow_the_three_people(data_folder: Path) -> None:
    shipped = replayed(data_folder, SHIPPED_BUNDLE)
    for covered, right in (beside_the_detector(shipped, data_folder), beside_the_eye(shipped)):
        assert covered >= 0.93
        assert right >= 0.9
    assert 3 <= people_of(shipped) <= 4


def beside_the_detector(run: RunRecord, data_folder: Path) -> tuple[float, float]:
    """Shares of the detector's boxes that tracks meet, and of tracks' boxes that meet one."""
    boxes = night_walk_boxes(data_folder)
    given = shown = met = 0
    for frame in range(FRAMES[0], FRAMES[1] + 1):
        tracks = tracked_boxes(run, frame)
        labels = np.array(boxes[frame]).reshape(-1, 4)
        met += len(met_pairs(labels, tracks)[0])
        given, shown = given + len(labels), shown + len(tracks)
    return met / given, met / shown


def people_of(run: RunRecord) -> int:
    """How many tracks are shown in at least three decisions."""
    first_ns, last_ns = (run.camera_stamps_ns[frame] for frame in FRAMES)
    decided = [d for d in run.decisions if first_ns <= d.state_ns <= last_ns]
    seen = Counter(track.id for d in decided for track in d.tracks if track.box is not None)
    return sum(count >= 3 for count in seen.values())


def tracked_boxes(run: RunRecord, frame: int) -> FloatArray:
    """The boxes (N, 4) of tracks at the time of a picture, by the decision nearest to it."""
    stamp_ns = run.camera_stamps_ns[frame]
    near = min(run.decisions, key=lambda d: abs(d.state_ns - stamp_ns))
    assert abs(near.state_ns - stamp_ns) <= 100 * MS
    elapsed = (stamp_ns - near.state_ns) / NS_PER_S
    boxes = [box for track in near.tracks if (box := track.box_at(elapsed)) is not None]
    return np.array(boxes).reshape(-1, 4)


def test_the_tracks_are_where_people_were_seen_by_eye(run: RunRecord) -> None:
    covered, right = beside_the_eye(run)
    assert covered >= 0.95
    assert right >= 0.95


def beside_the_eye(run: RunRecord) -> tuple[float, float]:
    """Shares of people seen by eye whom tracks meet, and of boxes of tracks that meet one."""
    seen: dict[int, dict[str, list[list[float]]]] = {}
    with BY_EYE.open() as file:
        for row in csv.DictReader(file):
            corners = [float(row[key]) for key in ('x0', 'y0', 'x1', 'y1')]
            kinds = seen.setdefault(int(row['frame']), {'person': [], 'ignored': []})
            kinds[row['kind']].append(corners)
    given = shown = met = 0
    # The radar ends before the camera; tracks begin with the recording.
    for frame in (frame for frame in seen if frame >= FRAMES[0]):
        people, ignored = (np.array(b, np.float64).reshape(-1, 4) for b in seen[frame].values())
        tracks = tracked_boxes(run, frame)
        pairs = met_pairs(people, tracks)[1]
        judged = ~covered_boxes(tracks, ignored)
        judged[pairs] = True
        given, shown, met = given + len(people), shown + int(judged.sum()), met + len(pairs)
    assert given > 200
    return met / given, met / shown


def test_moving_returns_of_the_radar_lie_in_the_boxes_of_people(
    run: RunRecord, data_folder: Path
) -> None:
    boxes, geometry, scans = night_walk_boxes(data_folder), sensor_geometry(run), RadarScans(run)
    assert geometry is not None
    moving_speed = DecisionFusionParameters().moving_speed
    held: list[bool] = []
    for frame in range(FRAMES[0], FRAMES[1] + 1):
        stamp_ns = run.camera_stamps_ns[frame]
        if recent := scans.before(stamp_ns):
            returns = place_returns(recent, stamp_ns, geometry, moving_speed)
            u, v = returns.pixels[returns.in_view].T
            held += [
                bool(np.any((box.x0 < u) & (u < box.x1) & (box.y0 < v) & (v < box.y1)))
                for box in boxes[frame]
            ]
    assert len(held) > 500
    assert np.mean(held) >= 0.93


def test_every_window_is_decided_before_its_deadline(run: RunRecord) -> None:
    assert len(run.decisions) == run.windows == 200
    assert run.dropped == 0
    ends = [d.window_end_ns for d in run.decisions]
    assert {b - a for a, b in pairwise(ends)} == {100 * MS}
    assert np.median([d.latency for d in run.decisions]) < 0.015
    assert max(d.latency for d in run.decisions) < 0.05 + 0.03
    ages = [d.ages[CAMERA] for d in run.decisions if CAMERA in d.ages]
    assert len(ages) >= 198
    assert np.quantile(ages, 0.95) < 0.08


def test_the_rubbish_of_the_first_scan_and_the_early_end_of_the_radar_are_told_of(
    run: RunRecord,
) -> None:
    for pattern in (
        r'radar: nothing usable in the last 4\.\d s',
        r'radar: returns dropped as too near or too far: \d+',
    ):
        assert any(re.search(pattern, problem) for problem in run.problems), run.problems


def test_when_the_radar_ends_the_camera_goes_on_without_a_jump(run: RunRecord) -> None:
    silent = [d for d in run.decisions if d.lost == ('radar',)]
    assert len(silent) > 35
    # From a second before the windows lack the radar, that is half a second before it ends.
    before = [d for d in run.decisions if d.window_end_ns < silent[0].window_end_ns][-10:]
    followed = {track.id for track in before[-1].tracks}
    assert len(followed) == 3
    for earlier, later in pairwise([*before, *silent]):
        steps = moved(earlier, later)
        # Who goes behind somebody else is given up after a while.
        hidden = {track.id for track in earlier.tracks if track.box is None}
        followed = {number for number in followed if number in steps or number not in hidden}
        assert followed <= steps.keys()
        for number in followed:
            distance, allowed = steps[number]
            assert distance <= allowed, f'track {number} at {later.window_end_ns}'
    assert len(followed) >= 2


def moved(earlier: Decision, later: Decision) -> dict[int, tuple[float, float]]:
    """How far each track moved between two decisions, and how far it may have, m."""
    elapsed = (later.state_ns - earlier.state_ns) / NS_PER_S
    known = {track.id: track for track in earlier.tracks}
    found = {}
    for track in later.tracks:
        if track.id in known:
            spread = known[track.id].covariance[:3, :3]
            deviation = float(np.sqrt(np.linalg.eigvalsh(spread).max()))
            step = float(np.linalg.norm(track.position - known[track.id].position))
            found[track.id] = step, FASTEST * elapsed + deviation
    return found

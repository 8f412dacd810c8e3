"""What is really wrong with the recorded night walk, and one wrong calibration."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from decision_log_reader import read_decisions
from replays import Outcome, replay, reported

from mmedge_ros.data_types import NS_PER_S, Decision
from mmedge_ros.lab.evaluation.box_comparison import read_boxes

FRAMES = (20, 319)
# A brisk walk; what a track may move between decisions besides its own uncertainty.
FASTEST = 3.0

pytestmark = pytest.mark.usefixtures('without_figures')


@pytest.fixture(scope='module')
def night(data_folder: Path) -> Path:
    return data_folder / 'millieye' / 'night_walk'


@pytest.fixture(scope='module')
def walk(
    night: Path, data_folder: Path, profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> Outcome:
    """The walk as it is, seen by a real detector."""
    weights = data_folder / 'models' / 'yolox_nano.onnx'
    out = tmp_path_factory.mktemp('walk')
    return reported(replay(night, out, detector=weights, profile=profile))


def radar_matched(night: Path, out: Path, detector: Path, profile: Path, **options: Path) -> float:
    """Share of the people, as another detector boxed them, in whom the radar sees movement."""
    (boxes,) = (night.parent).glob('*_auto_person_boxes_*.csv')
    assert read_boxes(boxes)
    outcome = replay(
        night, out, detector=detector, profile=profile, boxes=boxes, frames=FRAMES, **options
    )
    share: float = reported(outcome).report['boxes_comparison']['radar_matched']
    return share


def test_with_the_calibration_of_another_camera_the_radar_misses_the_people(
    night: Path, tmp_path: Path, detector: Path, profile: Path
) -> None:
    right = radar_matched(night, tmp_path / 'right', detector, profile)
    other = night.parent / 'calib2_FOV110.yaml'
    wrong = radar_matched(night, tmp_path / 'wrong', detector, profile, calibration=other)
    assert right >= 0.92
    assert wrong <= 0.70


def test_the_rubbish_of_the_first_scan_and_the_early_end_of_the_radar_are_told_of(
    walk: Outcome,
) -> None:
    reported(
        walk,
        r'radar: nothing usable in the last 4\.\d s',
        r'radar: returns dropped as too near or too far: \d+',
    )
    assert walk.units('radar', 'encoded') == 400
    assert walk.units('camera', 'encoded') == 401


def test_when_the_radar_ends_the_camera_goes_on_without_a_jump(walk: Outcome) -> None:
    decisions = read_decisions(walk.folder / 'decisions.jsonl')
    silent = [d for d in decisions if d.lost == ('radar',)]
    assert len(silent) > 35
    # From a second before the windows lack the radar, that is half a second before it ends.
    before = [d for d in decisions if d.window_end_ns < silent[0].window_end_ns][-10:]
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

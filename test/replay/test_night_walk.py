"""The night recording from end to end: three people walk, a detector and a radar watch.

The boxes compared with are a detector's output (pseudo-labels), not ground truth.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hand_made_units import MS

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.lab.evaluation.box_comparison import compare_with_boxes, read_boxes
from mmedge_ros.lab.evaluation.decision_log import decision_lines
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.sensing.radar.filter import RadarLimits

SHIPPED_PROFILE = Path(__file__).resolve().parents[2] / 'config' / 'profiles' / 'default.yaml'
BOXES = '20200729-213410_auto_person_boxes_yoloxnano.csv'
# Frames in which both sensors are sound; see the notes of the data.
FRAMES = (20, 319)


@pytest.fixture(scope='module')
def runs(data_folder: Path) -> list[RunRecord]:
    """The same recording replayed twice."""
    options = OfflineOptions(
        str(data_folder / 'millieye' / 'night_walk'),
        detector=str(data_folder / 'models' / 'yolox_nano.onnx'),
        profile=str(SHIPPED_PROFILE),
    )
    return [replay_offline(options) for _ in range(2)]


def test_the_same_recording_gives_the_same_decisions_byte_for_byte(runs: list[RunRecord]) -> None:
    first, second = (decision_lines(run.decisions) for run in runs)
    assert first == second
    assert first.count('\n') == len(runs[0].decisions)


def test_the_tracks_keep_up_with_the_detector(runs: list[RunRecord], data_folder: Path) -> None:
    found = compare_with_boxes(runs[0], read_boxes(data_folder / 'millieye' / BOXES), *FRAMES)
    assert found.frames == 300
    assert found.coverage >= 0.98
    assert found.precision >= 0.95
    assert found.frames_without_decision == 0
    assert 3 <= found.ids <= 4, 'three people, and at most one of them twice'
    assert found.radar_matched >= 0.93
    assert found.range_rel_median <= 0.06


def test_every_unit_is_encoded_in_time(runs: list[RunRecord]) -> None:
    camera, radar = runs[0].units[CAMERA], runs[0].units[RADAR]
    assert (camera.captured, camera.encoded) == (401, 401)
    assert (radar.captured, radar.encoded) == (400, 400)
    for counts in (camera, radar):
        assert counts.dropped == counts.failed == counts.skipped == counts.lost == 0
        assert counts.late <= 4


def test_every_window_is_decided_before_its_deadline(runs: list[RunRecord]) -> None:
    run = runs[0]
    assert len(run.decisions) == run.windows == 200
    assert run.dropped == 0
    ends = [d.window_end_ns for d in run.decisions]
    assert {b - a for a, b in pairwise(ends)} == {100 * MS}
    assert np.median([d.latency for d in run.decisions]) < 0.015
    assert max(d.latency for d in run.decisions) < 0.05 + 0.03
    ages = [d.ages[CAMERA] for d in run.decisions if CAMERA in d.ages]
    assert len(ages) >= 198
    assert np.quantile(ages, 0.95) < 0.08


def test_trails_are_gapless_and_sum_to_the_age_of_the_critical_unit(
    runs: list[RunRecord],
) -> None:
    stamps = {unit.stamp_ns for unit in runs[0].features}
    for decision in runs[0].decisions:
        trail = decision.trail
        assert trail[0].begin_ns in stamps
        assert trail[-1].end_ns == decision.published_ns
        assert all(a.end_ns == b.begin_ns for a, b in pairwise(trail))
        assert all(s.begin_ns <= s.end_ns for s in trail)
        assert decision.state_ns <= decision.window_end_ns


def test_the_garbage_of_the_first_scan_is_not_kept(runs: list[RunRecord]) -> None:
    scans = [unit for unit in runs[0].features if unit.modality == RADAR]
    assert len(scans[0].returns) <= 5, 'of 21 points 16 are garbage'
    limits = RadarLimits()
    for scan in scans:
        ranges = np.linalg.norm(scan.returns[:, :3].astype(np.float64), axis=1)
        assert ((ranges >= limits.min_range) & (ranges <= limits.max_range)).all()
        assert (np.abs(scan.returns[:, 3]) <= limits.max_speed).all()


def test_people_are_where_people_can_be(runs: list[RunRecord]) -> None:
    for decision in runs[0].decisions:
        for track in decision.tracks:
            assert 0.5 < np.linalg.norm(track.position) < 15.0
            assert np.linalg.norm(track.velocity) < 6.0
            assert np.linalg.eigvalsh(track.covariance).min() > 0


def test_when_the_radar_has_ended_the_camera_goes_on_and_that_is_told(
    runs: list[RunRecord],
) -> None:
    last = runs[0].decisions[-1]
    assert last.lost == (RADAR,)
    assert last.tracks
    assert all(track.seen_by == (CAMERA,) for track in last.tracks if track.box)
    assert not any(RADAR in d.lost for d in runs[0].decisions[5:150])

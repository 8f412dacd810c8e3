"""Radar-camera extrinsics from people who walk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hand_made_walk import stands, walked

from mmedge_ros.replay.extrinsics import ExtrinsicsError
from mmedge_ros.replay.extrinsics import calibrate as module
from mmedge_ros.replay.extrinsics.calibrate import CalibrationResult, calibrate


def degrees(result: CalibrationResult) -> list[float]:
    return [float(np.degrees(result.estimates[name].value)) for name in ('yaw', 'pitch', 'roll')]


def holds(result: CalibrationResult, name: str, truth: float) -> bool:
    """Whether an interval (rad or s) holds the truth."""
    estimate = result.estimates[name]
    return abs(estimate.value - truth) <= estimate.half


@pytest.mark.parametrize('wrong', [(8.0, 4.0, -3.0), (-8.0, -4.0, 3.0)])
def test_a_turned_radar_is_turned_back(wrong: tuple[float, float, float]) -> None:
    result = calibrate(walked(wrong))
    assert degrees(result)[0] == pytest.approx(wrong[0], abs=0.5)
    assert degrees(result)[1] == pytest.approx(wrong[1], abs=1.0)
    for name, truth in zip(('yaw', 'pitch', 'roll'), wrong, strict=True):
        assert holds(result, name, np.radians(truth))
    assert result.after.filled > 0.9 > 0.5 > result.before.filled


def test_the_motion_of_a_drone_tells_the_time_offset_to_milliseconds() -> None:
    result = calibrate(walked((5.0, 0.0, 0.0), -0.08, shakes=True))
    assert result.time_offset == pytest.approx(-0.08, abs=0.005)
    assert degrees(result)[0] == pytest.approx(5.0, abs=0.5)


def test_returns_at_the_radar_itself_do_not_stop_the_clock() -> None:
    seen = walked(late=0.08, shakes=True)
    nothing = np.zeros((1, seen.scans[0].returns.shape[1]), np.float32)
    scans = [replace(s, returns=np.concatenate([s.returns, nothing])) for s in seen.scans]
    result = calibrate(replace(seen, scans=tuple(scans)))
    assert result.time_offset == pytest.approx(0.08, abs=0.005)


def test_a_time_that_is_not_sure_enough_is_left_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, '_WIDEST', np.array([1.0, 1.0, 1.0, 1e-6]))
    result = calibrate(walked(late=0.08, shakes=True))
    assert not result.estimates['time'].observable
    assert result.time_offset == 0.0


def test_without_odometry_the_time_offset_comes_from_people() -> None:
    result = calibrate(walked(late=0.08))
    assert result.time_offset == pytest.approx(0.08, abs=0.03)
    assert holds(result, 'time', 0.08)


def test_a_radar_without_elevation_says_nothing_of_pitch() -> None:
    result = calibrate(walked((6.0, 0.0, 0.0), elevation=False))
    assert degrees(result)[0] == pytest.approx(6.0, abs=0.5)
    assert not result.estimates['pitch'].observable
    assert result.estimates['pitch'].value == 0.0
    assert any('measures no elevation' in note for note in result.notes)


def test_people_who_stand_are_too_little() -> None:
    with pytest.raises(ExtrinsicsError, match=r'only 0 returns of moving people.*walk across'):
        calibrate(walked(walks=(stands,)))


def test_returns_without_velocity_are_reported() -> None:
    seen = walked()
    scans = [replace(scan, returns=scan.returns.copy()) for scan in seen.scans]
    for scan in scans:
        scan.returns[:, 3] = np.nan
    with pytest.raises(ExtrinsicsError, match='Doppler'):
        calibrate(replace(seen, scans=tuple(scans)))


def test_a_picture_that_is_years_off_costs_only_what_odometry_would_have_said() -> None:
    seen = walked(shakes=True)
    last = seen.pictures[-1]
    off = replace(last, stamp_ns=last.stamp_ns + 10**18)
    result = calibrate(replace(seen, pictures=(*seen.pictures, off)))
    assert holds(result, 'yaw', 0.0)

"""What PX4 says in north, east, down is what ROS hears in east, north, up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.px4_odometry import LOCAL_FRAME, ego_report_from_px4

NOW_NS = 1_700_000_000_000_000_000
STAMP_US = NOW_NS // 1000 - 20_000
LEVEL = (1.0, 0.0, 0.0, 0.0)
UNKNOWN = float('nan')


def px4(**changes: Any) -> SimpleNamespace:
    """A drone that looks north: 3 m north, 2 m east and 10 m above where it was set up."""
    fields = {
        'timestamp': STAMP_US + 5_000,
        'timestamp_sample': STAMP_US,
        'pose_frame': 1,
        'position': (3.0, 2.0, -10.0),
        'q': LEVEL,
        'velocity_frame': 1,
        'velocity': (4.0, 1.0, -0.5),
        'angular_velocity': (0.1, 0.2, 0.3),
        'position_variance': (0.1, 0.1, 0.2),
        'orientation_variance': (0.01, 0.01, 0.02),
        'velocity_variance': (0.1, 0.1, 0.1),
        **changes,
    }
    as_sent = {
        name: np.array(value, np.float32) if isinstance(value, tuple) else value
        for name, value in fields.items()
    }
    return SimpleNamespace(**as_sent)


def turned(roll: float, pitch: float, yaw: float) -> tuple[float, ...]:
    """The quaternion (w, x, y, z) of angles (degrees) as pilots have them: nose up, clockwise."""
    x, y, z, w = Rotation.from_euler('ZYX', (yaw, pitch, roll), degrees=True).as_quat()
    return (w, x, y, z)


def axes(message: SimpleNamespace) -> Any:
    """Where ahead, left and up of the drone point to, as columns."""
    return ego_report_from_px4(message, NOW_NS).state.pose.rotation


def test_north_east_down_becomes_east_north_up() -> None:
    report = ego_report_from_px4(px4(), NOW_NS)
    np.testing.assert_allclose(report.state.pose.translation, [2.0, 3.0, 10.0])
    np.testing.assert_allclose(report.state.velocity, [1.0, 4.0, 0.5])
    assert (report.frame_id, report.base_frame) == ('odom', 'base_link')


@pytest.mark.parametrize(
    ('angles', 'ahead', 'left', 'up'),
    [
        ((0, 0, 0), (0, 1, 0), (-1, 0, 0), (0, 0, 1)),  # looks north
        ((0, 0, 90), (1, 0, 0), (0, 1, 0), (0, 0, 1)),  # looks east: no rotation in ROS
        ((0, 0, 180), (0, -1, 0), (1, 0, 0), (0, 0, 1)),
        ((0, 90, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0)),  # nose up
        ((90, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0)),  # right wing down
    ],
)
def test_the_attitude_is_that_of_a_body_that_looks_ahead_left_and_up(
    angles: tuple[float, float, float], ahead: Any, left: Any, up: Any
) -> None:
    found = axes(px4(q=turned(*angles)))
    np.testing.assert_allclose(found, np.column_stack((ahead, left, up)), atol=1e-6)


def test_rates_are_of_the_body_and_velocities_may_be() -> None:
    looking_east = px4(q=turned(0, 0, 90), velocity_frame=3, velocity=(5.0, 1.0, 0.5))
    state = ego_report_from_px4(looking_east, NOW_NS).state
    # 5 m/s ahead is east, 1 to the right is south, and 0.5 m/s down is down.
    np.testing.assert_allclose(state.velocity, [5.0, -1.0, -0.5], atol=1e-6)
    # Rolling right, nose up and a turn to the right, about axes ahead, left and up.
    np.testing.assert_allclose(state.angular_velocity, [0.1, -0.2, -0.3], atol=1e-6)


def test_a_world_without_north_is_another_frame() -> None:
    report = ego_report_from_px4(px4(pose_frame=2, velocity_frame=2), NOW_NS)
    assert report.frame_id == LOCAL_FRAME != 'odom'
    np.testing.assert_allclose(report.state.pose.translation, [3.0, -2.0, 10.0])
    np.testing.assert_allclose(report.state.pose.rotation, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(report.state.velocity, [4.0, -1.0, 0.5])


@pytest.mark.parametrize(
    'changes',
    [
        {'velocity': (4.0, UNKNOWN, 0.0)},
        {'angular_velocity': (UNKNOWN, 0.0, 0.0)},
        {'velocity_frame': 0},
        {'velocity_frame': 2},  # north is not known there, and the pose is by north
        {'pose_frame': 2, 'velocity_frame': 1},
    ],
)
def test_velocities_that_are_not_known_are_none_and_the_pose_stays(
    changes: dict[str, Any],
) -> None:
    state = ego_report_from_px4(px4(**changes), NOW_NS).state
    assert (state.velocity, state.angular_velocity) == (None, None)
    assert np.isfinite(state.pose.translation).all()


@pytest.mark.parametrize(
    ('changes', 'said'),
    [
        ({'position': (UNKNOWN, 0.0, 0.0)}, 'does not know its pose'),
        ({'q': (UNKNOWN, 0.0, 0.0, 0.0)}, 'does not know its pose'),
        ({'pose_frame': 0}, 'names no frame'),
        ({'pose_frame': 77}, 'names no frame'),
        ({'q': (0.0, 0.0, 0.0, 0.0)}, 'not a quaternion'),
        ({'q': (1.0, UNKNOWN, 0.0, 0.0)}, 'not a quaternion'),
        ({'position': (1e30, 0.0, 0.0)}, 'beyond'),
        ({'velocity': (1e30, 0.0, 0.0)}, 'beyond'),
        ({'velocity': (float('inf'), 0.0, 0.0)}, 'beyond'),
    ],
)
def test_what_is_no_pose_or_velocity_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(GeometryError, match=said):
        ego_report_from_px4(px4(**changes), NOW_NS)


def test_the_stamp_is_that_of_the_sample_in_nanoseconds() -> None:
    assert ego_report_from_px4(px4(), NOW_NS).state.stamp_ns == STAMP_US * 1000
    without = px4(timestamp_sample=0)
    assert ego_report_from_px4(without, NOW_NS).state.stamp_ns == (STAMP_US + 5_000) * 1000


@pytest.mark.parametrize('stamp_us', [90_000_000, NOW_NS // 1000 + 2_000_000, 2**64 - 1])
def test_a_clock_that_is_not_the_computers_is_named_with_the_remedy(stamp_us: int) -> None:
    with pytest.raises(GeometryError, match=r's apart: .*UXRCE_DDS_SYNCT'):
        ego_report_from_px4(px4(timestamp_sample=stamp_us), NOW_NS)

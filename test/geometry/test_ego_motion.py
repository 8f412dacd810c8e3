"""Poses between, before and after odometry messages."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState, carried, ego_state
from mmedge_ros.geometry.sensor_poses import SensorGeometry
from mmedge_ros.geometry.transforms import Transform

MS = 1_000_000
START_NS = 10_000 * MS


def circling(time_ns: int, with_velocity: bool = True) -> EgoState:
    """10 m from the origin, once around in 20 s, looking along the way."""
    angle = 2 * np.pi * time_ns / 20e9
    outward = np.array([np.cos(angle), np.sin(angle), 0.0])
    along = np.array([-np.sin(angle), np.cos(angle), 0.0])
    rate = 2 * np.pi / 20.0
    return EgoState(
        START_NS + time_ns,
        Transform(Rotation.from_euler('z', angle + np.pi / 2).as_matrix(), 10.0 * outward),
        10.0 * rate * along if with_velocity else None,
        np.array([0.0, 0.0, rate]) if with_velocity else None,
    )


def known(with_velocity: bool = True) -> EgoMotion:
    motion = EgoMotion('odom', 'base_link')
    for k in range(10):
        motion.add(circling(100 * MS * k, with_velocity))
    return motion


@pytest.mark.parametrize('time_ns', [0, 37 * MS, 450 * MS, 900 * MS])
def test_a_pose_between_messages_is_interpolated(time_ns: int) -> None:
    found, truth = known().at(START_NS + time_ns), circling(time_ns)
    assert found is not None
    np.testing.assert_allclose(found.pose.translation, truth.pose.translation, atol=0.002)
    np.testing.assert_allclose(found.pose.rotation, truth.pose.rotation, atol=1e-6)


@pytest.mark.parametrize('with_velocity', [True, False])
def test_a_pose_is_carried_on_for_a_short_time_only(with_velocity: bool) -> None:
    motion = known(with_velocity)
    found, truth = motion.at(START_NS + 1000 * MS), circling(1000 * MS)
    assert found is not None
    np.testing.assert_allclose(found.pose.translation, truth.pose.translation, atol=0.03)
    assert motion.at(START_NS + 1100 * MS) is None
    held = motion.nearest(START_NS + 5000 * MS)
    assert held is not None
    assert held.stamp_ns == START_NS + 900 * MS


def test_velocities_are_known_from_poses_alone() -> None:
    found, truth = known(with_velocity=False).at(START_NS + 450 * MS), circling(450 * MS)
    assert found is not None
    assert found.velocity is not None
    assert truth.velocity is not None
    np.testing.assert_allclose(found.velocity, truth.velocity, atol=0.02)
    np.testing.assert_allclose(found.angular_velocity, truth.angular_velocity, atol=1e-6)


def test_messages_may_come_in_any_order_and_twice() -> None:
    motion = EgoMotion('odom', 'base_link')
    for k in (3, 0, 2, 2, 1):
        motion.add(circling(100 * MS * k))
    assert len(motion) == 4
    found = motion.at(START_NS + 150 * MS)
    assert found is not None
    truth = circling(150 * MS).pose.translation
    np.testing.assert_allclose(found.pose.translation, truth, atol=0.002)


def test_memory_is_bounded_and_a_clock_set_back_starts_over() -> None:
    motion = EgoMotion('odom', 'base_link')
    for k in range(2000):
        motion.add(circling(20 * MS * k))
    assert len(motion) <= 251
    motion.add(circling(0))
    assert len(motion) == 1


def test_nothing_is_known_before_the_first_message() -> None:
    assert EgoMotion().at(START_NS) is None
    assert EgoMotion().nearest(START_NS) is None


def test_a_radar_on_an_arm_moves_with_the_turn_of_the_drone() -> None:
    geometry = SensorGeometry(
        'base_link', None, Transform.identity(), Transform(np.eye(3), np.array([0.5, 0.0, 0.0]))
    )
    state = EgoState(0, Transform.identity(), np.zeros(3), np.array([0.0, 0.0, 2.0]))
    found = carried(geometry, state, 'odom')
    np.testing.assert_allclose(found.radar_velocity, [0.0, 1.0, 0.0])
    assert found.frame_id == 'odom'


def state_of(**changes: float) -> EgoState:
    """A drone that was turned left by 90 degrees and flies ahead."""
    values = {'x': 1.0, 'w': 1.0, 'vx': 2.0, **changes}
    return ego_state(
        5,
        (values['x'], 0.0, 0.0),
        (0.0, 0.0, values['w'], values['w']),
        (values['vx'], 0.0, 0.0),
        (0.0, 0.0, 0.1),
    )


def test_the_twist_of_odometry_is_turned_from_the_body_into_its_frame() -> None:
    state = state_of()
    np.testing.assert_allclose(state.velocity, [0.0, 2.0, 0.0], atol=1e-12)
    assert state.stamp_ns == 5


@pytest.mark.parametrize(
    'changes', [{'x': float('nan')}, {'vx': float('inf')}, {'vx': 1e38}, {'w': 0.0}]
)
def test_odometry_that_cannot_be_true_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(GeometryError):
        state_of(**changes)

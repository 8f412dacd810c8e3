"""The truth carried into the frame the tracks live in."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_truth import at, run, scene, true_person
from scipy.spatial.transform import Rotation

from mmedge_ros.geometry.ego_motion import EgoMotion, EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.truth_alignment import Alignment

PLACE, VELOCITY = np.array([10.0, 4.0, 0.0]), np.array([0.5, -1.0, 0.0])
MOUNT = Transform(np.eye(3), np.array([0.2, 0.0, 0.0]))


def drone(ms=0.0, place=(0.0, 0.0, 5.0), yaw=0.0, velocity=(0.0, 0.0, 0.0), spin=0.0):
    turned = Rotation.from_euler('z', yaw).as_matrix()
    return EgoState(
        at(ms),
        Transform(turned, np.array(place)),
        np.array(velocity),
        np.array([0.0, 0.0, spin]),
    )


def aligned(true, reckoned=None, frame_id='odom', truth_frame='odom'):
    truth = GroundTruth(
        [scene(0, true_person(position=PLACE, velocity=VELOCITY), ego=true, frame_id=truth_frame)]
    )
    record = run([])
    record.camera_pose = MOUNT
    if reckoned is not None:
        record.ego = EgoMotion('odom', 'base_link', kept=None)
        record.ego.add(reckoned)
    alignment = Alignment(record, truth)
    frame = truth.frame_at(at(0))
    assert frame is not None
    return alignment.carry(frame, at(0), frame_id), alignment.problems


def test_odometry_that_is_right_changes_nothing():
    state = drone(place=(3.0, -2.0, 5.0), yaw=0.7)
    result, problems = aligned(state, state)
    assert result.positions == pytest.approx(PLACE[None])
    assert result.velocities == pytest.approx(VELOCITY[None])
    assert result.sensor == pytest.approx(state.pose.apply([0.2, 0.0, 0.0]))
    assert problems == []


def test_odometry_that_has_drifted_carries_the_truth_with_it():
    true = drone(place=(3.0, -2.0, 5.0))
    result, _ = aligned(true, drone(place=(4.5, -2.0, 5.0)))
    assert result.positions == pytest.approx(PLACE[None] + [1.5, 0.0, 0.0])
    turned, _ = aligned(true, drone(place=(3.0, -2.0, 5.0), yaw=np.pi / 2))
    offset = PLACE - [3.0, -2.0, 0.0]
    assert turned.positions[0] == pytest.approx([3.0 - offset[1], -2.0 + offset[0], 0.0])
    assert turned.velocities[0] == pytest.approx([1.0, 0.5, 0.0])
    true_range = np.linalg.norm(PLACE + np.array([0, 0, 0.85]) - true.pose.apply([0.2, 0.0, 0.0]))
    assert turned.ranges == pytest.approx([true_range])


def test_without_odometry_the_truth_is_what_is_seen_from_the_body():
    true = drone(place=(3.0, 0.0, 5.0), yaw=np.pi / 2, velocity=(1.0, 0.0, 0.0), spin=0.1)
    result, _ = aligned(true, frame_id='base_link')
    assert result.positions[0] == pytest.approx([4.0, -7.0, -5.0])
    # Relative velocity: own minus the drone's, minus the turning (0, 0, 0.1) x (7, 4, .).
    relative = VELOCITY - [1.0, 0.0, 0.0] - [-0.4, 0.7, 0.0]
    assert result.velocities[0] == pytest.approx([relative[1], -relative[0], 0.0])
    assert result.sensor == pytest.approx([0.2, 0.0, 0.0])


def test_in_one_frame_the_truth_needs_no_pose():
    result, problems = aligned(None)
    assert result.positions == pytest.approx(PLACE[None])
    assert problems == []


def test_frames_that_nothing_connects_are_told():
    result, problems = aligned(None, frame_id='radar_link')
    assert result is None
    assert "positions are in 'odom', the tracks of 1 decisions in 'radar_link'" in problems[0]


def test_a_truth_in_a_map_is_connected_by_the_drone():
    result, problems = aligned(
        drone(place=(3.0, -2.0, 5.0)), drone(place=(0.0, 0.0, 5.0)), truth_frame='map'
    )
    assert result.positions == pytest.approx(PLACE[None] - [3.0, -2.0, 0.0])
    assert problems == []

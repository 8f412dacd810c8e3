"""What is known of the sensors' places, under names of one drone among several."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.geometry.transforms import Transform, parse_static_transform, prefixed

PREFIX = 'drone1/'


@pytest.mark.parametrize(
    ('frame', 'named'),
    [
        ('odom', 'drone1/odom'),
        ('drone1/odom', 'drone1/odom'),
        ('', ''),
        ('drone2/odom', 'drone1/drone2/odom'),
    ],
)
def test_a_prefix_comes_once_before_a_name(frame: str, named: str) -> None:
    assert prefixed(PREFIX, frame) == named
    assert prefixed('', frame) == frame


@pytest.mark.parametrize('given', ['', PREFIX], ids=['without', 'with'])
def test_frames_of_drivers_and_odometry_are_found_with_and_without_the_prefix(given: str) -> None:
    rig = SensorRig()
    rig.prefix = PREFIX
    edges = ('base_link radar_link 1 0 0 0 0 0 1', 'drone1/base_link drone1/lens 2 0 0 0 0 0 1')
    rig.add_transforms([*map(parse_static_transform, edges)])
    rig.set_frames({RADAR: given + 'radar_link', CAMERA: given + 'lens'})
    assert rig.frame_id == 'drone1/base_link'
    assert rig.geometry.radar_pose.translation.tolist() == [1.0, 0.0, 0.0]
    assert rig.geometry.camera_pose.translation.tolist() == [2.0, 0.0, 0.0]
    pose = Transform(np.eye(3), np.array([5.0, 0.0, 0.0]))
    rig.add_ego_state(EgoState(0, pose), given and given + 'odom', given and given + 'base_link')
    assert rig.frame_id == 'drone1/odom'
    assert rig.geometry_at(0).radar_pose.translation.tolist() == [6.0, 0.0, 0.0]

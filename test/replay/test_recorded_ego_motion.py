"""A recording of a drone that flies: its odometry or its transforms carry the tracks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_fixtures import BEGIN_NS, TYPES, header, recording, write_bag
from tiny_detector import write_tiny_detector

from mmedge_ros.fusion.ego_motion import EgoReport
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.replay.recording import Recording

SPEED = 2.0


def odometry(at: int, x: float = 0.0) -> Any:
    vector, point = TYPES['geometry_msgs/msg/Vector3'], TYPES['geometry_msgs/msg/Point']
    still = vector(x=0.0, y=0.0, z=0.0)
    pose = TYPES['geometry_msgs/msg/Pose'](
        position=point(x=x, y=0.0, z=0.0),
        orientation=TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    twist = TYPES['geometry_msgs/msg/Twist'](linear=vector(x=SPEED, y=0.0, z=0.0), angular=still)
    return TYPES['nav_msgs/msg/Odometry'](
        header=header(at, 'odom'),
        child_frame_id='radar_link',
        pose=TYPES['geometry_msgs/msg/PoseWithCovariance'](pose=pose, covariance=np.zeros(36)),
        twist=TYPES['geometry_msgs/msg/TwistWithCovariance'](twist=twist, covariance=np.zeros(36)),
    )


def moving_frame(at: int, x: float) -> Any:
    transform = TYPES['geometry_msgs/msg/Transform'](
        translation=TYPES['geometry_msgs/msg/Vector3'](x=x, y=0.0, z=0.0),
        rotation=TYPES['geometry_msgs/msg/Quaternion'](x=0.0, y=0.0, z=0.0, w=1.0),
    )
    edge = TYPES['geometry_msgs/msg/TransformStamped'](
        header=header(at, 'odom'), child_frame_id='base_link', transform=transform
    )
    return TYPES['tf2_msgs/msg/TFMessage'](transforms=[edge])


def flight(topic: str, duration: float = 1.5) -> list[tuple[str, int, Any]]:
    messages = recording(duration)
    for number in range(round(duration * 50)):
        at, x = BEGIN_NS + number * 20_000_000, SPEED * number / 50
        message = odometry(at, x) if topic == '/odom' else moving_frame(at, x)
        messages.append((topic, at + 1_000_000, message))
    return sorted(messages, key=lambda entry: entry[1])


@pytest.mark.parametrize('topic', ['/odom', '/tf'])
def test_tracks_of_a_flight_live_in_the_frame_of_its_odometry(tmp_path: Path, topic: str) -> None:
    bag = write_bag(tmp_path / 'bag', messages=flight(topic))
    detector = tmp_path / 'tiny.onnx'
    write_tiny_detector(detector)
    record = replay_offline(OfflineOptions(str(bag), str(detector)))
    assert record.frame_id == 'odom'
    assert {d.frame_id for d in record.decisions} == {'odom'}
    assert not any('no odometry' in problem for problem in record.problems)
    first = next(d for d in record.decisions if d.tracks)
    # The returns stay 5 m ahead of a drone that flies at 2 m/s, and claim 0.5 m/s more.
    gained = record.decisions[-1].tracks[0].position[0] - first.tracks[0].position[0]
    elapsed = (record.decisions[-1].state_ns - first.state_ns) / 1e9
    assert SPEED - 0.1 <= gained / elapsed <= SPEED + 0.6


def test_odometry_comes_in_the_order_it_was_received(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / 'bag', messages=flight('/odom'))
    with Recording(bag) as found:
        events = list(found.events())
    times = [event.available_ns for event in events]
    assert times == sorted(times)
    assert sum(isinstance(event, EgoReport) for event in events) == 75


def test_damaged_odometry_is_told_and_left_out(tmp_path: Path) -> None:
    messages = flight('/odom')
    for place, (topic, log_ns, message) in enumerate(messages):
        if topic == '/odom':
            message.pose.pose.position.x = float('nan')
            messages[place] = (topic, log_ns, message)
    bag = write_bag(tmp_path / 'bag', messages=messages)
    with Recording(bag) as found:
        assert not any(isinstance(event, EgoReport) for event in found.events())
        assert any('odometry not used' in problem for problem in found.problems)

"""Recordings of a drone that flies straight ahead, with odometry or moving transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
from bag_fixtures import BEGIN_NS, TYPES, header, recording

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

"""Ego motion from the best source that is heard; px4_msgs, which no wheel has, is made by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy
from rclpy.serialization import serialize_message

from mmedge_ros.ros.geometry_inputs import GeometryInputs
from mmedge_ros.ros.messages import names

NOW_NS = 1_700_000_000_000_000_000


class Listener:
    """Stands for a node: remembers what was subscribed to and what was said."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self.profiles: dict[str, Any] = {}
        self.said: list[str] = []

    def create_subscription(
        self, _: type, topic: str, callback: Callable[[Any], None], profile: Any, **__: Any
    ) -> SimpleNamespace:
        self.callbacks[topic], self.profiles[topic] = callback, profile
        return SimpleNamespace()

    def get_clock(self) -> SimpleNamespace:
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=NOW_NS))

    def get_logger(self) -> SimpleNamespace:
        return SimpleNamespace(warning=lambda text, **_: self.said.append(text))


class Entered:
    """Stands for the pipeline and its rig: the frames of what was entered, and places."""

    def __init__(self) -> None:
        self.rig = self
        self.states: list[tuple[str, list[float]]] = []

    def add_ego_state(self, state: Any, frame_id: str, _: str) -> None:
        self.states.append((frame_id, state.pose.translation.tolist()))

    def submit(self, task: Any, urgent: bool = True) -> None:
        assert not urgent
        task(self, None)


def vehicle_odometry(**changes: Any) -> SimpleNamespace:
    fields: dict[str, Any] = {
        'timestamp': NOW_NS // 1000,
        'timestamp_sample': NOW_NS // 1000,
        'pose_frame': 1,
        'position': np.array([1.0, 2.0, -3.0], np.float32),
        'q': np.array([1.0, 0.0, 0.0, 0.0], np.float32),
        'velocity_frame': 1,
        'velocity': np.zeros(3, np.float32),
        'angular_velocity': np.zeros(3, np.float32),
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.fixture
def with_px4(monkeypatch: pytest.MonkeyPatch) -> None:
    package, messages = ModuleType('px4_msgs'), ModuleType('px4_msgs.msg')
    messages.__dict__['VehicleOdometry'] = SimpleNamespace
    monkeypatch.setitem(sys.modules, 'px4_msgs', package)
    monkeypatch.setitem(sys.modules, 'px4_msgs.msg', messages)


def listening() -> tuple[Listener, Entered]:
    node, entered = Listener(), Entered()
    GeometryInputs(cast('Node', node), entered.submit, wants_camera=False)
    return node, entered


def test_odometry_of_px4_is_entered_as_ros_has_it(with_px4: None) -> None:
    node, entered = listening()
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry())
    assert entered.states == [('odom', [2.0, 1.0, 3.0])]
    profile = node.profiles[names.PX4_ODOMETRY]
    assert profile.reliability == ReliabilityPolicy.BEST_EFFORT  # PX4 offers no more


def test_odometry_of_ros_comes_before_that_of_px4(with_px4: None) -> None:
    node, entered = listening()
    message = Odometry()
    message.pose.pose.orientation.w = 1.0
    message.header.frame_id = 'map'
    node.callbacks[names.ODOMETRY](serialize_message(message))
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry())
    assert [frame for frame, _ in entered.states] == ['map']


def test_what_cannot_be_used_is_said(with_px4: None) -> None:
    node, entered = listening()
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry(pose_frame=0))
    node.callbacks[names.PX4_ODOMETRY](SimpleNamespace(local_frame=0, x=1.0))  # PX4 1.13
    assert entered.states == []
    assert [text.startswith("PX4's odometry not used: ") for text in node.said] == [True, True]


def test_nothing_changes_where_px4_msgs_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'px4_msgs', None)
    node, _ = listening()
    assert names.ODOMETRY in node.callbacks
    assert names.PX4_ODOMETRY not in node.callbacks

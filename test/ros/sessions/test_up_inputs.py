"""What `mmedge up` makes of decisions and statuses: which inputs are there, and why others not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.qos import QoSProfile

from mmedge_ros.core.data_types import CAMERA, RADAR, Decision
from mmedge_ros.preflight.graph_view import ODOMETRY
from mmedge_ros.ros.sessions.graph_snapshot import graph_inputs
from mmedge_ros.ros.sessions.up_inputs import UpInputs

TYPES = {'/camera/image': 'Image', '/radar/points': 'PointCloud2'}


class Listener:
    """Stands for the node that hears decisions; ``sensors`` have publishers."""

    def __init__(self) -> None:
        self.decision: Decision | None = None
        self.decided_at = 0.0
        self.sensors = {'/camera/image', '/radar/points'}
        self.hear: Callable[[DiagnosticArray], None] = lambda _: None

    def create_subscription(self, _: type, topic: str, callback: Any, depth: int) -> None:
        assert (topic, depth) == ('/diagnostics', 10)
        self.hear = callback

    def resolve_topic_name(self, topic: str) -> str:
        return f'/{topic}'

    def get_name(self) -> str:
        return 'mmedge_status'

    def get_publishers_info_by_topic(self, topic: str) -> list[Any]:
        if topic not in self.sensors:
            return []
        kind = f'sensor_msgs/msg/{TYPES[topic]}'
        return [SimpleNamespace(node_name='rig', topic_type=kind, qos_profile=QoSProfile(depth=1))]

    def get_subscriptions_info_by_topic(self, _: str) -> list[Any]:
        return []

    def get_topic_names_and_types(self) -> list[Any]:
        return []


class Up:
    """A graph that is looked at twice a second, by a clock of its own."""

    def __init__(self, *own: str) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self.listener = Listener()
        inputs = {name: graph_inputs()[name] for name in (CAMERA, RADAR, ODOMETRY)}
        self.inputs = UpInputs(self.listener, inputs, own, self.said.append, lambda: self.now)  # type: ignore[arg-type]

    def run(self, seconds: float, status: DiagnosticStatus | None = None) -> list[str]:
        """Let time pass, with decisions all the while and a status each second; what was said."""
        before = len(self.said)
        for step in range(round(2 * seconds)):
            self.now += 0.5
            self.listener.decided_at = self.now
            if status is not None and step % 2:
                self.listener.hear(DiagnosticArray(status=[status]))
            self.inputs.look()
        return self.said[before:]


def status(node: str, level: bytes = b'\0', message: str = '', **values: str) -> DiagnosticStatus:
    pairs = [KeyValue(key=key.replace('__', ' '), value=value) for key, value in values.items()]
    return DiagnosticStatus(name=f'mmedge_ros: {node}', level=level, message=message, values=pairs)


def decision(*modalities: str, **fields: Any) -> Decision:
    return Decision(10**9, 10**9, 'odom', (), dict.fromkeys(modalities, 1), **fields)


@pytest.fixture
def up() -> Up:
    return Up()


def test_sensors_of_decisions_are_there_and_lost_ones_are_not(up: Up) -> None:
    up.listener.decision = decision(CAMERA, RADAR)
    assert up.run(10.0) == []
    up.listener.decision = decision(CAMERA, RADAR, lost=(RADAR,))
    assert up.run(10.0) == [
        'no radar points: rig publishes /radar/points and sends nothing; see its log'
    ]
    up.listener.decision = decision(CAMERA, RADAR)
    assert up.run(1.0) == ['radar points arrive on /radar/points']


def test_an_encoder_that_waits_in_vain_is_believed_after_some_statuses(up: Up) -> None:
    up.listener.decision = decision(RADAR)
    waiting = status('camera_encoder', received='0', encoded='0')
    assert up.run(2.0, waiting) == []
    assert up.run(3.0, waiting) == [
        'no pictures: rig publishes /camera/image and sends nothing; see its log'
    ]


def test_an_encoder_that_cannot_read_what_comes_says_why(up: Up) -> None:
    up.listener.decision = decision(RADAR)
    failing = status('camera_encoder', received='9', encoded='0', problem__camera__bayer='9')
    assert up.run(5.0, failing) == ['no pictures: 9 came and none could be used: camera bayer']


def test_a_driver_of_the_graph_is_given_time_and_its_words_are_passed_on() -> None:
    up = Up(RADAR)
    up.listener.decision = decision(CAMERA)
    up.listener.sensors.remove('/radar/points')
    assert up.run(20.0) == []
    up.listener.sensors.add('/radar/points')
    failing = status('radar', DiagnosticStatus.ERROR, 'no radar board')
    assert up.run(2.0, failing) == ['no radar points: the driver says: no radar board']

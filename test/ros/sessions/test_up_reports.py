"""What `mmedge up` makes of decisions and statuses: what is missing and why, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.qos import QoSProfile

from mmedge_ros.core.data_types import CAMERA, RADAR, Decision
from mmedge_ros.preflight.graph_view import ODOMETRY
from mmedge_ros.ros.input_watch import DOUBLED
from mmedge_ros.ros.sessions.graph_snapshot import graph_inputs
from mmedge_ros.ros.sessions.up_reports import UpReports

SILENT = 'no camera input on /camera/image for 5 s: it has no publisher'
CONSEQUENCE = 'no camera input on /perception/unit_features for 5 s; published by camera_encoder'
TYPES = {'/camera/image': 'Image', '/radar/points': 'PointCloud2'}


class Listener:
    """Stands for the node that hears decisions; ``sensors`` have publishers."""

    def __init__(self) -> None:
        self.decision: Decision | None = None
        self.decided_at = 0.0
        self.sensors = {'/camera/image', '/radar/points'}
        self.hear: Callable[[DiagnosticArray], None] = lambda _: None

    def create_subscription(self, _: type, topic: str, callback: Any, depth: int) -> None:
        assert (topic, depth) == ('/diagnostics', 100)
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

    def __init__(self, *own: str, tells_inputs: bool = True) -> None:
        self.now = 100.0
        self.said: list[str] = []
        self.listener = Listener()
        told = (CAMERA, RADAR, ODOMETRY) if tells_inputs else ()
        inputs = {name: graph_inputs()[name] for name in told}
        self.reports = UpReports(self.listener, self.said.append, inputs, own, lambda: self.now)  # type: ignore[arg-type]

    def run(self, seconds: float, status: DiagnosticStatus | None = None) -> list[str]:
        """Let time pass, with decisions all the while and a status each second; what was said."""
        before = len(self.said)
        for step in range(round(2 * seconds)):
            self.now += 0.5
            self.listener.decided_at = self.now
            if status is not None and step % 2:
                self.listener.hear(DiagnosticArray(status=[status]))
            self.reports.look()
        return self.said[before:]

    def report(self, name: str, words: str, level: bytes = DiagnosticStatus.ERROR) -> None:
        self.listener.hear(DiagnosticArray(status=[status(name, level, words)]))

    def heal(self, name: str) -> None:
        self.report(name, 'running', DiagnosticStatus.OK)


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


@pytest.fixture
def nodes() -> Up:
    """A graph that has begun and plays a recording: nodes alone tell of inputs."""
    made = Up(tells_inputs=False)
    made.now = 131.0
    return made


def test_an_error_is_said_once_however_long_it_lasts_and_when_it_is_over(nodes: Up) -> None:
    nodes.heal('camera_encoder')
    for seconds in (5, 6, 7):
        nodes.report('camera_encoder', SILENT.replace('5', str(seconds)))
    nodes.report('camera_encoder', 'no camera input on /camera/image for 8 s; published by rig')
    nodes.heal('camera_encoder')
    assert nodes.said == [f'camera_encoder: {SILENT}', 'camera_encoder: running again']


def test_what_follows_from_it_and_silence_while_the_graph_starts_are_not_said(
    nodes: Up,
) -> None:
    nodes.now = 110.0
    nodes.report('fusion', CONSEQUENCE)
    assert nodes.said == []
    nodes.now = 131.0
    nodes.report('camera_encoder', SILENT)
    nodes.report('fusion', CONSEQUENCE)
    assert nodes.said == [f'camera_encoder: {SILENT}']
    nodes.heal('camera_encoder')
    nodes.report('fusion', CONSEQUENCE)
    assert nodes.said[2:] == [f'fusion: {CONSEQUENCE}']


def test_two_graphs_in_one_domain_are_one_line(nodes: Up) -> None:
    for name in ('fusion', 'camera_encoder', 'fusion', 'radar_encoder'):
        nodes.report(name, f'2 nodes are called /{name}: {DOUBLED}; stop one')
        nodes.heal(name)  # the other one, which has not noticed yet
    assert nodes.said == [f'fusion: 2 nodes are called /fusion: {DOUBLED}; stop one']


def test_silent_sensors_and_drivers_are_left_to_the_report_of_inputs() -> None:
    nodes = Up()
    nodes.now = 131.0
    nodes.report('camera', 'no device /dev/video0')
    nodes.report('camera_encoder', SILENT)
    nodes.report('fusion', CONSEQUENCE)
    assert nodes.said == []
    nodes.report('radar_encoder', f'2 nodes are called /radar_encoder: {DOUBLED}; stop one')
    assert len(nodes.said) == 1

"""Ego motion from the best source that is heard, and the transform that is published of it.

px4_msgs and tf2_msgs, which no wheel has, are made by hand.
"""

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
from sensor_msgs.msg import Range

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import EgoReport, EgoState
from mmedge_ros.geometry.px4_odometry import px4_stamp_ns
from mmedge_ros.geometry.rangefinder import HeightReport
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.preflight.graph_view import PX4_ODOMETRY
from mmedge_ros.ros.geometry_inputs import GeometryInputs, OdometryTransform, to_transform
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.rangefinder_input import RangefinderInput
from mmedge_ros.ros.sessions.graph_snapshot import graph_inputs

NOW_NS = 1_700_000_000_000_000_000


class Listener:
    """Stands for a node: remembers what was subscribed to and what was said."""

    def __init__(self) -> None:
        self.callbacks: dict[str, Callable[[Any], None]] = {}
        self.profiles: dict[str, Any] = {}
        self.said: list[str] = []
        self.published: list[Any] = []

    def create_publisher(self, _: type, topic: str, __: Any) -> SimpleNamespace:
        assert topic == '/tf'
        return SimpleNamespace(publish=lambda message: self.published.extend(message.transforms))

    def create_subscription(
        self, _: type, topic: str, callback: Callable[[Any], None], profile: Any, **__: Any
    ) -> SimpleNamespace:
        self.callbacks[topic], self.profiles[topic] = callback, profile
        return SimpleNamespace()

    def get_clock(self) -> SimpleNamespace:
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=NOW_NS))

    def get_logger(self) -> SimpleNamespace:
        say = self.said.append
        logger = SimpleNamespace(info=say, warning=lambda text, **_: say(text))
        logger.get_child = lambda _: logger
        return logger


class Entered:
    """Stands for a rig: the frames of what was entered, and places."""

    def __init__(self) -> None:
        self.states: list[tuple[str, list[float]]] = []

    def add_ego_state(self, state: Any, frame_id: str, _: str) -> None:
        self.states.append((frame_id, state.pose.translation.tolist()))

    def enter(self, change: Any, urgent: bool = True) -> None:
        assert not urgent
        change(self)


class Heights:
    """Stands for a rig that only remembers what rangefinders say."""

    def __init__(self) -> None:
        self.reports: list[HeightReport] = []

    def enter(self, report: HeightReport) -> None:
        self.reports.append(report)

    def change(self, change: Any, urgent: bool = True) -> None:
        assert not urgent
        change(self)


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


@pytest.fixture(autouse=True)
def with_messages_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    px4 = ('VehicleOdometry', 'DistanceSensor', 'VehicleLocalPosition')
    for package, kinds in (('px4_msgs', px4), ('tf2_msgs', ('TFMessage',))):
        messages = ModuleType(f'{package}.msg')
        messages.__dict__.update(dict.fromkeys(kinds, SimpleNamespace))
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
        monkeypatch.setitem(sys.modules, f'{package}.msg', messages)


def listening() -> tuple[Listener, Entered]:
    node, entered = Listener(), Entered()
    GeometryInputs(cast('Node', node), entered.enter, wants_camera=False)
    return node, entered


def test_odometry_of_px4_is_entered_as_ros_has_it_unless_ros_sends_its_own() -> None:
    node, entered = listening()
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry())
    assert entered.states == [('odom', [2.0, 1.0, 3.0])]
    profile = node.profiles[names.PX4_ODOMETRY]
    assert profile.reliability == ReliabilityPolicy.BEST_EFFORT  # PX4 offers no more
    message = Odometry()
    message.pose.pose.orientation.w = 1.0
    message.header.frame_id = 'map'
    node.callbacks[names.ODOMETRY](serialize_message(message))
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry())
    assert [frame for frame, _ in entered.states] == ['odom', 'map']


def test_what_cannot_be_used_is_said() -> None:
    node, entered = listening()
    node.callbacks[names.PX4_ODOMETRY](vehicle_odometry(pose_frame=0))
    node.callbacks[names.PX4_ODOMETRY](SimpleNamespace(local_frame=0, x=1.0))  # PX4 1.13
    assert entered.states == []
    assert [text.startswith("PX4's odometry not used: ") for text in node.said] == [True, True]


def test_the_doctor_reads_odometry_of_px4_and_its_stamp() -> None:
    wanted = graph_inputs()[PX4_ODOMETRY]
    assert wanted.topic == names.PX4_ODOMETRY
    assert wanted.read(vehicle_odometry()) == 'base_link in odom, from PX4'
    assert px4_stamp_ns(vehicle_odometry(timestamp_sample=0, timestamp=7)) == 7000
    with pytest.raises(GeometryError):
        wanted.read(vehicle_odometry(pose_frame=0))


def at(moment: float, parent: str = 'odom', child: str = 'base_link') -> EgoReport:
    """Odometry of a moment, s: half a turn to the left, a metre ahead of where it began."""
    pose = Transform(np.diag([-1.0, -1.0, 1.0]), np.array([1.0, 0.0, 2.0]))
    return EgoReport(0, EgoState(NOW_NS + round(moment * NS_PER_S), pose), parent, child)


class Time:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def published(node: Listener, prefix: str = '') -> tuple[OdometryTransform, Time]:
    time = Time()
    return OdometryTransform(cast('Node', node), SimpleNamespace, prefix, time), time


def test_odometry_is_published_as_a_transform_from_the_second_second_on() -> None:
    node = Listener()
    output, time = published(node)
    for milliseconds in range(0, 2000, 10):
        time.now = milliseconds / 1000
        output.add(at(time.now, parent=''))
    begin_ns = from_time(node.published[0].header.stamp)
    assert begin_ns == NOW_NS + NS_PER_S
    steps = [from_time(edge.header.stamp) - begin_ns for edge in node.published]
    assert steps == [n * 20_000_000 for n in range(50)]  # RViz interpolates
    (edge, *_) = node.published
    assert (edge.header.frame_id, edge.child_frame_id) == ('odom', 'base_link')
    moved, turned = edge.transform.translation, edge.transform.rotation
    assert (moved.x, moved.y, moved.z) == (1.0, 0.0, 2.0)
    assert (turned.z, turned.w) == pytest.approx((1.0, 0.0))
    assert output.state == 'odom -> base_link is published'


@pytest.mark.parametrize('moment', [0.5, 3.0], ids=['before', 'while it is published'])
def test_a_transform_that_another_node_publishes_is_left_to_it(moment: float) -> None:
    node = Listener()
    output, time = published(node)
    heard = 0
    for tenth in range(60):
        time.now = tenth / 10
        output.add(at(time.now))
        if time.now >= moment:
            pose, stamp_ns = at(0.0).state.pose, NOW_NS + tenth
            edge = to_transform('map', 'base_link', pose, stamp_ns)
            output.heard(SimpleNamespace(transforms=[edge]))
        for edge in node.published[heard:]:
            output.heard(SimpleNamespace(transforms=[edge]))
        heard = len(node.published)
    count = len(node.published)
    assert bool(count) == (moment > 1.0)
    time.now = 100.0
    output.add(at(100.0))
    assert len(node.published) == count
    words = 'map -> base_link comes from another node'
    assert output.state == words
    assert node.said == [f'{words}: this node publishes none']


def test_only_odometry_is_published_and_only_where_it_is_wanted() -> None:
    def heard(publishes: bool) -> list[Any]:
        node, entered = Listener(), Entered()
        inputs = GeometryInputs(cast('Node', node), entered.enter, False, '', publishes)
        assert inputs.figures() == ({'transform': 'no odometry'} if publishes else {})
        edge = to_transform('odom', 'base_link', at(0.0).state.pose, NOW_NS)
        node.callbacks[names.TRANSFORMS](SimpleNamespace(transforms=[edge]))
        assert entered.states == [('odom', [1.0, 0.0, 2.0])]
        assert inputs.figures() == ({'transform': 'no odometry'} if publishes else {})
        message = Odometry()
        message.pose.pose.orientation.w = 1.0
        node.callbacks[names.ODOMETRY](serialize_message(message))
        return [*inputs.figures().values()]

    assert heard(False) == []
    assert heard(True) != []


# ------------------------------------------------------------------------------ rangefinders


def measuring() -> tuple[Listener, list[HeightReport]]:
    node, heights = Listener(), Heights()
    RangefinderInput(cast('Node', node), heights.change)
    return node, heights.reports


def reading(stamp_ns: int) -> Range:
    message = Range(range=6.0, min_range=0.2, max_range=20.0)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, NS_PER_S)
    return message


def test_readings_of_a_range_and_of_px4_are_entered() -> None:
    node, reports = measuring()
    node.callbacks[names.RANGEFINDER](reading(NOW_NS))
    node.callbacks[names.PX4_LOCAL_POSITION](
        SimpleNamespace(timestamp=NOW_NS // 1000, dist_bottom=5.0, dist_bottom_valid=True)
    )
    assert [(r.stamp_ns, r.distance, r.is_level) for r in reports] == [
        (NOW_NS, 6.0, False),
        (NOW_NS, 5.0, True),
    ]


def test_a_height_with_a_stamp_of_another_clock_has_the_time_of_its_arrival() -> None:
    node, reports = measuring()
    node.callbacks[names.RANGEFINDER](reading(7 * NS_PER_S))
    assert [r.stamp_ns for r in reports] == [NOW_NS]


def test_a_height_that_cannot_be_used_is_said() -> None:
    node, reports = measuring()
    node.callbacks[names.RANGEFINDER](Range(range=float('nan'), max_range=20.0))
    node.callbacks[names.PX4_DISTANCE](SimpleNamespace(timestamp=1))
    assert reports == []
    assert [text.split(' not used')[0] for text in node.said] == ['range', "PX4's height"]

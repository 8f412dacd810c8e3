"""A node says which input it misses, who should send it, and what keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from live_graph import Bystander, wait_until
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import PointCloud2

from mmedge_ros.ros.diagnostics import level_of
from mmedge_ros.ros.input_watch import LASTING, SILENCE, InputWatch
from mmedge_ros.ros.messages import qos


class Monotonic:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def listener(ros: None) -> Iterator[Node]:
    node = rclpy.create_node('listener', namespace='rig')
    yield node
    node.destroy_node()


@pytest.fixture
def clock() -> Monotonic:
    return Monotonic()


@pytest.fixture
def spoken(listener: Node) -> list[str]:
    lines: list[str] = []
    logger = SimpleNamespace(warning=lines.append, info=lines.append)
    listener.get_logger = lambda: logger  # type: ignore[assignment,method-assign]
    return lines


@pytest.fixture
def watch(listener: Node, clock: Monotonic) -> InputWatch:
    found = InputWatch(listener, clock)
    found.expect('radar', 'points', qos.SENSOR)
    return found


def test_five_seconds_of_silence_are_needed_and_half_a_minute_until_it_is_said_again(
    watch: InputWatch, clock: Monotonic, spoken: list[str]
) -> None:
    clock.now += SILENCE - 0.1
    watch.check()
    assert (watch.missing(), spoken) == ([], [])
    clock.now += 0.2
    watch.check()
    assert spoken == ['no radar input on /rig/points for 5 s: it has no publisher']
    assert watch.missing() == spoken
    for _ in range(50):
        clock.now += 1.0
        watch.check()
    assert len(spoken) == 2


WANTED = {
    'depth': 1,
    'reliability': ReliabilityPolicy.RELIABLE,
    'durability': DurabilityPolicy.TRANSIENT_LOCAL,
}


@pytest.mark.parametrize(
    ('offered', 'policy'),
    [
        (ReliabilityPolicy.BEST_EFFORT, 'reliability BEST_EFFORT, RELIABLE is wanted'),
        (DurabilityPolicy.VOLATILE, 'durability VOLATILE, TRANSIENT_LOCAL is wanted'),
    ],
    ids=['reliability', 'durability'],
)
def test_an_incompatible_policy_is_named_with_topic_and_publisher(
    listener: Node, clock: Monotonic, bystander: Bystander, offered: object, policy: str
) -> None:
    watch = InputWatch(listener, clock)
    watch.expect('radar', 'points', QoSProfile(**WANTED))
    profile = QoSProfile(**{**WANTED, policy.split()[0]: offered})
    bystander.node.create_publisher(PointCloud2, '/rig/points', profile)
    clock.now += 6.0
    said = wait_until(
        bystander.executor, lambda: next((t for t in watch.missing() if 'bystander' in t), '')
    )
    assert said == (
        'no radar input on /rig/points for 6 s; published by bystander; incompatible: '
        f'bystander offers {policy}'
    )


def test_two_publishers_of_a_sensor_are_an_error_when_they_last(
    watch: InputWatch, listener: Node, clock: Monotonic
) -> None:
    first, other = (rclpy.create_node(n, namespace='rig') for n in ('driver', 'player'))
    ends = [node.create_publisher(PointCloud2, 'points', 5) for node in (first, other)]
    wait_until(None, lambda: listener.count_publishers('/rig/points') == 2)
    watch.heard('radar')
    watch.check()
    clock.now += LASTING
    watch.heard('radar')
    (words,) = watch.missing()
    assert words == (
        'radar input on /rig/points has 2 publishers, which mix: driver, player; '
        'stop all but one, or remap'
    )
    assert level_of([words]) == DiagnosticStatus.ERROR
    other.destroy_publisher(ends[1])
    wait_until(None, lambda: listener.count_publishers('/rig/points') == 1)
    watch.check()
    assert watch.missing() == []
    for node in (first, other):
        node.destroy_node()


def test_a_second_node_of_the_same_name_is_an_error_when_it_lasts(
    watch: InputWatch, listener: Node, clock: Monotonic
) -> None:
    other = rclpy.create_node('listener', namespace='rig')
    names = listener.get_node_names_and_namespaces
    wait_until(None, lambda: names().count(('listener', '/rig')) == 2)
    watch.check()
    watch.heard('radar')
    assert watch.missing() == []  # it may have been killed and started again
    clock.now += LASTING
    watch.heard('radar')
    watch.check()
    (words,) = watch.missing()
    assert words.startswith('2 nodes are called /rig/listener: two graphs in one domain mix; stop')
    assert level_of([words]) == DiagnosticStatus.ERROR
    other.destroy_node()


def test_silence_is_an_error_unless_the_input_is_optional(
    listener: Node, clock: Monotonic
) -> None:
    watch = InputWatch(listener, clock)
    watch.expect('radar', 'points', qos.SENSOR)
    clock.now += SILENCE
    assert level_of(watch.missing()) == DiagnosticStatus.ERROR
    watch = InputWatch(listener, clock)
    watch.expect('battery', 'battery', qos.SENSOR, is_optional=True)
    clock.now += SILENCE
    assert level_of(watch.missing()) == DiagnosticStatus.WARN

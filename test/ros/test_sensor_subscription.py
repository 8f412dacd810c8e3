"""Drivers of other packages, started in a plain shell: nothing is lost, or it is said."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from live_graph import wait_until
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import ReliabilityPolicy
from sensor_msgs.msg import Image

from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.lean_executor import LeanExecutor
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.picture_input import unit_input
from mmedge_ros.ros.sensor_subscription import LossCount

# Publishes VGA pictures; stamps count them. Slow enough for a reader on a busy machine.
DRIVER = """
import array, sys
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

rclpy.init()
node = Node('foreign_camera')
profile = QoSProfile(depth=5, reliability=ReliabilityPolicy[sys.argv[1]])
publisher = node.create_publisher(Image, 'camera/image', profile)
picture = Image(height=480, width=640, encoding='bgr8', step=1920)
picture.data = array.array('B', bytes(640 * 480 * 3))

def shoot():
    picture.header.stamp.sec += 1
    publisher.publish(picture)

timer = node.create_timer(0.1, shoot)
rclpy.spin(node)
"""


@pytest.fixture
def driver(ros: None) -> Iterator[Callable[[str], None]]:
    """Start a driver in a shell that knows nothing of the package's profile."""
    plain = {k: v for k, v in os.environ.items() if not k.endswith('_DEFAULT_PROFILES_FILE')}
    plain['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    running: list[subprocess.Popen[bytes]] = []

    def start(reliability: str) -> None:
        running.append(subprocess.Popen([sys.executable, '-c', DRIVER, reliability], env=plain))

    yield start
    for process in running:
        process.kill()
        process.wait()


class Listener:
    """The input of an encoder of pictures, and what it says of itself."""

    def __init__(self, name: str = 'listener', **overrides: str) -> None:
        given = [
            Parameter(f'qos_overrides./camera/image.subscription.{policy}', value=value)
            for policy, value in overrides.items()
        ]
        self.node = Node(name, parameter_overrides=given)
        self.numbers: list[int] = []
        self.watch = InputWatch(self.node, lambda: 0.0)
        self.input = unit_input(self.node, 'camera', 'raw', self._on_picture, self.watch)
        self.executor = LeanExecutor()
        self.executor.add_node(self.node)

    def _on_picture(self, message: Any, _: Any) -> None:
        self.numbers.append(from_time(message.header.stamp) // 10**9)

    def is_reliable(self) -> bool:
        ends = self.node.get_subscriptions_info_by_topic('/camera/image')
        # Those of an earlier test may still be seen.
        own = [end.qos_profile for end in ends if end.node_name == self.node.get_name()]
        return ReliabilityPolicy.RELIABLE in {profile.reliability for profile in own}


@pytest.fixture
def listen(ros: None) -> Iterator[Callable[..., Listener]]:
    made: list[Listener] = []

    def make(name: str = 'listener', **overrides: str) -> Listener:
        made.append(Listener(name, **overrides))
        return made[-1]

    yield make
    for one in made:
        one.executor.shutdown()
        one.input.close()
        one.node.destroy_node()


def test_every_picture_of_a_reliable_driver_arrives(
    listen: Callable[..., Listener], driver: Callable[[str], None]
) -> None:
    listener = listen()
    driver('RELIABLE')

    def complete() -> bool:
        newest = listener.numbers[-20:]
        return len(newest) == 20 and newest[-1] - newest[0] == 19

    wait_until(listener.executor, complete)
    assert listener.is_reliable()


def test_what_a_hasty_driver_loses_is_said_with_the_remedy(
    listen: Callable[..., Listener], driver: Callable[[str], None]
) -> None:
    listener = listen()
    driver('BEST_EFFORT')

    def said() -> list[str]:
        # The driver of an earlier test may still be counted, and names come a moment later.
        return [words for words in listener.watch.missing() if 'foreign_camera sends at' in words]

    (words,) = wait_until(listener.executor, said)
    assert words.startswith('camera input on /camera/image: ')
    assert 'messages of the last 5 s were lost on the way; foreign_camera sends at' in words
    assert 'best effort: start it where FAST' in words
    assert words.endswith('fastdds.xml is set, or let it publish reliably')


def test_what_a_user_sets_stays(ros: None, listen: Callable[..., Listener]) -> None:
    listener, other = listen('decided', reliability='best_effort'), listen('undecided')
    driver = Node('reliable_camera')
    driver.create_publisher(Image, names.CAMERA_IMAGE, qos.RESULT)
    wait_until(other.executor, other.is_reliable)
    # What the other one has seen and done, this one has the time to see and do as well.
    ticks: list[None] = []
    listener.node.create_timer(0.5, lambda: ticks.append(None))
    wait_until(listener.executor, lambda: len(ticks) >= 3)
    seen = listener.node.get_publishers_info_by_topic('/camera/image')
    assert 'reliable_camera' in {end.node_name for end in seen}
    assert not listener.is_reliable()
    driver.destroy_node()


def count(numbers: list[int | None], gid: str = 'a') -> str:
    seconds = itertools.count(0.0, 0.03)
    losses = LossCount(lambda: next(seconds))
    for number in numbers:
        losses.heard({'publication_sequence_number': number, 'publisher_gid': gid})
    return losses.words()


def test_numbers_that_are_missing_are_losses() -> None:
    assert count([*range(1, 31)]) == ''
    assert count([*range(1, 91, 3)]) == '58 of 88 messages of the last 5 s were lost on the way'
    assert count([*range(1, 13, 3)]) == ''  # too few to tell


def test_a_publisher_that_starts_anew_or_numbers_nothing_has_lost_nothing() -> None:
    assert count([*range(5000, 5020), *range(1, 20)]) == ''
    assert count([*range(1, 20), *range(5000, 5020)]) == ''
    assert count([None] * 100) == ''

"""Configurations from outside: which are used, and what is said of the others."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import rclpy
from rclpy.node import Node

from mmedge_ros import msg
from mmedge_ros.core.data_types import NS_PER_S, STANDBY, Configuration, ModalityConfiguration
from mmedge_ros.ros.configuration_input import ConfigurationInput
from mmedge_ros.ros.messages import conversions, names
from mmedge_ros.ros.nodes.single_process import make_node

YEAR_2038_NS = 2_145_916_800 * NS_PER_S


@pytest.fixture
def node(ros: None) -> Iterator[Node]:
    made = rclpy.create_node('encoder')
    yield made
    made.destroy_node()


def message(number: int, from_ns: int, rate: float = 10.0) -> msg.Configuration:
    part = ModalityConfiguration('camera', rate)
    return conversions.to_configuration(Configuration(number, from_ns, (part,)), 0)


def test_configurations_far_ahead_of_the_clock_are_refused_in_words(node: Node) -> None:
    spoken, taken = list[str](), list[Configuration]()
    logger = SimpleNamespace(warning=lambda text, **_: spoken.append(text))
    node.get_logger = lambda: logger  # type: ignore[assignment,method-assign]
    entrance = ConfigurationInput(node, taken.append)
    now_ns = node.get_clock().now().nanoseconds
    for number in range(9):
        entrance._on_message(message(number, YEAR_2038_NS, 1e-9))
    assert (taken, entrance.words('camera'), len(spoken)) == ([], '', 9)
    assert spoken[7].startswith('configuration 7 not used: it would hold in ')
    entrance._on_message(message(10, now_ns + NS_PER_S // 2))
    entrance._on_message(message(11, now_ns - 3600 * NS_PER_S, STANDBY))
    assert [one.id for one in taken] == [10, 11]
    assert entrance.words('camera') == 'configuration 11 is in force: camera standing by'


def test_before_simulated_time_begins_nothing_is_refused(ros: None) -> None:
    taken = list[Configuration]()
    node = rclpy.create_node('encoder', cli_args=['--ros-args', '-p', 'use_sim_time:=true'])
    ConfigurationInput(node, taken.append)._on_message(message(1, YEAR_2038_NS))
    node.destroy_node()
    assert [one.id for one in taken] == [1]


def test_questions_are_answered_by_configurations_that_were_checked(
    ros: None, capfd: pytest.CaptureFixture[str]
) -> None:
    node = make_node('questions', ['--ros-args'])
    (heard,) = (s for s in node.subscriptions if s.topic_name == f'/{names.CONFIGURATION}')
    heard.callback(message(7, YEAR_2038_NS))
    node.stop()
    node.destroy_node()
    assert 'configuration 7 not used' in capfd.readouterr().err

"""The table of topics is what the nodes really do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import pytest
from camera_fakes import picture
from rclpy.action.graph import get_action_server_names_and_types_by_node
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from tiny_recogniser import write_tiny_recogniser

from mmedge_ros.ros.messages.interfaces import (
    INTERFACES,
    LATCHED,
    SENSOR,
    SERVICES,
    Interface,
)
from mmedge_ros.ros.nodes.single_process import make_node

BY_TOPIC = {f'/{interface.topic.lstrip("/")}': interface for interface in INTERFACES}
EVERYWHERE = {'/rosout', '/parameter_events'}
# Only where the messages are installed, or while somebody looks.
SOMETIMES = {'/tf', '/tf_static', '/perception/detections_2d', '/perception/detections_3d'}
PX4 = ('vehicle_odometry', 'distance_sensor', 'vehicle_local_position')
SOMETIMES |= {f'/fmu/out/{topic}' for topic in PX4}


@pytest.fixture
def arguments(
    little_bag: Path, raw_bag: Path, detector: Path, tmp_path: Path
) -> dict[str, list[list[str]]]:
    """For each executable the set-ups that bring out all its topics."""
    cv2.imwrite(str(tmp_path / '1.png'), picture())
    camera = ['source:=file', f'device:={tmp_path}']
    trace = tmp_path / 'tegrastats.log'
    trace.write_text('RAM 2274/6834MB (lfb 27x4MB) CPU [99%@1189,off]\n')
    encoder = [f'detector:={detector}']
    return {
        'camera': [camera, [*camera, 'image_transport:=compressed']],
        'radar': [['simulated:=person']],
        'bag_player': [[f'bag:={little_bag}'], [f'bag:={raw_bag}', 'clock:=true']],
        'bag_recorder': [[f'out:={tmp_path / "out"}']],
        'unit_encoder': [
            ['modality:=radar'],
            encoder,
            [*encoder, 'image_transport:=compressed'],
            [*encoder, 'memory.rate:=2.0'],
            [*encoder, f'recogniser.model:={write_tiny_recogniser(tmp_path / "recogniser")}'],
        ],
        'fusion': [[]],
        'memory': [[f'folder:={tmp_path / "flight.memory"}', *encoder]],
        'questions': [[]],
        'visualizer': [[]],
        'monitor': [[], [f'trace:={trace}']],
        'configuration_optimizer': [encoder],
    }


def name_of(kind: type) -> str:
    return f'{kind.__module__.partition(".")[0]}/msg/{kind.__name__}'


def check_quality(interface: Interface, profile: Any, publishes: bool) -> None:
    """A publisher keeps the promise of the table; a subscription asks for no more."""
    latched = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
    reliable = profile.reliability == ReliabilityPolicy.RELIABLE
    if publishes:
        assert latched == (interface.profile == LATCHED), interface.topic
        assert reliable == (interface.profile != SENSOR), interface.topic
    else:
        assert not latched or interface.profile == LATCHED, interface.topic
        assert not reliable or interface.profile != SENSOR, interface.topic


def used(node: Node, publishes: bool) -> set[str]:
    """Check a node's publishers or subscriptions by the table, and return their topics."""
    found = set()
    for end in node.publishers if publishes else node.subscriptions:
        if end.topic_name in EVERYWHERE:
            continue
        interface = BY_TOPIC[end.topic_name]
        assert interface.msgtype == name_of(end.msg_type)
        check_quality(interface, end.qos_profile, publishes)
        found.add(end.topic_name)
    return found


@pytest.mark.parametrize(
    'executable',
    [
        'camera',
        'radar',
        'bag_player',
        'bag_recorder',
        'unit_encoder',
        'fusion',
        'visualizer',
        'monitor',
        'memory',
        'questions',
        'configuration_optimizer',
    ],
)
def test_a_node_uses_the_topics_of_the_table_and_no_others(
    ros: None, arguments: dict[str, list[list[str]]], executable: str
) -> None:
    published: set[str] = set()
    taken: set[str] = set()
    for setup in arguments[executable]:
        given = [a for parameter in setup for a in ('-p', parameter)]
        node = make_node(executable, ['--ros-args', *given])
        published |= used(node, publishes=True)
        taken |= used(node, publishes=False)
        own = [s.srv_name for s in node.services if 'parameter' not in s.srv_name]
        own = [name for name in own if 'type_description' not in name]
        # An action server is no service of the node; it is found by its name.
        actions = get_action_server_names_and_types_by_node(node, node.get_name(), '')
        own += [name.lstrip('/') for name, _ in actions]
        assert own == [s.name for s in SERVICES if s.server == executable]
        getattr(node, 'stop', lambda: None)()
        node.destroy_node()
    promised = {t for t, i in BY_TOPIC.items() if executable in i.publishers} - SOMETIMES
    if executable == 'bag_player':  # the little recordings have neither
        promised -= {'/odom', '/rangefinder'}
    assert published - SOMETIMES == promised
    expected = {t for t, i in BY_TOPIC.items() if executable in i.subscribers} - SOMETIMES
    if executable == 'visualizer':  # asked for while somebody looks
        expected -= {t for t in expected if 'image' in t} | {'/perception/unit_receipts'}
    assert taken - SOMETIMES == expected

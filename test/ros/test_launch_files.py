"""The launch files yield the very nodes that `mmedge up` starts.

launch and launch_ros are only there on a ROS machine; small stand-ins take their place.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from mmedge_ros.replay.errors import ReplayError
from mmedge_ros.replay.recording import TopicChoice
from mmedge_ros.ros.graph import NodeDescription
from mmedge_ros.ros.launch_actions import is_true
from mmedge_ros.ros.up_session import UpOptions, describe_up

LAUNCH = Path(__file__).resolve().parents[2] / 'launch'


class Recorded:
    """A launch action that keeps what it was made with."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments = arguments
        self.options = options


class Node(Recorded):
    """launch_ros.actions.Node."""


class DeclareLaunchArgument(Recorded):
    """launch.actions.DeclareLaunchArgument."""


class SetEnvironmentVariable(Recorded):
    """launch.actions.SetEnvironmentVariable."""


class OpaqueFunction(Recorded):
    """launch.actions.OpaqueFunction."""


class LaunchDescription(Recorded):
    """launch.LaunchDescription."""


class LaunchConfiguration:
    """launch.substitutions.LaunchConfiguration; the context is a mapping here."""

    def __init__(self, name: str) -> None:
        self._name = name

    def perform(self, context: dict[str, str]) -> str:
        return context[self._name]


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Run a launch file with arguments, as `ros2 launch` does; returns all its actions."""
    actions = {
        'DeclareLaunchArgument': DeclareLaunchArgument,
        'OpaqueFunction': OpaqueFunction,
        'SetEnvironmentVariable': SetEnvironmentVariable,
    }
    stand_ins: dict[str, dict[str, Any]] = {
        'launch': {'LaunchDescription': LaunchDescription},
        'launch.actions': actions,
        'launch.substitutions': {'LaunchConfiguration': LaunchConfiguration},
        'launch_ros': {},
        'launch_ros.actions': {'Node': Node},
    }
    for name, content in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)

    def run(name: str, **values: str) -> list[Any]:
        spec = importlib.util.spec_from_file_location('launch_file', LAUNCH / name)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        (entities,) = module.generate_launch_description().arguments
        declared = {
            e.arguments[0]: e.options['default_value']
            for e in entities
            if isinstance(e, DeclareLaunchArgument)
        }
        assert values.keys() <= declared.keys()
        (function,) = (e for e in entities if isinstance(e, OpaqueFunction))
        return [*entities, *function.options['function'](declared | values)]

    return run


def nodes_of(actions: list[Any]) -> list[dict[str, Any]]:
    return [a.options for a in actions if isinstance(a, Node)]


def as_launched(node: NodeDescription) -> dict[str, Any]:
    return {
        'package': node.package,
        'executable': node.executable,
        'name': node.name,
        'arguments': list(node.arguments),
        'parameters': [dict(node.parameters)],
        'remappings': list(node.remappings),
        'respawn': True,
        'respawn_delay': 1.0,
        'output': 'screen',
    }


def test_a_replay_is_the_graph_of_mmedge_up(
    launch: Callable[..., list[Any]], little_bag: Path, detector: Path
) -> None:
    actions = launch(
        'replay.launch.py', bag=str(little_bag), detector=str(detector), rate='2.0', loop='true'
    )
    options = UpOptions(bag=str(little_bag), detector=str(detector), rate=2.0, loop=True)
    assert nodes_of(actions) == [as_launched(node) for node in describe_up(options)]
    by_name = {node['name']: node['parameters'][0] for node in nodes_of(actions)}
    assert list(by_name) == [
        'fusion',
        'camera_encoder',
        'radar_encoder',
        'visualizer',
        'bag_player',
    ]
    assert by_name['bag_player']['bag'] == str(little_bag)
    assert by_name['camera_encoder']['image_transport'] == 'compressed'
    assert all(p['use_sim_time'] for n, p in by_name.items() if n != 'bag_player')


def test_a_replay_in_one_process_hands_every_node_its_parameters(
    launch: Callable[..., list[Any]], little_bag: Path, detector: Path
) -> None:
    (node,) = nodes_of(
        launch(
            'replay.launch.py',
            bag=str(little_bag),
            detector=str(detector),
            single_process='true',
        )
    )
    assert (node['executable'], node['parameters'], node['respawn']) == (
        'single_process',
        [],
        False,
    )
    described = json.loads(node['arguments'][0])
    assert [executable for executable, _ in described] == [
        'fusion',
        'unit_encoder',
        'unit_encoder',
        'visualizer',
        'bag_player',
    ]
    arguments = described[1][1]
    content = yaml.safe_load(Path(arguments[-1]).read_text())
    assert content['camera_encoder']['ros__parameters']['detector'] == str(detector)
    assert '__node:=camera_encoder' in arguments


def test_the_drone_is_the_graph_of_mmedge_up_beside_drivers(
    launch: Callable[..., list[Any]], detector: Path
) -> None:
    actions = launch(
        'perception.launch.py',
        camera='/front/image_raw',
        radar='/ti/points',
        odometry='/mavros/odom',
        detector=str(detector),
        use_sim_time='true',
    )
    topics = TopicChoice('/front/image_raw', '/ti/points', '/mavros/odom')
    options = UpOptions(detector=str(detector), topics=topics, clock=True)
    assert nodes_of(actions) == [as_launched(node) for node in describe_up(options)]
    for node in nodes_of(actions):
        assert node['remappings'] == [
            ('camera/image', '/front/image_raw'),
            ('camera/image/compressed', '/front/image_raw/compressed'),
            ('camera/camera_info', '/front/camera_info'),
            ('radar/points', '/ti/points'),
            ('odom', '/mavros/odom'),
        ]
        assert node['parameters'][0]['use_sim_time'] is True


def test_the_demo_loops_the_recording_beside_rviz(
    launch: Callable[..., list[Any]],
    data_folder: Path,
) -> None:
    *graph, rviz = nodes_of(launch('demo.launch.py'))
    options = UpOptions(bag=str(data_folder / 'millieye/night_walk'), loop=True)
    assert graph == [as_launched(node) for node in describe_up(options)]
    assert (rviz['package'], rviz['executable'], rviz['respawn']) == ('rviz2', 'rviz2', False)
    assert Path(rviz['arguments'][1]).is_file()
    assert len(nodes_of(launch('demo.launch.py', rviz='false'))) == len(graph)


def test_the_demo_says_what_it_lacks(
    launch: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('MMEDGE_DATA', raising=False)
    with pytest.raises(ReplayError, match='set MMEDGE_DATA'):
        launch('demo.launch.py')


def test_the_profile_for_shared_memory_is_set_unless_the_user_has_one(
    launch: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch, detector: Path
) -> None:
    def variables() -> dict[str, str]:
        actions = launch('perception.launch.py', detector=str(detector))
        return dict(a.arguments for a in actions if isinstance(a, SetEnvironmentVariable))

    monkeypatch.setenv('FASTDDS_DEFAULT_PROFILES_FILE', 'mine.xml')
    assert variables() == {}
    monkeypatch.delenv('FASTDDS_DEFAULT_PROFILES_FILE')
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    (variable,) = variables().items()
    assert variable[0] == 'FASTDDS_DEFAULT_PROFILES_FILE'
    assert '<dds' in Path(variable[1]).read_text()
    monkeypatch.setenv('ROS_DISTRO', 'humble')
    assert list(variables()) == ['FASTRTPS_DEFAULT_PROFILES_FILE']


@pytest.mark.parametrize('name', [path.name for path in sorted(LAUNCH.glob('*.py'))])
def test_every_argument_is_described(launch: Callable[..., list[Any]], name: str) -> None:
    spec = importlib.util.spec_from_file_location('launch_file', LAUNCH / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (entities,) = module.generate_launch_description().arguments
    declared = [e for e in entities if isinstance(e, DeclareLaunchArgument)]
    assert len(declared) >= 2
    assert all(len(e.options['description']) > 10 for e in declared)


def test_switches_are_read_as_people_write_them() -> None:
    assert [is_true(text) for text in ('true', 'True', ' 1', 'on', 'yes')] == [True] * 5
    assert [is_true(text) for text in ('false', '0', '', 'off', 'no')] == [False] * 5

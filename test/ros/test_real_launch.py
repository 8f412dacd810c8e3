"""The launch files under the real launch and launch_ros; on ROS machines only.

Elsewhere test_launch_files runs them with stand-ins.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_graph import Bystander, check_decision, python_environment

FILES = Path(__file__).resolve().parents[2] / 'launch'

launch_ros = pytest.importorskip('launch_ros.actions', reason='launch_ros is not installed')
launch = pytest.importorskip('launch.launch_context', reason='launch is not installed')


def description_of(name: str) -> Any:
    """Load a launch file and make its description."""
    spec = importlib.util.spec_from_file_location('launch_file', FILES / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def started(name: str, **values: str) -> list[tuple[Any, Any]]:
    """Evaluate a launch file; packages and executables of the nodes it would start."""
    context = launch.LaunchContext()
    context.launch_configurations.update(values)
    description = description_of(name)
    assert {a.name for a in description.get_launch_arguments()} >= values.keys()
    found: list[Any] = []
    for entity in description.entities:
        found += entity.visit(context) or []
    nodes = [action for action in found if isinstance(action, launch_ros.Node)]
    return [(node.node_package, node.node_executable) for node in nodes]


def test_the_drone_starts_drivers_graph_transforms_and_recorder(
    detector: Path, tmp_path: Path
) -> None:
    nodes = started(
        'drone.launch.py',
        detector=str(detector),
        odometry='/mavros/odom',
        namespace='drone1',
        record=str(tmp_path / 'flight'),
        rviz='true',
    )
    ours = [executable for package, executable in nodes if package == 'mmedge_ros']
    assert sorted(ours) == [
        'bag_recorder',
        'camera',
        'fusion',
        'radar',
        'unit_encoder',
        'unit_encoder',
        'visualizer',
    ]
    assert nodes.count(('tf2_ros', 'static_transform_publisher')) == 2
    assert ('rviz2', 'rviz2') in nodes


@pytest.mark.parametrize(
    ('name', 'values', 'count'),
    [
        ('rviz.launch.py', {'fixed_frame': 'odom'}, 1),
        ('record.launch.py', {'out': 'flight'}, 1),
        ('record.launch.py', {'out': 'flight', 'rosbag2': 'true'}, 0),
        ('replay.launch.py', {'single_process': 'true'}, 1),
    ],
)
def test_a_launch_file_is_understood(
    little_bag: Path, detector: Path, name: str, values: dict[str, str], count: int
) -> None:
    if name == 'replay.launch.py':
        values = {**values, 'bag': str(little_bag), 'detector': str(detector)}
    assert len(started(name, **values)) == count


PROGRAM = """
import json, sys
from launch import LaunchService
from test_real_launch import description_of
service = LaunchService(noninteractive=True)
service.context.launch_configurations.update(json.loads(sys.argv[2]))
service.include_launch_description(description_of(sys.argv[1]))
sys.exit(service.run())
"""


@pytest.fixture
def launched() -> Iterator[Callable[..., None]]:
    """Run launch files as `ros2 launch` does, until Ctrl-C."""
    running: list[subprocess.Popen[bytes]] = []

    def run(name: str, **values: str) -> None:
        environment = python_environment()
        path = [str(Path(__file__).parent), environment['PYTHONPATH'], *filter(None, sys.path)]
        environment['PYTHONPATH'] = os.pathsep.join(path)
        command = [sys.executable, '-c', PROGRAM, name, json.dumps(values)]
        running.append(subprocess.Popen(command, env=environment, start_new_session=True))

    yield run
    for process in running:
        process.send_signal(signal.SIGINT)
        assert process.wait(30.0) == 0


def test_a_launched_replay_decides_and_ends(
    launched: Callable[..., None], little_bag: Path, detector: Path, bystander: Bystander
) -> None:
    launched('replay.launch.py', bag=str(little_bag), detector=str(detector), loop='true')
    for message in bystander.wait_for_decisions(15):
        check_decision(message)
    bystander.wait_until(lambda: any(d.tracks for d in bystander.decisions))

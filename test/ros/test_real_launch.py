"""The launch files under the real launch and launch_ros; where these are on the path.

They are on ROS machines, and not among the packages from PyPI; their sources (ros2/launch and
ros2/launch_ros, with osrf_pycommon and composition_interfaces) on PYTHONPATH will do. Elsewhere
test_launch_files runs the files with stand-ins.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_graph import (
    Bystander,
    check_decision,
    python_environment,
    wait_until,
)

from mmedge_ros.ros.graph import launch_actions

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


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether RViz, tf2_ros and ros2 are there differs between machines."""
    monkeypatch.setattr(launch_actions, 'is_installed', lambda _: True)


@pytest.mark.usefixtures('everything_installed')
@pytest.mark.parametrize(
    ('name', 'values', 'count'),
    [
        ('demo.launch.py', {}, 6),
        ('perception.launch.py', {'battery': '/mavros/battery', 'camera': '/front/image'}, 6),
        ('rviz.launch.py', {'fixed_frame': 'odom'}, 1),
        ('record.launch.py', {'out': 'flight'}, 1),
        ('replay.launch.py', {'single_process': 'true'}, 1),
    ],
)
def test_a_launch_file_is_understood(
    little_bag: Path, detector: Path, name: str, values: dict[str, str], count: int
) -> None:
    if name in ('demo.launch.py', 'replay.launch.py'):
        values = {**values, 'bag': str(little_bag)}
    if name in ('perception.launch.py', 'replay.launch.py'):
        values = {**values, 'detector': str(detector)}
    assert len(started(name, **values)) == count


# As `ros2 launch`; with a file of its own around ours that sets a parameter for all nodes.
PROGRAM = """
import json, sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import SetParameter
file, values, parameters = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
source = PythonLaunchDescriptionSource(file)
ours = IncludeLaunchDescription(source, launch_arguments=list(values.items()))
service = LaunchService(noninteractive=True)
around = [SetParameter(name, value) for name, value in parameters.items()]
service.include_launch_description(LaunchDescription([*around, ours]))
sys.exit(service.run())
"""


class Launched:
    """A launch file as `ros2 launch` runs it; ``text`` is what it and its nodes have said."""

    def __init__(self, log: Path, name: str, parameters: dict[str, Any], **values: str) -> None:
        self._log = log
        environment = python_environment()
        path = [environment['PYTHONPATH'], *filter(None, sys.path)]
        environment['PYTHONPATH'] = os.pathsep.join(path)
        arguments = [str(FILES / name), json.dumps(values), json.dumps(parameters)]
        with log.open('wb') as file:
            self.process = subprocess.Popen(
                [sys.executable, '-c', PROGRAM, *arguments],
                env=environment,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def text(self) -> str:
        return self._log.read_text(errors='replace')

    def pids(self, executable: str) -> list[int]:
        """Return the processes that were started of an executable, in order."""
        pattern = rf'\[{executable}-\d+\]: process started with pid \[(\d+)\]'
        return [int(pid) for pid in re.findall(pattern, self.text)]

    def stop(self) -> int:
        """Press Ctrl-C, which reaches launch and its nodes, and return the exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(30.0)


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Callable[..., Launched]]:
    running: list[Launched] = []

    def run(name: str, parameters: dict[str, Any] | None = None, **values: str) -> Launched:
        log = tmp_path / f'launch{len(running)}.log'
        running.append(Launched(log, name, parameters or {}, **values))
        return running[-1]

    yield run
    for one in running:
        assert one.stop() in (0, 1, -signal.SIGKILL), one.text


def test_a_launched_replay_decides_and_ends_without_a_traceback(
    launched: Callable[..., Launched], little_bag: Path, detector: Path, bystander: Bystander
) -> None:
    replay = launched('replay.launch.py', bag=str(little_bag), detector=str(detector), loop='true')
    for message in bystander.wait_for_decisions(15):
        check_decision(message)
    bystander.wait_until(lambda: any(d.tracks for d in bystander.decisions))
    assert replay.stop() == 0
    assert 'Traceback' not in replay.text
    assert replay.text.count('process has finished cleanly') == 5


def test_what_cannot_be_set_up_stays_down_and_what_is_killed_comes_back(
    launched: Callable[..., Launched], detector: Path, tmp_path: Path
) -> None:
    wrong = tmp_path / 'wrong.yaml'
    wrong.write_text('monitor:\n  ros__parameters: {no_such_parameter: 1}\n')
    graph = launched('perception.launch.py', detector=str(detector), params=str(wrong))
    wait_until(None, lambda: re.search(r'monitor-\d+\]: process has died', graph.text))
    # Were both started again, the other one would come first.
    os.kill(graph.pids('visualizer')[0], signal.SIGKILL)
    wait_until(None, lambda: len(graph.pids('visualizer')) == 2)
    assert len(graph.pids('monitor')) == 1

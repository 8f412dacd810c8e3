"""Reads the graph's description for `ros2 launch`; needs a ROS machine."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.ros.graph.description import (
    PACKAGE,
    NodeDescription,
    in_namespace,
    process_arguments,
    transform_nodes,
)
from mmedge_ros.ros.graph.middleware_profile import node_environment
from mmedge_ros.ros.graph.options import is_true
from mmedge_ros.ros.node_main import NOT_MADE, PARENT_VARIABLE
from mmedge_ros.viewing.live_page import DEFAULT_PORT

# What every launch file takes: name, default and description.
COMMON_ARGUMENTS = (
    ('namespace', '', 'of all nodes and their relative topics, such as drone1'),
    ('log_level', 'info', 'of all nodes: debug, info, warn, error or fatal'),
    ('params', '', 'ROS parameter file for all nodes, such as config/perception.yaml'),
    ('network', 'false', 'let other machines take part, such as a laptop with RViz'),
)

# What launch files of the graph take beside their options.
VIEW = ('view', 'false', 'serve a live page at 127.0.0.1 (the log says the port)')
USE_SIM_TIME = ('use_sim_time', 'false', 'follow /clock, as under ros2 bag play --clock')


def view_port(values: Mapping[str, str]) -> int:
    """Return the first port to try for the live page, 0 where none is wanted."""
    return DEFAULT_PORT if is_true(values[VIEW[0]]) else 0


def launch_nodes(
    nodes: Sequence[NodeDescription], log_level: str = 'info', params: str = ''
) -> list[Any]:
    """Turn descriptions into launch_ros actions; nodes that break down are started again.

    :param params: parameter file that comes after the nodes' own parameters
    """
    from launch_ros.actions import Node

    file = [params] if params else []
    return [
        Node(
            package=node.package,
            executable=node.executable,
            name=node.name,
            namespace=node.namespace,
            arguments=_arguments(node, file),
            parameters=_parameters(node, file),
            ros_arguments=['--log-level', log_level],
            remappings=list(node.remappings),
            respawn=node.respawn,
            respawn_delay=1.0,
            on_exit=_leave_down,
            output='screen',
        )
        for node in nodes
    ]


def _leave_down(event: Any, _: Any) -> list[Any]:
    """Start a node that has ended by itself, or that cannot be set up, not again."""
    from launch.actions import EmitEvent
    from launch.events import matches_action
    from launch.events.process import ShutdownProcess

    if event.returncode not in (0, NOT_MADE):
        return []
    return [EmitEvent(event=ShutdownProcess(process_matcher=matches_action(event.action)))]


def _parameters(node: NodeDescription, file: list[str]) -> list[Any]:
    own = [dict(node.parameters)] if node.parameters else []
    # A file for our nodes says nothing to those of other packages; one process of several nodes
    # hands it to each of them.
    is_ours = node.package == PACKAGE and not node.members
    return [*own, *file] if is_ours else own


def _arguments(node: NodeDescription, file: list[str]) -> list[str]:
    if not node.members:
        return list(node.arguments)
    # The process reads its nodes' parameter files while it starts, after this returns.
    folder = Path(tempfile.mkdtemp(prefix='mmedge_'))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return process_arguments(node, folder, [Path(path) for path in file])


def share_file(*parts: str) -> Path:
    """Return the path of an installed file of the package."""
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory(PACKAGE), *parts)


def launch_description(
    arguments: Sequence[tuple[str, str, str]],
    describe: Callable[[dict[str, str]], Sequence[NodeDescription]],
) -> Any:
    """Make a launch description whose nodes depend on its arguments.

    :param arguments: name, default and description of each launch argument; COMMON_ARGUMENTS
        join them
    :param describe: called with the arguments' values when the launch file runs
    """
    from launch.actions import (
        DeclareLaunchArgument,
        LogInfo,
        OpaqueFunction,
        SetEnvironmentVariable,
    )
    from launch.substitutions import LaunchConfiguration

    from launch import LaunchDescription  # type: ignore[attr-defined]  # our folder launch/

    declared = [*arguments, *COMMON_ARGUMENTS]

    def start(context: Any) -> list[Any]:
        take_interrupts_in_loop(context)
        values = {name: LaunchConfiguration(name).perform(context) for name, _, _ in declared}
        if values['params'] and not Path(values['params']).is_file():
            raise ParameterError(f'params:={values["params"]}: there is no such file')
        variables = {
            **node_environment(network=is_true(values['network'])),
            # Nodes end with launch, however it ends.
            PARENT_VARIABLE: str(os.getpid()),
        }
        nodes, missing = _installed(describe(values))
        return [
            *(SetEnvironmentVariable(*item) for item in variables.items()),
            *(LogInfo(msg=words) for words in missing),
            *launch_nodes(
                in_namespace(nodes, values['namespace']), values['log_level'], values['params']
            ),
        ]

    actions: list[Any] = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, default, text in declared
    ]
    return LaunchDescription([*actions, OpaqueFunction(function=start)])


def take_interrupts_in_loop(context: Any) -> None:
    """Let launch hear of Ctrl-C in its event loop alone, while that runs.

    There it is told by a descriptor. Python raises KeyboardInterrupt beside that, wherever it is
    just then; where a process was being started launch would wait for its end for ever.

    :param context: launch's, which has a loop while launch runs
    """

    def interrupted(number: int, frame: Any) -> None:
        if getattr(context, 'asyncio_loop', None) is None:
            signal.default_int_handler(number, frame)

    # Whoever runs launch may have a handler of his own, or no main thread.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, interrupted)


def _installed(nodes: Sequence[NodeDescription]) -> tuple[list[NodeDescription], list[str]]:
    """Return what can be started, and sentences about what cannot and is left out.

    launch itself would find out when half of the nodes run.

    :raises ParameterError: if nothing is left
    """
    there = [node for node in nodes if is_installed(node)]
    absent = dict.fromkeys(node.package for node in nodes if node not in there)
    missing = [f'{package} is not installed' for package in absent]
    if not there:
        raise ParameterError('; '.join(missing))
    return there, [f'{words}: going without it' for words in missing]


def is_installed(node: NodeDescription) -> bool:
    """Return whether the package of a node is there."""
    from ament_index_python.packages import PackageNotFoundError, get_package_prefix

    try:
        get_package_prefix(node.package)
    except PackageNotFoundError:
        return False
    return True


def extrinsics_nodes(path: str, prefix: str = '') -> list[NodeDescription]:
    """Describe publishers of the transforms of a YAML file.

    :param prefix: before the names of frames
    :raises GeometryError: if it cannot be read
    """
    return transform_nodes(read_calibration(path).transforms, prefix)

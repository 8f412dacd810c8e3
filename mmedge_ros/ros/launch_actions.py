"""Reads the graph's description for `ros2 launch`; needs a ROS machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mmedge_ros.ros.graph import PACKAGE, NodeDescription, process_arguments
from mmedge_ros.ros.middleware_profile import profile_environment


def launch_nodes(nodes: Sequence[NodeDescription]) -> list[Any]:
    """Turn descriptions into launch_ros actions; ended nodes are started again."""
    from launch_ros.actions import Node

    return [
        Node(
            package=node.package,
            executable=node.executable,
            name=node.name,
            arguments=_arguments(node),
            parameters=[dict(node.parameters)] if node.parameters else [],
            remappings=list(node.remappings),
            respawn=node.respawn,
            respawn_delay=1.0,
            output='screen',
        )
        for node in nodes
    ]


def _arguments(node: NodeDescription) -> list[str]:
    if not node.members:
        return list(node.arguments)
    # The process reads its nodes' parameter files while it starts, after this returns.
    return process_arguments(node, Path(tempfile.mkdtemp(prefix='mmedge_')))


def share_file(*parts: str) -> Path:
    """Return the path of an installed file of the package."""
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory(PACKAGE), *parts)


def launch_description(
    arguments: Sequence[tuple[str, str, str]],
    describe: Callable[[dict[str, str]], list[NodeDescription]],
) -> Any:
    """Make a launch description whose nodes depend on its arguments.

    :param arguments: name, default and description of each launch argument
    :param describe: called with the arguments' values when the launch file runs
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetEnvironmentVariable
    from launch.substitutions import LaunchConfiguration

    from launch import LaunchDescription  # type: ignore[attr-defined]  # our folder launch/

    def start(context: Any) -> list[Any]:
        values = {name: LaunchConfiguration(name).perform(context) for name, _, _ in arguments}
        return launch_nodes(describe(values))

    actions: list[Any] = [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, default, text in arguments
    ]
    actions += [SetEnvironmentVariable(*item) for item in profile_environment().items()]
    return LaunchDescription([*actions, OpaqueFunction(function=start)])


def is_true(text: str) -> bool:
    """Read a launch argument that switches something."""
    return text.strip().lower() in ('1', 'true', 'yes', 'on')

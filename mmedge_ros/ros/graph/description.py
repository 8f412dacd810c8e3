"""Descriptions of nodes, and what their processes get; launch files and commands read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros.geometry.sensor_poses import RADAR_FRAME
from mmedge_ros.geometry.transforms import (
    StampedTransform,
    quaternion_from_rotation,
    with_prefix,
)

PACKAGE = 'mmedge_ros'
OPTIMIZER = 'configuration_optimizer'


@dataclass(frozen=True)
class NodeDescription:
    """A node to start: its executable (the module's name under ``ros.nodes``) and set-up.

    ``members`` are the nodes that live in this one's process, for `single_process`. The
    ``namespace`` is that of the node and of all its relative names. ``module`` is another program
    for the same node; '' is the executable's own.
    """

    name: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Sequence[tuple[str, str]] = ()
    respawn: bool = True
    members: Sequence[NodeDescription] = ()
    package: str = PACKAGE
    arguments: Sequence[str] = ()
    namespace: str = ''
    module: str = ''


def sim_time(simulated: bool) -> dict[str, Any]:
    """Return the parameter that lets a node follow /clock.

    Not following is what nodes do anyway; said here it would overrule what a launch file around
    ours sets for all nodes.
    """
    return {'use_sim_time': True} if simulated else {}


def single_process(nodes: Sequence[NodeDescription]) -> NodeDescription:
    """Describe one process that runs all the nodes."""
    return NodeDescription('single_process', 'single_process', respawn=False, members=nodes)


def rviz_node(
    configuration: Path, fixed_frame: str = '', use_sim_time: bool = False, prefix: str = ''
) -> NodeDescription:
    """Describe RViz with the package's view; for ROS machines.

    :param fixed_frame: takes the place of the view's own
    :param prefix: before the names of frames
    """
    fixed_frame = fixed_frame or (prefix and prefix + RADAR_FRAME)
    frame = ['-f', fixed_frame] if fixed_frame else []
    return NodeDescription(
        'rviz2',
        'rviz2',
        sim_time(use_sim_time),
        respawn=False,
        package='rviz2',
        arguments=['-d', str(configuration), *frame],
    )


def transform_nodes(
    transforms: Sequence[StampedTransform], prefix: str = ''
) -> list[NodeDescription]:
    """Describe publishers of static transforms, for RViz and others; for ROS machines.

    :param prefix: before the names of frames
    """
    nodes = []
    for edge in (with_prefix(transform, prefix) for transform in transforms):
        x, y, z = (f'{float(v):.9g}' for v in edge.translation)
        qx, qy, qz, qw = (f'{v:.9g}' for v in quaternion_from_rotation(edge.rotation))
        arguments = {
            '--x': x,
            '--y': y,
            '--z': z,
            '--qx': qx,
            '--qy': qy,
            '--qz': qz,
            '--qw': qw,
            '--frame-id': edge.parent,
            '--child-frame-id': edge.child,
        }
        nodes.append(
            NodeDescription(
                f'transform_of_{_as_name(edge.child)}',
                'static_transform_publisher',
                package='tf2_ros',
                arguments=[word for pair in arguments.items() for word in pair],
            )
        )
    return nodes


def in_namespace(nodes: Sequence[NodeDescription], namespace: str) -> list[NodeDescription]:
    """Put nodes into a namespace, those that live in one process as well."""
    if not namespace:
        return list(nodes)
    return [
        replace(node, namespace=namespace, members=in_namespace(node.members, namespace))
        for node in nodes
    ]


def process_arguments(
    node: NodeDescription, folder: Path, params_files: Sequence[Path] = ()
) -> list[str]:
    """Write the parameter files of a process into ``folder`` and return its arguments."""
    if not node.members:
        own = [write_parameters(node, folder)] if node.parameters else []
        return ros_arguments(node, [*own, *params_files])
    described = [
        [member.executable, process_arguments(member, folder, params_files)]
        for member in node.members
    ]
    return [json.dumps(described)]


def ros_arguments(node: NodeDescription, params_files: Sequence[Path] = ()) -> list[str]:
    """Return the command line arguments that give a process its node's set-up."""
    arguments = ['--ros-args', '-r', f'__node:={node.name}']
    if node.namespace:
        arguments += ['-r', f'__ns:=/{node.namespace.strip("/")}']
    for origin, target in node.remappings:
        arguments += ['-r', f'{origin}:={target}']
    for path in params_files:
        arguments += ['--params-file', str(path)]
    return arguments


def write_parameters(node: NodeDescription, folder: Path) -> Path:
    """Write the node's parameters as a file ROS reads; types survive that way."""
    path = folder / f'{node.name}.yaml'
    # A name alone would be that of a node without a namespace.
    key = f'/**/{node.name}' if node.namespace else node.name
    content = {key: {'ros__parameters': dict(node.parameters)}}
    path.write_text(yaml.safe_dump(content, sort_keys=True))
    return path


def _as_name(frame: str) -> str:
    """Make a frame's name one that a node may have."""
    return re.sub('[^A-Za-z0-9_]', '_', frame)

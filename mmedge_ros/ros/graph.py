"""The one description of the graph; launch files and the `mmedge` command both read it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros.data_types import CAMERA, RADAR

PACKAGE = 'mmedge_ros'


@dataclass(frozen=True)
class NodeDescription:
    """A node to start: its executable (the module's name under ``ros.nodes``) and set-up.

    ``members`` are the nodes that live in this one's process, for `single_process`.
    """

    name: str
    executable: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remappings: Sequence[tuple[str, str]] = ()
    respawn: bool = True
    members: Sequence[NodeDescription] = ()
    package: str = PACKAGE
    arguments: Sequence[str] = ()


@dataclass(frozen=True)
class GraphOptions:
    """What differs between one start of the graph and another.

    ``bag`` adds a player for that recording, whose stamps are moved by a multiple of
    ``stride`` (s). ``remappings`` apply to every node (such as camera/image to a driver's topic).
    """

    modalities: tuple[str, ...] = (CAMERA, RADAR)
    bag: str = ''
    bag_topics: Mapping[str, str] = field(default_factory=dict)
    rate: float = 1.0
    loop: bool = False
    clock: bool = False
    stride: float = 0.1
    detector: str = ''
    calibration: str = ''
    transforms: tuple[str, ...] = ()
    image_transport: str = 'raw'
    use_sim_time: bool = False
    visualizer: bool = True
    wait_for: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()


def perception_graph(options: GraphOptions) -> list[NodeDescription]:
    """Describe the nodes of a graph, consumers first and the source last."""
    simulated = options.use_sim_time or options.clock or options.rate != 1.0
    shared: dict[str, Any] = {'use_sim_time': simulated}
    nodes = [
        NodeDescription(
            'fusion',
            'fusion',
            {
                **shared,
                'calibration_file': options.calibration,
                'transforms': list(options.transforms) or [''],
                'pipeline.modalities': list(options.modalities),
            },
            options.remappings,
        )
    ]
    nodes += [
        NodeDescription(
            f'{modality}_encoder',
            'unit_encoder',
            {**shared, 'modality': modality, **_camera_parameters(modality, options)},
            options.remappings,
        )
        for modality in options.modalities
    ]
    if options.visualizer:
        nodes.append(
            NodeDescription(
                'visualizer',
                'visualizer',
                {**shared, 'image_transport': options.image_transport},
                options.remappings,
            )
        )
    if options.bag:
        nodes.append(_bag_player(options))
    return nodes


def _camera_parameters(modality: str, options: GraphOptions) -> dict[str, Any]:
    if modality != CAMERA:
        return {}
    return {'detector': options.detector, 'image_transport': options.image_transport}


def _bag_player(options: GraphOptions) -> NodeDescription:
    encoders = [f'{modality}_encoder' for modality in options.modalities]
    return NodeDescription(
        'bag_player',
        'bag_player',
        {
            'bag': options.bag,
            'rate': options.rate,
            'loop': options.loop,
            'clock': options.clock,
            'stride': options.stride,
            'wait_for': ['fusion', *encoders, *options.wait_for],
            **{f'topics.{name}': topic for name, topic in options.bag_topics.items()},
        },
    )


def single_process(nodes: Sequence[NodeDescription]) -> NodeDescription:
    """Describe one process that runs all the nodes."""
    return NodeDescription('single_process', 'single_process', respawn=False, members=nodes)


def rviz_node(configuration: Path) -> NodeDescription:
    """Describe RViz with the package's view; for ROS machines."""
    return NodeDescription(
        'rviz2', 'rviz2', respawn=False, package='rviz2', arguments=['-d', str(configuration)]
    )


def process_arguments(
    node: NodeDescription, folder: Path, params_files: Sequence[Path] = ()
) -> list[str]:
    """Write the parameter files of a process into ``folder`` and return its arguments."""
    if not node.members:
        return ros_arguments(node, [write_parameters(node, folder), *params_files])
    described = [
        [member.executable, process_arguments(member, folder, params_files)]
        for member in node.members
    ]
    return [json.dumps(described)]


def ros_arguments(node: NodeDescription, params_files: Sequence[Path] = ()) -> list[str]:
    """Return the command line arguments that give a process its node's set-up."""
    arguments = ['--ros-args', '-r', f'__node:={node.name}']
    for origin, target in node.remappings:
        arguments += ['-r', f'{origin}:={target}']
    for path in params_files:
        arguments += ['--params-file', str(path)]
    return arguments


def write_parameters(node: NodeDescription, folder: Path) -> Path:
    """Write the node's parameters as a file ROS reads; types survive that way."""
    path = folder / f'{node.name}.yaml'
    content = {node.name: {'ros__parameters': dict(node.parameters)}}
    path.write_text(yaml.safe_dump(content, sort_keys=True))
    return path

"""The one description of the graph; launch files and the `mmedge` command both read it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.geometry.sensor_poses import CAMERA_FRAME, RADAR_FRAME
from mmedge_ros.geometry.transforms import (
    StampedTransform,
    quaternion_from_rotation,
    with_prefix,
)

PACKAGE = 'mmedge_ros'
OPTIMIZER = 'configuration_optimizer'
# Looks at each object per second for a flight memory, where one is kept: views a second apart are
# kept, and the best of two looks is better than one.
LOOKS = 2.0


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


@dataclass(frozen=True)
class CommandDescription:
    """A program of another package to start, beside the nodes of a launch file."""

    command: Sequence[str]


@dataclass(frozen=True)
class GraphOptions:
    """What differs between one start of the graph and another.

    ``bag`` adds a player for that recording, whose stamps are moved by a multiple of
    ``stride`` (s); ``simulated``: the pictures come from the simulator.
    About every ``reuse``-th picture is encoded; ``recogniser`` is the encoder's parameter
    ``recogniser.model``. ``remappings`` apply to every node (such as camera/image to a driver's
    topic).
    ``camera`` and ``radar`` add our own drivers with these parameters; without them others are
    expected. ``monitor`` adds the monitor with these parameters, ``optimizer`` the node that
    chooses configurations; ``viewer`` the live page. ``memory`` is the folder of a flight memory.
    ``questions`` adds the node that answers questions, with these parameters.
    ``frame_prefix`` comes before the names of frames.
    """

    modalities: tuple[str, ...] = (CAMERA, RADAR)
    bag: str = ''
    bag_topics: Mapping[str, str] = field(default_factory=dict)
    bag_pictures: Mapping[str, float] = field(default_factory=dict)
    rate: float = 1.0
    loop: bool = False
    clock: bool = False
    stride: float = 0.1
    detector: str = ''
    simulated: bool = False
    calibration: str = ''
    transforms: tuple[str, ...] = ()
    image_transport: str = 'raw'
    reuse: int = 1
    recogniser: str = ''
    use_sim_time: bool = False
    visualizer: bool = True
    wait_for: tuple[str, ...] = ()
    remappings: tuple[tuple[str, str], ...] = ()
    camera: Mapping[str, Any] | None = None
    radar: Mapping[str, Any] | None = None
    monitor: Mapping[str, Any] | None = None
    optimizer: Mapping[str, Any] | None = None
    viewer: Mapping[str, Any] | None = None
    memory: str = ''
    questions: Mapping[str, Any] | None = None
    frame_prefix: str = ''


def perception_graph(options: GraphOptions) -> list[NodeDescription]:
    """Describe the nodes of a graph, consumers first and the source last."""
    simulated = options.use_sim_time or options.clock or options.rate != 1.0
    shared = sim_time(simulated)
    nodes = [
        NodeDescription(
            'fusion',
            'fusion',
            {
                **shared,
                'calibration_file': options.calibration,
                'transforms': list(options.transforms) or [''],
                'pipeline.modalities': list(options.modalities),
                # Odometry of a recording has no other publisher of its transform, or is silent.
                'publish_transform': bool(options.bag),
                **_frames(options),
                **_model_parameters(options),
            },
            options.remappings,
        )
    ]
    nodes += [
        NodeDescription(
            f'{modality}_encoder',
            'unit_encoder',
            {**shared, 'modality': modality, **_encoder_parameters(modality, options)},
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
    if options.memory:
        given = {
            **shared,
            'folder': options.memory,
            'calibration_file': options.calibration,
            'transforms': list(options.transforms) or [''],
            **_frames(options),
            **_model_parameters(options),
        }
        nodes.append(NodeDescription('memory', 'memory', given, options.remappings))
    if options.questions is not None:
        given = {
            **shared,
            'folder': options.memory,
            **_frames(options),
            **_model_parameters(options),
            **options.questions,
        }
        nodes.append(NodeDescription('questions', 'questions', given, options.remappings))
    if options.viewer is not None:
        nodes.append(_viewer(options, shared))
    if options.optimizer is not None:
        nodes.append(_optimizer(options, {**shared, **options.optimizer}))
    drivers = {
        'monitor': options.monitor,
        CAMERA: _named(options, CAMERA_FRAME, options.camera),
        RADAR: _named(options, RADAR_FRAME, options.radar),
    }
    nodes += [
        NodeDescription(name, name, {**shared, **parameters}, options.remappings)
        for name, parameters in drivers.items()
        if parameters is not None
    ]
    if options.bag:
        nodes.append(_bag_player(options))
    return nodes


def _frames(options: GraphOptions) -> dict[str, Any]:
    return {'frame_prefix': options.frame_prefix} if options.frame_prefix else {}


def _named(
    options: GraphOptions, frame: str, driver: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """Give a driver's frame the prefix of the drone."""
    if driver is None or not options.frame_prefix:
        return driver
    return {'frame_id': options.frame_prefix + frame, **driver}


def questions_of(wanted: bool, model: str = '', projector: str = '') -> dict[str, Any] | None:
    """Return parameters of the node that answers questions; None where none is wanted.

    :param model: address of a server, or GGUF file, with which a projector may go
    """
    if not wanted and not model:
        return None
    is_file = bool(model) and '://' not in model and not model.startswith('unix:')
    return {
        'model': str(Path(model).resolve()) if is_file else model,
        'projector': str(Path(projector).resolve()) if projector else '',
    }


def sim_time(simulated: bool) -> dict[str, Any]:
    """Return the parameter that lets a node follow /clock.

    Not following is what nodes do anyway; said here it would overrule what a launch file around
    ours sets for all nodes.
    """
    return {'use_sim_time': True} if simulated else {}


def _encoder_parameters(modality: str, options: GraphOptions) -> dict[str, Any]:
    if modality != CAMERA:
        return _model_parameters(options)
    return {
        **_model_parameters(options),
        'image_transport': options.image_transport,
        'reuse': options.reuse,
        'recogniser.model': options.recogniser,
        'memory.rate': LOOKS if options.memory else 0.0,
    }


def _model_parameters(options: GraphOptions) -> dict[str, Any]:
    return {'detector': options.detector, 'simulated': options.simulated}


def _viewer(options: GraphOptions, shared: Mapping[str, Any]) -> NodeDescription:
    given = {
        **shared,
        'calibration_file': options.calibration,
        'transforms': list(options.transforms) or [''],
        'image_transport': options.image_transport,
        **_frames(options),
        **(options.viewer or {}),
    }
    return NodeDescription('viewer', 'viewer', given, options.remappings)


def _optimizer(options: GraphOptions, parameters: Mapping[str, Any]) -> NodeDescription:
    given = {'modalities': list(options.modalities), **_model_parameters(options), **parameters}
    return NodeDescription(OPTIMIZER, OPTIMIZER, given, options.remappings)


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
            'pipeline.windows.stride': options.stride,
            'transforms': list(options.transforms) or [''],
            'wait_for': ['fusion', *encoders, *options.wait_for],
            **{f'topics.{name}': topic for name, topic in options.bag_topics.items()},
            **{f'pictures.{name}': value for name, value in options.bag_pictures.items()},
        },
    )


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

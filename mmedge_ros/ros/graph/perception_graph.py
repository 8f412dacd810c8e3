"""The nodes of the graph for its options; launch files and commands start the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.encoding.bundle.model_bundle import export_trusted
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.sensor_poses import CAMERA_FRAME, RADAR_FRAME
from mmedge_ros.geometry.transforms import format_static_transform, with_prefix
from mmedge_ros.questions.model_client import is_endpoint
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.offline_session import replay_detector
from mmedge_ros.replay.parameter_file import detector_parameters, pipeline_parameters
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.ros.graph.description import OPTIMIZER, NodeDescription, sim_time
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.messages.names import driver_remappings
from mmedge_ros.sensing.camera.device import FILE
from mmedge_ros.sensing.simulated_board import PERSON

# Looks at each object per second for a flight memory, where one is kept: views a second apart are
# kept, and the best of two looks is better than one.
LOOKS = 2.0


def describe_graph(options: GraphOptions) -> list[NodeDescription]:
    """Describe the graph that plays a recording, or flies beside its sensors.

    :raises ReplayError: when the recording cannot be used
    :raises EncodingError: when there is no such detector
    :raises GeometryError: when there are no transforms in the file of extrinsics
    :raises ParameterError: for a parameter file that is none
    """
    extrinsics = read_extrinsics(options.extrinsics) if options.extrinsics else ()
    options = replace(options, transforms=(*extrinsics, *options.transforms))
    if options.bag:
        with opened_recording(options) as recording:
            return bag_graph(recording, options)
    model = str(default_detector(options.detector, above=options.above).resolve())
    return perception_graph(replace(options, detector=model, monitor={}, optimizer={}))


def opened_recording(options: GraphOptions) -> Recording:
    """Open the recording that the options name.

    :raises ReplayError: when it cannot be used
    """
    o = options
    topics = TopicChoice(o.camera, o.radar, o.odometry)
    return Recording(o.bag, topics, str(o.calibration), PictureParameters(o.fov, o.fps))


def bag_graph(recording: Recording, options: GraphOptions) -> list[NodeDescription]:
    """Describe the graph that plays a recording, which has the say in what it holds.

    The optimiser comes with a monitor that plays the recorded state, if there is any.

    :raises ReplayError: for a calibration of pictures that are played at another size
    """
    if options.calibration and recording.picture_scale > 1.0:
        raise ReplayError(
            'a live graph gets the pictures of this video scaled down, to which a calibration of '
            'its own size does not apply; replay it offline, without --live'
        )
    topics, o = recording.topics, options
    model = replay_detector(recording, o.detector)
    recorded = (format_static_transform(t) for t in recording.transforms)
    optional = {OPTIMIZER: o.optimise, 'memory': o.memory, 'questions': _has_questions(o)}
    monitor: dict[str, Any] = {'battery': False}
    if recording.has_system_state:
        monitor = {'trace': str(recording.bag.path.resolve()), 'loop': True}
    return perception_graph(
        replace(
            o,
            bag=str(recording.bag.path.resolve()),
            modalities=recording.modalities,
            camera=topics.camera or '',
            radar=topics.radar or '',
            odometry=topics.odometry or '',
            detector=str(model.resolve()) if CAMERA in recording.modalities else '',
            simulated=recording.is_simulated,
            transforms=(*recorded, *o.transforms),
            image_transport='compressed' if topics.compressed else 'raw',
            wait_for=(*o.wait_for, *(name for name, is_there in optional.items() if is_there)),
            monitor=monitor if o.optimise or o.view else None,
            optimizer={} if o.optimise else None,
        )
    )


def perception_graph(options: GraphOptions) -> list[NodeDescription]:
    """Describe the nodes, consumers first and the source last."""
    o = options
    if o.trust_weights:
        export_trusted(Path(o.detector), detector_parameters(Path(o.params) if o.params else None))
    shared = sim_time(o.clock or o.rate != 1.0)
    remappings = () if o.bag else driver_remappings(o.camera, o.radar, o.odometry, o.battery)
    windows = pipeline_parameters(Path(o.params) if o.params else None).windows
    calibration = str(Path(o.calibration).resolve()) if o.calibration else ''
    model = {'detector': o.detector, 'simulated': o.simulated}
    frames = {'frame_prefix': o.frame_prefix} if o.frame_prefix else {}
    rig = {
        'calibration_file': calibration,
        'transforms': list(o.transforms) or [''],
        **frames,
    }
    folder = str(Path(o.memory).absolute()) if o.memory else ''
    pictures = {'image_transport': o.image_transport}
    seeing = {
        **pictures,
        'reuse': o.reuse,
        'recogniser.model': o.recogniser,
        'memory.rate': LOOKS if o.memory else 0.0,
    }
    nodes: dict[str, tuple[str, Mapping[str, Any] | None]] = {
        'fusion': (
            'fusion',
            {
                **rig,
                **model,
                'pipeline.modalities': list(o.modalities),
                # Odometry of a recording has no other publisher of its transform, or is silent.
                'publish_transform': bool(o.bag),
            },
        )
    }
    for modality in o.modalities:
        own = seeing if modality == CAMERA else {}
        nodes[f'{modality}_encoder'] = 'unit_encoder', {'modality': modality, **model, **own}
    has_questions = _has_questions(o)
    chooses: dict[str, Any] = {
        'optimise': o.optimise,
        'adaptation.latency_limit': windows.deadline,
        'adaptation.stride': windows.stride,
        'adaptation.window': windows.window,
    }
    if o.profile:
        chooses['profile'] = str(Path(o.profile).resolve())
    looks = {**rig, **pictures, 'port': o.view, 'pipeline.windows.deadline': windows.deadline}
    nodes |= {
        'visualizer': ('visualizer', pictures if o.visualizer else None),
        'memory': ('memory', {'folder': folder, **rig, **model} if folder else None),
        'questions': (
            'questions',
            {'folder': folder, **frames, **model, **_questions(o)} if has_questions else None,
        ),
        'viewer': ('viewer', looks if o.view else None),
        OPTIMIZER: (
            OPTIMIZER,
            _joined({'modalities': list(o.modalities), **model, **chooses}, o.optimizer),
        ),
        'monitor': ('monitor', o.monitor),
        CAMERA: (CAMERA, _joined({**_frame(o, CAMERA_FRAME), **pictures}, o.camera_driver)),
        RADAR: (RADAR, _joined(_frame(o, RADAR_FRAME), o.radar_driver)),
    }
    described = [
        NodeDescription(name, executable, {**shared, **parameters}, remappings)
        for name, (executable, parameters) in nodes.items()
        if parameters is not None
    ]
    return [*described, _bag_player(o, windows.stride)] if o.bag else described


def video_camera(path: str | Path) -> dict[str, Any]:
    """Return parameters of a camera driver that plays a video file or a folder of pictures."""
    return {'source': FILE, 'device': str(Path(path).resolve()), 'loop': True}


def simulated_radar(capture: str | Path) -> dict[str, Any]:
    """Return parameters of a radar driver with a simulated board.

    :param capture: recording of a data port, or 'person' for a walking person
    """
    return {'simulated': str(capture if str(capture) == PERSON else Path(capture).resolve())}


def read_extrinsics(path: str | Path, prefix: str = '') -> tuple[str, ...]:
    """Return the transforms of a YAML file, each "parent child x y z qx qy qz qw".

    :param prefix: before the names of frames
    :raises GeometryError: if it holds none
    """
    transforms = read_calibration(path).transforms
    if not transforms:
        raise GeometryError(f'{path} holds no transforms; see config/extrinsics.yaml for one')
    return tuple(format_static_transform(with_prefix(edge, prefix)) for edge in transforms)


def _joined(given: dict[str, Any], more: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if more is None else {**given, **more}


def _frame(options: GraphOptions, frame: str) -> dict[str, Any]:
    """Give a driver's frame the prefix of the drone."""
    return {'frame_id': options.frame_prefix + frame} if options.frame_prefix else {}


def _has_questions(options: GraphOptions) -> bool:
    return bool(options.questions or options.model or options.question_parameters)


def _questions(options: GraphOptions) -> dict[str, Any]:
    model, projector = options.model, options.projector
    is_file = bool(model) and not is_endpoint(model)
    return {
        'model': str(Path(model).resolve()) if is_file else model,
        'projector': str(Path(projector).resolve()) if projector else '',
        **(options.question_parameters or {}),
    }


def _bag_player(options: GraphOptions, stride: float) -> NodeDescription:
    o = options
    topics = {'camera': o.camera, 'radar': o.radar, 'odometry': o.odometry}
    encoders = [f'{modality}_encoder' for modality in o.modalities]
    return NodeDescription(
        'bag_player',
        'bag_player',
        {
            'bag': o.bag,
            'rate': o.rate,
            'loop': o.loop,
            'clock': o.clock,
            'pipeline.windows.stride': stride,
            'transforms': list(o.transforms) or [''],
            'wait_for': ['fusion', *encoders, *o.wait_for],
            **{f'topics.{name}': topic for name, topic in topics.items() if topic},
            'pictures.fov': o.fov,
            'pictures.fps': o.fps,
        },
    )

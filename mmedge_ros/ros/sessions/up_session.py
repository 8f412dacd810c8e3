"""`mmedge up`: the graph of the launch files, started and kept without `ros2 launch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmedge_ros.data_types import CAMERA, RADAR, Decision
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import format_static_transform, with_prefix
from mmedge_ros.preflight.finding import State
from mmedge_ros.preflight.graph_view import COMPRESSED, ODOMETRY
from mmedge_ros.preflight.model_checks import check_model
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import Recording, TopicChoice
from mmedge_ros.ros import process_memory
from mmedge_ros.ros.graph.description import (
    GraphOptions,
    NodeDescription,
    perception_graph,
    single_process,
)
from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.graph.process_group import ProcessGroup
from mmedge_ros.ros.messages import names
from mmedge_ros.ros.radar_setup import PERSON
from mmedge_ros.ros.sessions.fault_lines import FaultLines
from mmedge_ros.ros.sessions.graph_snapshot import Input, graph_inputs
from mmedge_ros.ros.sessions.live_session import (
    bag_graph,
    optimizer_parameters,
    viewer_parameters,
)
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.status_listener import StatusListener
from mmedge_ros.ros.sessions.up_inputs import UpInputs
from mmedge_ros.sensing.camera.device import FILE

# s. Nodes load their networks.
_START_TIME = 30.0


@dataclass(frozen=True)
class UpOptions:
    """What to start. Without a ``bag`` the sensors are expected on the graph.

    ``camera_driver`` and ``radar_driver`` start the package's own drivers with these parameters
    (see `video_camera` and `simulated_radar`). ``extrinsics`` is a YAML with transforms.
    ``optimise`` lets the graph choose rates and levels, by the unit times of ``profile``; else all
    stays as set up, within what battery and computer allow.
    ``view`` is the port of the live page; 0 makes none. ``recogniser`` says more of tracked
    objects. ``memory`` is the folder of a flight memory; '' keeps none. ``questions`` answers
    questions, and lets a language model say more if its parameters name one (see `questions_of`).
    ``battery`` is the topic of the autopilot's battery. ``frame_prefix`` comes before the names of
    frames.
    """

    bag: str = ''
    loop: bool = False
    rate: float = 1.0
    clock: bool = False
    detector: str = ''
    calibration: str = ''
    params: Path | None = None
    topics: TopicChoice = field(default_factory=TopicChoice)
    image_transport: str = 'raw'
    transforms: tuple[str, ...] = ()
    extrinsics: str = ''
    modalities: tuple[str, ...] = (CAMERA, RADAR)
    camera_driver: Mapping[str, Any] | None = None
    radar_driver: Mapping[str, Any] | None = None
    logs: Path = Path('out/logs')
    single_process: bool = False
    optimise: bool = False
    profile: str = ''
    view: int = 0
    recogniser: str = ''
    memory: str = ''
    questions: Mapping[str, Any] | None = None
    battery: str = ''
    frame_prefix: str = ''


def run_up(
    options: UpOptions,
    show: Callable[[float | None, Decision | None, float], None],
    say: Callable[[str], None],
) -> None:
    """Start the graph and look after it until interrupted, or a recording has ended.

    :param show: called with progress (None without a recording), the newest decision and the
        decisions per second
    :param say: called with sentences about nodes that end or start
    :raises ReplayError: when the recording cannot be used or a node cannot run
    :raises EncodingError: when there is no such model, or its files are damaged
    """
    set_profile()
    nodes = describe_up(options)
    _check_model(options, say)
    if options.single_process:
        nodes = [single_process(nodes)]
    params = [options.params.resolve()] if options.params else []
    say(f'logs: {options.logs}')

    def watched(listener: StatusListener) -> UpInputs | None:
        # A recording's player waits for the others, and ends with an error where it cannot play.
        if options.bag:
            return None
        drivers = {CAMERA: options.camera_driver, RADAR: options.radar_driver}
        own = {name for name, driver in drivers.items() if driver is not None}
        return UpInputs(listener, awaited_inputs(options), own, say)

    with ProcessGroup(nodes, options.logs, params, say) as group:
        _follow(group, bool(options.bag) and not options.loop, show, watched, say)


def video_camera(path: str | Path) -> dict[str, Any]:
    """Return parameters of a camera driver that plays a video file or a folder of pictures."""
    return {'source': FILE, 'device': str(Path(path).resolve()), 'loop': True}


def simulated_radar(capture: str | Path) -> dict[str, Any]:
    """Return parameters of a radar driver with a simulated board.

    :param capture: recording of a data port, or 'person' for a walking person
    """
    return {'simulated': str(capture) if capture == PERSON else str(Path(capture).resolve())}


def read_extrinsics(path: str | Path, prefix: str = '') -> tuple[str, ...]:
    """Return the transforms of a YAML file, each "parent child x y z qx qy qz qw".

    :param prefix: before the names of frames
    :raises GeometryError: if it holds none
    """
    transforms = read_calibration(path).transforms
    if not transforms:
        raise GeometryError(f'{path} holds no transforms; see config/extrinsics.yaml for one')
    return tuple(format_static_transform(with_prefix(edge, prefix)) for edge in transforms)


def describe_up(options: UpOptions) -> list[NodeDescription]:
    """Describe the graph; the launch files read the same description."""
    extrinsics = read_extrinsics(options.extrinsics) if options.extrinsics else ()
    transforms = (*extrinsics, *options.transforms)
    if options.bag:
        with Recording(options.bag, options.topics, options.calibration) as recording:
            return bag_graph(
                recording,
                options.detector,
                options.calibration,
                rate=options.rate,
                loop=options.loop,
                clock=options.clock,
                params=options.params,
                transforms=transforms,
                optimise=options.optimise,
                profile=options.profile,
                view=options.view,
                recogniser=options.recogniser,
                memory=options.memory,
                questions=options.questions,
            )
    topics = options.topics
    return perception_graph(
        GraphOptions(
            detector=str(default_detector(options.detector).resolve()),
            calibration=str(Path(options.calibration).resolve()) if options.calibration else '',
            transforms=transforms,
            modalities=options.modalities,
            camera=_camera_parameters(options),
            radar=options.radar_driver,
            image_transport=options.image_transport,
            use_sim_time=options.clock,
            recogniser=options.recogniser,
            memory=options.memory,
            questions=options.questions,
            frame_prefix=options.frame_prefix,
            monitor={},
            viewer=viewer_parameters(options.view, options.params) if options.view else None,
            optimizer={
                'optimise': options.optimise,
                **optimizer_parameters(options.profile, options.params),
            },
            remappings=names.driver_remappings(
                topics.camera, topics.radar, topics.odometry, options.battery
            ),
        )
    )


def _camera_parameters(options: UpOptions) -> dict[str, Any] | None:
    """Let the camera send its pictures in the form in which the graph takes them."""
    if options.camera_driver is None:
        return None
    return {'image_transport': options.image_transport, **options.camera_driver}


def _check_model(options: UpOptions, say: Callable[[str], None]) -> None:
    """Say at once what an encoder would find out after seconds."""
    if options.bag and not options.detector:
        return  # chosen by the recording
    for finding in check_model(options.detector)[0]:
        if finding.state is State.WRONG:
            raise EncodingError(finding.words)
        if finding.state is State.NOTE and not options.bag:
            say(f'{finding.words}; {finding.remedy}')


def awaited_inputs(options: UpOptions) -> dict[str, Input]:
    """Return the inputs that the graph of these options waits for, by name."""
    topics = options.topics
    inputs = graph_inputs(topics.camera, topics.radar, topics.odometry)
    if options.image_transport == 'compressed':
        inputs[CAMERA] = inputs[COMPRESSED]
    wanted = (*options.modalities, ODOMETRY)
    return {name: inputs[name] for name in (CAMERA, RADAR, ODOMETRY) if name in wanted}


def _follow(
    group: ProcessGroup,
    ends: bool,
    show: Callable[[float | None, Decision | None, float], None],
    watched: Callable[[StatusListener], UpInputs | None],
    say: Callable[[str], None],
) -> None:
    begun = looked = tidied = time.monotonic()
    with spinning(StatusListener) as (listener, spin_once):
        inputs = watched(listener)
        FaultLines(
            listener,
            say,
            lambda: listener.decision is not None or time.monotonic() - begun > _START_TIME,
            tells_inputs=inputs is not None,
        )
        while True:
            spin_once()
            if time.monotonic() - looked < 0.1:
                continue
            looked = time.monotonic()
            if looked - tidied >= process_memory.PERIOD:
                tidied = looked
                process_memory.let_go()
            for name in group.watch():
                words = group.last_words(name, 1) or 'without a message'
                raise ReplayError(f'{name} ended: {words}')
            if inputs is not None:
                inputs.look()
            show(listener.share(), listener.decision, listener.rate.value())
            if ends and listener.finished:
                return

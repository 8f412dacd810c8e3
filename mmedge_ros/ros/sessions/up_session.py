"""`mmedge up`: the graph of the launch files, started and kept without `ros2 launch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmedge_ros.data_types import CAMERA, RADAR, Decision
from mmedge_ros.encoding.bundle.default_model import default_detector
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import format_static_transform
from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.recording import Recording, TopicChoice
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
from mmedge_ros.ros.sessions.live_session import bag_graph, optimizer_parameters
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.status_listener import StatusListener
from mmedge_ros.sensing.camera.device import FILE


@dataclass(frozen=True)
class UpOptions:
    """What to start. Without a ``bag`` the sensors are expected on the graph.

    ``camera_driver`` and ``radar_driver`` start the package's own drivers with these parameters
    (see `video_camera` and `simulated_radar`). ``extrinsics`` is a YAML with transforms.
    ``optimise`` adds monitor and optimiser; ``profile`` is the device profile it begins with.
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
    """
    set_profile()
    nodes = describe_up(options)
    if options.single_process:
        nodes = [single_process(nodes)]
    params = [options.params.resolve()] if options.params else []
    say(f'logs: {options.logs}')
    with ProcessGroup(nodes, options.logs, params, say) as group:
        _follow(group, bool(options.bag) and not options.loop, show)


def video_camera(path: str | Path) -> dict[str, Any]:
    """Return parameters of a camera driver that plays a video file or a folder of pictures."""
    return {'source': FILE, 'device': str(Path(path).resolve()), 'loop': True}


def simulated_radar(capture: str | Path) -> dict[str, Any]:
    """Return parameters of a radar driver with a simulated board.

    :param capture: recording of a data port, or 'person' for a walking person
    """
    return {'simulated': str(capture) if capture == PERSON else str(Path(capture).resolve())}


def read_extrinsics(path: str | Path) -> tuple[str, ...]:
    """Return the transforms of a YAML file, each "parent child x y z qx qy qz qw".

    :raises GeometryError: if it holds none
    """
    transforms = read_calibration(path).transforms
    if not transforms:
        raise GeometryError(f'{path} holds no transforms; see config/extrinsics.yaml for one')
    return tuple(format_static_transform(transform) for transform in transforms)


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
            )
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
            monitor={} if options.optimise else None,
            optimizer=(
                optimizer_parameters(options.profile, options.params) if options.optimise else None
            ),
            remappings=driver_remappings(options.topics),
        )
    )


def _camera_parameters(options: UpOptions) -> dict[str, Any] | None:
    """Let the camera send its pictures in the form in which the graph takes them."""
    if options.camera_driver is None:
        return None
    return {'image_transport': options.image_transport, **options.camera_driver}


def driver_remappings(topics: TopicChoice) -> tuple[tuple[str, str], ...]:
    """Point the graph's inputs at the topics of drivers, by image_transport's conventions."""
    remaps: list[tuple[str, str]] = []
    if topics.camera:
        namespace = topics.camera.rpartition('/')[0]
        remaps += [
            (names.CAMERA_IMAGE, topics.camera),
            (names.CAMERA_IMAGE_COMPRESSED, f'{topics.camera}/compressed'),
            (names.CAMERA_INFO, f'{namespace}/camera_info' if namespace else 'camera_info'),
        ]
    if topics.radar:
        remaps.append((names.RADAR_POINTS, topics.radar))
    if topics.odometry:
        remaps.append((names.ODOMETRY, topics.odometry))
    return tuple(remaps)


def _follow(
    group: ProcessGroup,
    ends: bool,
    show: Callable[[float | None, Decision | None, float], None],
) -> None:
    looked = time.monotonic()
    with spinning(StatusListener) as (listener, spin_once):
        while True:
            spin_once()
            if time.monotonic() - looked < 0.1:
                continue
            looked = time.monotonic()
            for name in group.watch():
                words = group.last_words(name, 1) or 'without a message'
                raise ReplayError(f'{name} ended: {words}')
            show(listener.share(), listener.decision, listener.rate.value())
            if ends and listener.finished:
                return

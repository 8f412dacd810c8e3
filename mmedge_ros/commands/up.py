"""What `mmedge up` does: the graph beside real, simulated or recorded sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.live_view import ViewOption, open_view
from mmedge_ros.commands.options import (
    LIVE,
    CalibrationOption,
    CameraOption,
    DetectorOption,
    MemoryOption,
    ModelOption,
    NetworkOption,
    OdometryOption,
    OptimiseOption,
    ParamsOption,
    ProjectorOption,
    RadarOption,
    RateOption,
    RecogniserOption,
    existing_file,
    flag,
    option,
)

SENSORS = 'Sensors'


def up(
    bag: Annotated[
        Path | None,
        option('--bag', 'BAG', 'play this recording as the sensors', SENSORS, exists=True),
    ] = None,
    loop: Annotated[bool, flag('--loop', 'start the recording over and over', SENSORS)] = False,
    rate: RateOption = 1.0,
    clock: Annotated[bool, flag('--clock', 'publish and follow /clock', LIVE)] = False,
    drivers: Annotated[
        bool,
        flag('--drivers', "start the package's own camera and radar drivers (see docs)", SENSORS),
    ] = False,
    video: Annotated[
        Path | None,
        option(
            '--camera-file',
            'FILE',
            'video or folder of pictures as the camera',
            SENSORS,
            exists=True,
        ),
    ] = None,
    board: Annotated[
        str,
        option(
            '--simulated-radar',
            'FILE|person',
            "recording of a radar's data port as the radar, or a person who walks about",
            SENSORS,
        ),
    ] = '',
    detector: DetectorOption = None,
    calibration: CalibrationOption = None,
    extrinsics: Annotated[
        Path | None,
        existing_file(
            '--extrinsics', 'YAML with where the sensors sit, see config/extrinsics.yaml', SENSORS
        ),
    ] = None,
    params: ParamsOption = None,
    camera: CameraOption = '',
    radar: RadarOption = '',
    odometry: OdometryOption = '',
    transport: Annotated[
        str,
        option('--image-transport', 'KIND', 'raw or compressed pictures (without --bag)', SENSORS),
    ] = 'raw',
    transform: Annotated[
        list[str] | None,
        option(
            '--transforms',
            'TRANSFORM',
            '"parent child x y z qx qy qz qw" (m), repeatable',
            SENSORS,
        ),
    ] = None,
    logs: Annotated[Path, option('--logs', 'FOLDER', "folder of the nodes' logs", LIVE)] = Path(
        'out/logs'
    ),
    optimise: OptimiseOption = False,
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'device profile of this machine (mmedge profile), for --optimise', LIVE
        ),
    ] = None,
    recogniser: RecogniserOption = '',
    memory: MemoryOption = None,
    questions: Annotated[
        bool,
        flag(
            '--questions',
            'answer questions, by the action ask and as text (docs/memory.md)',
            LIVE,
        ),
    ] = False,
    model: ModelOption = '',
    projector: ProjectorOption = None,
    network: NetworkOption = False,
    view: ViewOption = False,
    single_process: Annotated[
        bool, flag('--single-process', 'all nodes in one process, to debug', LIVE)
    ] = False,
) -> None:
    """Track people live beside your sensors, until Ctrl-C."""
    if transport not in ('raw', 'compressed'):
        raise typer.BadParameter('choose raw or compressed', param_hint='--image-transport')
    if bag is None and (loop or rate != 1.0):
        raise typer.BadParameter('--loop and --rate belong to --bag; sensors have their own pace')
    if bag is not None and (drivers or video or board):
        raise typer.BadParameter('--bag brings sensors of its own; leave out the other ones')
    if profile is not None and not optimise:
        raise typer.BadParameter('--profile belongs to --optimise; nothing else reads it here')
    if board not in ('', 'person') and not Path(board).is_file():
        raise typer.BadParameter(
            f'{board} is no file; name a recording, or person', param_hint='--simulated-radar'
        )
    from mmedge_ros.commands.errors import plain_errors
    from mmedge_ros.replay.recording import TopicChoice

    with plain_errors():
        from mmedge_ros.ros.graph.description import questions_of
        from mmedge_ros.ros.graph.middleware_profile import set_profile
        from mmedge_ros.ros.sessions.up_session import (
            UpOptions,
            run_up,
            simulated_radar,
            video_camera,
        )

        set_profile(network)
        own: dict[str, Any] | None = {} if drivers else None
        options = UpOptions(
            bag=str(bag or ''),
            loop=loop,
            rate=rate,
            clock=clock,
            detector=str(detector or ''),
            calibration=str(calibration or ''),
            params=params,
            topics=TopicChoice(camera=camera, radar=radar, odometry=odometry),
            image_transport=transport,
            transforms=tuple(transform or ()),
            extrinsics=str(extrinsics or ''),
            camera_driver=video_camera(video) if video else own,
            radar_driver=simulated_radar(board) if board else own,
            logs=logs,
            single_process=single_process,
            optimise=optimise,
            profile=str(profile or ''),
            view=open_view(view),
            recogniser=recogniser,
            memory=str(memory.absolute()) if memory else '',
            questions=questions_of(questions, model, str(projector or '')),
        )
        with StatusLine('up') as line:
            run_up(options, line.show, say)

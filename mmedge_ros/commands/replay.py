"""`mmedge replay`: a recording through the pipeline, offline or live, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.live_view import ViewOption, open_view
from mmedge_ros.commands.options import (
    COMPARISON,
    LIVE,
    RECORDING,
    TIMES,
    CalibrationOption,
    CameraOption,
    DetectorOption,
    NetworkOption,
    NoPicturesOption,
    OptimiseOption,
    ParamsOption,
    RadarOption,
    RateOption,
    RecogniserOption,
    argument,
    existing_file,
    flag,
    frame_span,
    option,
)
from mmedge_ros.data_types import MOST_REUSE


def replay(
    bag: Annotated[
        Path,
        argument(
            'RECORDING',
            'rosbag2 folder, a single .mcap or .db3 file, a video file, or a folder of pictures',
            exists=True,
        ),
    ],
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path('out/replay'),
    live: Annotated[
        bool, flag('--live', 'through the ROS graph instead of in virtual time')
    ] = False,
    detector: DetectorOption = None,
    calibration: CalibrationOption = None,
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile',
            'service times from a device profile: the same result every time (offline); or '
            'what --optimise begins with',
            TIMES,
        ),
    ] = None,
    save_profile: Annotated[
        Path | None,
        option('--save-profile', 'FILE', 'write the measured service times as a profile', TIMES),
    ] = None,
    optimise: OptimiseOption = False,
    reuse: Annotated[
        int,
        option(
            '--reuse',
            'N',
            'encode about every N-th picture, and follow the detected objects by image motion in '
            'the others: less load, a little less accuracy',
            min=1,
            max=MOST_REUSE,
        ),
    ] = 1,
    recogniser: RecogniserOption = '',
    params: ParamsOption = None,
    camera: CameraOption = '',
    radar: RadarOption = '',
    rate: RateOption = 1.0,
    clock: Annotated[
        bool, flag('--clock', 'run the live graph on /clock also at rate 1', LIVE)
    ] = False,
    network: NetworkOption = False,
    view: ViewOption = False,
    boxes: Annotated[
        Path | None,
        existing_file('--boxes', 'CSV (frame,x0,y0,x1,y1,score) to compare with', COMPARISON),
    ] = None,
    pseudo_labels: Annotated[
        str,
        option(
            '--pseudo-labels',
            'DETECTOR',
            'compare with what this detector sees in the same pictures, where there is no '
            'ground truth: a weight file or bundle, or the name of one',
            COMPARISON,
        ),
    ] = '',
    frames: Annotated[
        str, option('--frames', 'FIRST:LAST', 'camera frames to compare', COMPARISON)
    ] = '',
    video: Annotated[
        bool,
        flag(
            '--video',
            'also write video.webm: the whole run as the camera saw it, with the tracks drawn '
            'in; browsers and phones play it',
        ),
    ] = False,
    rerun: Annotated[
        Path | None,
        option(
            '--rerun',
            'FILE',
            'also write FILE.rrd for the viewer of Rerun: pictures, tracks, radar returns and '
            'latency on one timeline; needs rerun-sdk',
        ),
    ] = None,
    fov: Annotated[
        float | None,
        option(
            '--fov',
            'DEGREES',
            "angle of view across the longer side of a video, for ranges \\[70, about a phone's]",
            RECORDING,
            min=5.0,
            max=150.0,
        ),
    ] = None,
    fps: Annotated[
        float | None,
        option(
            '--fps',
            'HZ',
            'pictures per second of a folder of pictures \\[30]',
            RECORDING,
            min=0.1,
            max=480.0,
        ),
    ] = None,
    no_pictures: NoPicturesOption = False,
) -> None:
    """Track people in a recording, a video or a folder of pictures, and write a report."""
    span = frame_span(frames)
    if frames and boxes is None and not pseudo_labels:
        raise typer.BadParameter(
            '--frames belongs to --boxes or --pseudo-labels; name what is to be compared'
        )
    _check_combination(live, profile, rate, clock, optimise)
    if reuse > 1 and optimise:
        raise typer.BadParameter('--reuse is fixed, and --optimise chooses it')
    if network and not live:
        raise typer.BadParameter('--network belongs to --live; offline nothing is published')
    if view and not live:
        raise typer.BadParameter('--view belongs to --live; offline there is nothing to watch')
    from mmedge_ros.commands.replay_run import ReplayRequest, run_replay
    from mmedge_ros.replay.picture_recording import PictureParameters, holds_pictures
    from mmedge_ros.replay.recording import TopicChoice
    from mmedge_ros.ros.graph.middleware_profile import set_profile

    given = {name: value for name, value in (('fov', fov), ('fps', fps)) if value is not None}
    with plain_errors():
        if given and not holds_pictures(bag):
            raise typer.BadParameter(
                f'--{next(iter(given))} belongs to a video or a folder of pictures; {bag} is none'
            )
        set_profile(network)
        run_replay(
            ReplayRequest(
                bag,
                out,
                live=live,
                detector=detector,
                calibration=calibration,
                profile=profile,
                save_profile=save_profile,
                params=params,
                topics=TopicChoice(camera=camera, radar=radar),
                rate=rate,
                clock=clock,
                boxes=boxes,
                frames=span,
                video=video,
                show_pictures=not no_pictures,
                optimise=optimise,
                teacher=pseudo_labels,
                view=open_view(view),
                pictures=PictureParameters(**given),
                rerun=rerun,
                reuse=reuse,
                recogniser=recogniser,
            )
        )


def _check_combination(
    live: bool, profile: Path | None, rate: float, clock: bool, optimise: bool
) -> None:
    if live and profile and not optimise:
        raise typer.BadParameter(
            'a live replay takes the time it takes; leave out --live or --profile, or let it '
            '--optimise'
        )
    if optimise and not live:
        raise typer.BadParameter('--optimise belongs to --live: it listens to the graph')
    if not live and (rate != 1.0 or clock):
        raise typer.BadParameter('--rate and --clock belong to --live; offline time is virtual')

"""`mmedge replay`: a recording through the pipeline, offline or live, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.live_view import ViewOption, open_view
from mmedge_ros.commands.options import (
    RECORDING,
    TIMES,
    NetworkOption,
    NoPicturesOption,
    argument,
    existing_file,
    flag,
    option,
)
from mmedge_ros.ros.graph.options import REPLAY, GraphOptions


@takes(REPLAY)
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
    network: NetworkOption = False,
    view: ViewOption = False,
    video: Annotated[
        bool,
        flag(
            '--video',
            'also write video.webm: the whole run as the camera saw it, with the tracks drawn '
            'in; browsers and phones play it',
        ),
    ] = False,
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
    **given: Any,
) -> None:
    """Track people in a recording, a video or a folder of pictures, and write a report."""
    options = GraphOptions(**given)
    _check_combination(live, profile, options)
    if options.reuse > 1 and options.optimise:
        raise typer.BadParameter('--reuse is fixed, and --optimise chooses it')
    if network and not live:
        raise typer.BadParameter('--network belongs to --live; offline nothing is published')
    if view and not live:
        raise typer.BadParameter('--view belongs to --live; offline there is nothing to watch')
    from mmedge_ros.commands.replay_run import ReplayRequest, run_replay
    from mmedge_ros.replay.picture_recording import holds_pictures
    from mmedge_ros.ros.graph.middleware_profile import set_profile

    views: dict[str, Any] = {
        name: value for name, value in (('fov', fov), ('fps', fps)) if value is not None
    }
    with plain_errors():
        if views and not holds_pictures(bag):
            raise typer.BadParameter(
                f'--{next(iter(views))} belongs to a video or a folder of pictures; {bag} is none'
            )
        set_profile(network)
        run_replay(
            ReplayRequest(
                **given,
                **views,
                bag=str(bag),
                out=out,
                live=live,
                profile=str(profile or ''),
                save_profile=save_profile,
                video=video,
                show_pictures=not no_pictures,
                view=open_view(view),
            )
        )


def _check_combination(live: bool, profile: Path | None, options: GraphOptions) -> None:
    if live and profile and not options.optimise:
        raise typer.BadParameter(
            'a live replay takes the time it takes; leave out --live or --profile, or let it '
            '--optimise'
        )
    if options.optimise and not live:
        raise typer.BadParameter('--optimise belongs to --live: it listens to the graph')
    if not live and (options.rate != 1.0 or options.clock):
        raise typer.BadParameter('--rate and --clock belong to --live; offline time is virtual')

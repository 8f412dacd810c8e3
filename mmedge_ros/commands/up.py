"""What `mmedge up` does: the graph beside real, simulated or recorded sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.live_view import ViewOption, open_view
from mmedge_ros.commands.options import NetworkOption, flag, option
from mmedge_ros.ros.graph.options import SENSORS, UP, GraphOptions
from mmedge_ros.sensing.simulated_board import PERSON


@takes(UP)
def up(
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
    network: NetworkOption = False,
    view: ViewOption = False,
    **given: Any,
) -> None:
    """Track people live beside your sensors, until Ctrl-C."""
    options = GraphOptions(**given)
    if not options.bag and (options.loop or options.rate != 1.0):
        raise typer.BadParameter('--loop and --rate belong to --bag; sensors have their own pace')
    if options.bag and (drivers or video or board):
        raise typer.BadParameter('--bag brings sensors of its own; leave out the other ones')
    if options.profile and not options.optimise:
        raise typer.BadParameter('--profile belongs to --optimise; nothing else reads it here')
    if board not in ('', PERSON) and not Path(board).is_file():
        raise typer.BadParameter(
            f'{board} is no file; name a recording, or person', param_hint='--simulated-radar'
        )
    from mmedge_ros.commands.errors import plain_errors

    with plain_errors():
        from mmedge_ros.ros.graph.middleware_profile import set_profile
        from mmedge_ros.ros.graph.perception_graph import simulated_radar, video_camera
        from mmedge_ros.ros.sessions.up_session import run_up

        set_profile(network)
        own: dict[str, Any] | None = {} if drivers else None
        options = GraphOptions(
            **given,
            camera_driver=video_camera(video) if video else own,
            radar_driver=simulated_radar(board) if board else own,
            view=open_view(view),
        )
        with StatusLine('up') as line:
            run_up(options, line.show, say)

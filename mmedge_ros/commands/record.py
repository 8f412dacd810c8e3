"""What `mmedge record` does: record the running graph, say what it gets, and what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.options import NetworkOption, argument, flag
from mmedge_ros.ros.graph.options import RECORD, RecordOptions


@takes(RECORD, RecordOptions)
def record(
    out: Annotated[Path | None, argument('[OUT]', 'folder to be made')] = None,
    network: NetworkOption = False,
    which: Annotated[
        bool, flag('--list', 'print the usual topics and end; for ros2 bag record')
    ] = False,
    **given: Any,
) -> None:
    """Record inputs, decisions and tracks of the running graph as a rosbag2 folder."""
    if out is None and not which:
        raise typer.BadParameter('name the folder to be made, or ask for --list')
    with plain_errors():
        from mmedge_ros.ros.graph.middleware_profile import set_profile
        from mmedge_ros.ros.messages.interfaces import recorded_topics
        from mmedge_ros.ros.recording.run import run_recording

        if which or out is None:
            typer.echo('\n'.join(f'/{topic.lstrip("/")}' for topic in recorded_topics()))
            return
        set_profile(network)
        options = RecordOptions(out=str(out), **given)
        say(f'recording to {out}; Ctrl-C ends it')
        is_new = not out.exists()
        try:
            with StatusLine(f'recording to {out}') as line:
                run_recording(options, line.advance)
        finally:
            if is_new and out.exists():
                typer.echo(out)

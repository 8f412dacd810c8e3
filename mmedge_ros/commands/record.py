"""What `mmedge record` does: record the running graph, say what it gets, and what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    DRIVERS,
    LIVE,
    DriverCameraOption,
    DriverRadarOption,
    NetworkOption,
    OdometryOption,
    argument,
    existing_file,
    flag,
    option,
)

_TRANSPORTS = ('auto', 'raw', 'compressed')


def record(
    out: Annotated[Path | None, argument('[OUT]', 'folder to be made')] = None,
    topics: Annotated[
        list[str] | None,
        option('--topics', 'TOPIC', 'record this instead of the usual topics, repeatable'),
    ] = None,
    transport: Annotated[
        str, option('--image-transport', 'KIND', 'pictures: auto, raw or compressed')
    ] = 'auto',
    split_size: Annotated[
        int, option('--split-size', 'MB', 'after which a new file begins; 0: never', min=0)
    ] = 1000,
    min_free: Annotated[
        int, option('--min-free', 'MB', 'to be kept free on the disk', min=0)
    ] = 500,
    seconds: Annotated[
        float, option('--seconds', 'S', 'end after this; 0: with Ctrl-C', min=0.0)
    ] = 0.0,
    extrinsics: Annotated[
        Path | None,
        existing_file(
            '--extrinsics',
            'YAML with static transforms to record, for graphs that publish no /tf_static',
            DRIVERS,
        ),
    ] = None,
    camera: DriverCameraOption = '',
    radar: DriverRadarOption = '',
    odometry: OdometryOption = '',
    clock: Annotated[bool, flag('--clock', 'follow /clock', LIVE)] = False,
    network: NetworkOption = False,
    which: Annotated[
        bool, flag('--list', 'print the usual topics and end; for ros2 bag record')
    ] = False,
) -> None:
    """Record inputs, decisions and tracks of the running graph as a rosbag2 folder."""
    if transport not in _TRANSPORTS:
        raise typer.BadParameter(
            f'choose {", ".join(_TRANSPORTS)}', param_hint='--image-transport'
        )
    if out is None and not which:
        raise typer.BadParameter('name the folder to be made, or ask for --list')
    with plain_errors():
        from mmedge_ros.geometry.calibration import read_calibration
        from mmedge_ros.geometry.transforms import format_static_transform
        from mmedge_ros.replay.recording import TopicChoice
        from mmedge_ros.ros.graph.middleware_profile import set_profile
        from mmedge_ros.ros.messages.interfaces import recorded_topics
        from mmedge_ros.ros.recording.run import RecordOptions, run_recording

        if which or out is None:
            typer.echo('\n'.join(f'/{topic.lstrip("/")}' for topic in recorded_topics()))
            return
        transforms = read_calibration(extrinsics).transforms if extrinsics else []
        set_profile(network)
        options = RecordOptions(
            out,
            topics=tuple(topics or ()),
            image_transport=transport,
            transforms=tuple(format_static_transform(t) for t in transforms),
            split_size=split_size,
            min_free=min_free,
            seconds=seconds,
            clock=clock,
            drivers=TopicChoice(camera, radar, odometry),
        )
        say(f'recording to {out}; Ctrl-C ends it')
        is_new = not out.exists()
        try:
            with StatusLine(f'recording to {out}') as line:
                run_recording(options, line.advance)
        finally:
            if is_new and out.exists():
                typer.echo(out)

"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

BagArgument = Annotated[
    Path, typer.Argument(exists=True, help='rosbag2 folder, or a single .mcap or .db3 file')
]
DetectorOption = Annotated[
    Path | None,
    typer.Option(
        '--detector',
        help='weights (.onnx, .pt), bundle folder, or the name of a bundle \\[what fits best]',
    ),
]
CalibrationOption = Annotated[
    Path | None,
    typer.Option(
        '--calibration',
        exists=True,
        dir_okay=False,
        help='camera_info YAML (and transforms) to use instead of the recorded calibration',
    ),
]
ParamsOption = Annotated[
    Path | None,
    typer.Option('--params', exists=True, dir_okay=False, help='ROS parameter file'),
]
CameraOption = Annotated[str, typer.Option('--camera', help='camera topic, if not found by type')]
RadarOption = Annotated[str, typer.Option('--radar', help='radar topic, if not found by type')]
RateOption = Annotated[
    float,
    typer.Option('--rate', min=0.05, max=20.0, help='speed of a live replay; not 1: on /clock'),
]
NetworkOption = Annotated[
    bool,
    typer.Option(
        '--network',
        help='let other machines take part, such as a laptop with RViz; without it nothing is '
        'open beyond this machine (a FASTDDS_DEFAULT_PROFILES_FILE of yours goes before)',
    ),
]
OptimiseOption = Annotated[
    bool,
    typer.Option(
        '--optimise',
        help='choose rates and levels in flight by latency, battery and load (adds the monitor)',
    ),
]


def frame_span(text: str) -> tuple[int | None, int | None]:
    """Read what --frames says, FIRST:LAST; None where an end is open.

    :raises BadParameter: if it says something else
    """
    if not text:
        return None, None
    first, colon, last = text.partition(':')
    if not colon or not all((end or '0').isdecimal() and len(end) < 10 for end in (first, last)):
        raise typer.BadParameter(f'{text!r} does not read FIRST:LAST', param_hint='--frames')
    if first and last and int(first) > int(last):
        raise typer.BadParameter(f'{text!r} ends before it begins', param_hint='--frames')
    return int(first) if first else None, int(last) if last else None

"""What `mmedge radar` does: decode captures, check configurations, play a simulated board."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.display import say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, existing_file, option

if TYPE_CHECKING:
    from mmedge_ros.sensing.simulated_board.board import SimulatedBoard

radar_app = CommandGroup(
    name='radar',
    no_args_is_help=True,
    help='TI mmWave radars: decode recordings, check configurations, simulate a board.',
)

CaptureArgument = Annotated[
    Path,
    argument('CAPTURE', "bytes recorded from a radar's data port", exists=True, dir_okay=False),
]
ConfigurationOption = Annotated[
    Path | None,
    existing_file(
        '--cfg', 'chirp configuration of the recording: gives velocities and the limits of points'
    ),
]


@radar_app.command()
def decode(
    capture: CaptureArgument,
    configuration: ConfigurationOption = None,
    points: Annotated[
        Path | None, option('--points', 'FILE', 'CSV file for the points', dir_okay=False)
    ] = None,
) -> None:
    """Print a summary of a recording as JSON, and write its points."""
    with plain_errors():
        from mmedge_ros.sensing.radar.capture_file import decode_capture
        from mmedge_ros.sensing.radar.chirp_configuration import read_configuration

        chirps = read_configuration(configuration) if configuration else None
        for warning in chirps.warnings if chirps else ():
            say(f'note: {warning}')
        summary = decode_capture(capture, chirps, points)
        for note in summary['notes']:
            say(f'note: {note}')
        typer.echo(json.dumps(summary, indent=2))


@radar_app.command()
def check(
    configuration: Annotated[
        Path,
        argument('CFG', 'chirp configuration (.cfg)', exists=True, dir_okay=False),
    ],
) -> None:
    """Check a chirp configuration, and print what a radar measures with it as JSON."""
    with plain_errors():
        from mmedge_ros.sensing.radar.chirp_configuration import read_configuration

        chirps = read_configuration(configuration)
        for warning in chirps.warnings:
            say(f'note: {warning}')
        typer.echo(json.dumps(chirps.described(), indent=2))


@radar_app.command('simulate-board')
def simulate_board(
    capture: Annotated[
        Path | None,
        argument(
            '[CAPTURE]',
            'recording to play; without one a person walks about',
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None, option('--out', 'FOLDER', 'where the ports are put \\[a new folder]')
    ] = None,
    sdk: Annotated[int, option('--sdk', 'N', 'without a recording', min=2, max=3)] = 3,
) -> None:
    """Be a radar board on two pseudo-terminals until Ctrl-C, or until standard input says `quit`.

    Prints the paths of the ports. Lines on standard input make it misbehave: `unplug`, `plug`,
    `noise` (plug in with boot noise), `reset`, `mute`, `unmute`, `refuse COMMAND`, `forgive`.
    """
    with plain_errors():
        from mmedge_ros.sensing.simulated_board.board import SimulatedBoard
        from mmedge_ros.sensing.simulated_board.frames import board_frames

        with tempfile.TemporaryDirectory(prefix='mmedge_radar_') as temporary:
            place = folder or Path(temporary)
            with SimulatedBoard(board_frames(capture, sdk), place) as board:
                ports = {'command': str(board.command_path), 'data': str(board.data_path)}
                typer.echo(json.dumps(ports))
                _obey(board)


def _obey(board: SimulatedBoard) -> None:
    """Follow what standard input says; at its end go on until interrupted."""
    for line in sys.stdin:
        if line.strip() == 'quit':
            return
        if line.strip():
            say(board.misbehave(line))
    threading.Event().wait()

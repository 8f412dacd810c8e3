"""The `mmedge` command line."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mmedge_ros.commands import stopping
from mmedge_ros.commands.ask import ask
from mmedge_ros.commands.bench import bench_app
from mmedge_ros.commands.calibrate import calibrate
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.demo import demo
from mmedge_ros.commands.display import say
from mmedge_ros.commands.doctor import doctor
from mmedge_ros.commands.early_answers import version_line
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.evaluate import evaluate
from mmedge_ros.commands.evaluate_bundle import evaluate_bundle
from mmedge_ros.commands.limit import limit
from mmedge_ros.commands.memory import memory_app
from mmedge_ros.commands.model import model_app
from mmedge_ros.commands.old_spellings import respelled
from mmedge_ros.commands.options import argument, existing_file, flag, option
from mmedge_ros.commands.profile import profile as profile_machine
from mmedge_ros.commands.radar import radar_app
from mmedge_ros.commands.record import record
from mmedge_ros.commands.replay import replay
from mmedge_ros.commands.replay_set import replay_set
from mmedge_ros.commands.talk import talk
from mmedge_ros.commands.train import train_app
from mmedge_ros.commands.up import up

MotArgument = Annotated[
    Path,
    argument('FILE', 'frame,id,x,y,w,h,conf,x,y,z', exists=True, dir_okay=False),
]


def simulate(
    out: Annotated[
        Path | None,
        argument('[OUT]', 'folder of the flight, or of the flights of a set'),
    ] = None,
    scenario: Annotated[
        str, option('--scenario', 'NAME', 'what is flown over, see --list \\[park_day_middle]')
    ] = '',
    seconds: Annotated[
        float | None, option('--seconds', 'S', 'length of the flight, s \\[20]')
    ] = None,
    seed: Annotated[
        int | None, option('--seed', 'N', 'the same one gives the same flight \\[1]')
    ] = None,
    preview: Annotated[
        bool, flag('--preview', 'also draw a contact sheet of the flight, preview.png')
    ] = False,
    trace_only: Annotated[
        bool, flag('--trace-only', 'only battery and computer states, for the monitor')
    ] = False,
    patrol: Annotated[
        bool,
        flag('--patrol', 'fly from station to station, while people leave and come back'),
    ] = False,
    which: Annotated[bool, flag('--list', 'show the scenarios in words and end')] = False,
    standard_set: Annotated[
        str,
        option(
            '--set',
            'NAME',
            'train, validation, calibration, test, final or long: the whole set; scenes: '
            'the pictures that detectors learn from',
        ),
    ] = '',
    jobs: Annotated[
        int, option('--jobs', 'N', 'flights of a set at once; 0: one per processor', min=0)
    ] = 1,
    ray: Annotated[
        str, option('--ray', 'ADDRESS', 'spread a set over the Ray cluster at this address')
    ] = '',
) -> None:
    """Simulate a flight with ground truth, or a standard set of them, as recordings."""
    from mmedge_ros.commands.simulate import (
        list_scenarios,
        run_simulate,
        run_simulate_scenes,
        run_simulate_set,
    )

    if which:
        list_scenarios()
        return
    if out is None:
        raise typer.BadParameter('name the folder to write, or ask for --list')
    chosen = scenario or seconds is not None or seed is not None
    if standard_set and (chosen or preview or trace_only or patrol):
        raise typer.BadParameter(
            '--set decides on scenarios, seconds and seeds, and writes whole flights without '
            'preview'
        )
    if jobs != 1 and not standard_set:
        raise typer.BadParameter('--jobs belongs to --set; one flight uses every processor')
    if ray and (not standard_set or standard_set == 'scenes'):
        raise typer.BadParameter('--ray belongs to --set with flights; one flight stays here')
    with plain_errors():
        if standard_set == 'scenes':
            run_simulate_scenes(out, jobs)
        elif standard_set:
            run_simulate_set(out, standard_set, jobs, ray)
        else:
            run_simulate(
                out,
                scenario or 'park_day_middle',
                1 if seed is None else seed,
                20.0 if seconds is None else seconds,
                preview,
                trace_only,
                patrol,
            )


def parameters(
    write: Annotated[Path | None, existing_file('--write', 'document to bring up to date')] = None,
) -> None:
    """Show every node's parameters as Markdown tables."""
    with plain_errors():
        from mmedge_ros.ros.parameter_tables import parameter_tables, write_tables

        if write is None:
            typer.echo(parameter_tables())
        else:
            write_tables(write)


def evaluate_mot(
    truth: MotArgument,
    result: MotArgument,
    report: Annotated[
        Path | None,
        option('--out', 'FILE', 'write the figures here as well, as JSON', dir_okay=False),
    ] = None,
    rivals: Annotated[
        bool,
        flag(
            '--rivals',
            'RESULT holds detections: track them with SORT, ByteTrack, norfair and this tracker',
        ),
    ] = False,
    fps: Annotated[float, option('--fps', 'HZ', 'pictures per second, for --rivals')] = 25.0,
) -> None:
    """Judge any tracker's output in MOTChallenge text by the ground truth."""
    from mmedge_ros.commands.mot import run_evaluate_mot, run_evaluate_rivals
    from mmedge_ros.lab.evaluation.mot_tracking import MotCamera

    with plain_errors():
        if rivals:
            run_evaluate_rivals(truth, result, MotCamera(fps=fps), report)
        else:
            run_evaluate_mot(truth, result, report)


def track_mot(
    detections: MotArgument,
    out: Annotated[
        Path, option('--out', 'FILE', 'file for the tracks, the same format', dir_okay=False)
    ],
    width: Annotated[
        int, option('--width', 'PX', 'of the pictures, px; 0: extent of the boxes')
    ] = 0,
    height: Annotated[
        int, option('--height', 'PX', 'of the pictures, px; 0: extent of the boxes')
    ] = 0,
    fps: Annotated[float, option('--fps', 'HZ', 'pictures per second')] = 25.0,
) -> None:
    """Track the boxes of any detector in MOTChallenge text, without radar."""
    from mmedge_ros.commands.mot import run_track_mot
    from mmedge_ros.lab.evaluation.mot_tracking import MotCamera

    with plain_errors():
        run_track_mot(detections, out, MotCamera(width, height, fps))


# Panels of `mmedge --help` and the commands in each, in the order in which a newcomer needs them.
PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    'Start': {'demo': demo, 'replay': replay, 'up': up, 'record': record, 'doctor': doctor},
    'Remember': {'memory': memory_app, 'ask': ask, 'talk': talk},
    'Simulate': {'simulate': simulate},
    'Compare': {
        'replay-set': replay_set,
        'evaluate': evaluate,
        'evaluate-bundle': evaluate_bundle,
        'evaluate-mot': evaluate_mot,
        'track-mot': track_mot,
        'bench': bench_app,
    },
    'Models': {'model': model_app, 'train': train_app},
    'Tools': {
        'calibrate': calibrate,
        'profile': profile_machine,
        'radar': radar_app,
        'limit': limit,
        'parameters': parameters,
    },
}


class _InPanels(TyperGroup):
    """Lists commands in the order of their panels; typer itself lists groups first."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the names in order."""
        return [name for commands in PANELS.values() for name in commands]


app = CommandGroup(
    name='mmedge',
    cls=_InPanels,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode='rich',
    epilog='./mmedge install sets everything up and ends; ./mmedge test runs format, lint, types '
    'and tests, and hands its arguments to pytest.',
)


def _show_version(is_asked_for: bool) -> None:
    if is_asked_for:
        typer.echo(version_line())
        raise typer.Exit


@app.callback()
def mmedge(
    _version: Annotated[
        bool,
        flag(
            '--version',
            'show version, commit, Python and ROS, and end',
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
) -> None:
    """Real-time people tracking for drones: camera and mmWave radar, pipelined."""


def _help(command: Callable[..., None]) -> str:
    """Return a command's docstring, a line for each paragraph: typer keeps its line breaks."""
    paragraphs = inspect.cleandoc(command.__doc__ or '').split('\n\n')
    return '\n\n'.join(' '.join(paragraph.split('\n')) for paragraph in paragraphs)


for panel, commands in PANELS.items():
    for name, command in commands.items():
        if not isinstance(command, typer.Typer):
            app.command(name, rich_help_panel=panel, help=_help(command))(command)
            continue
        app.add_typer(command, name=name, rich_help_panel=panel)
        for info in command.registered_commands:
            if info.callback is not None:
                info.help = _help(info.callback)


def main() -> None:
    """Run the command line."""
    stopping.catch_signals()
    try:
        arguments, hints = respelled(sys.argv[1:])
        for hint in hints:
            say(f'note: {hint}')
        app(arguments, prog_name='mmedge')
    except BaseException as err:
        if not stopping.received:
            raise
        # Unwound in the middle of something, the stack may end in another error than ours.
        say('stopped')
        raise stopping.Stopped(128 + stopping.received[0]) from err


if __name__ == '__main__':
    main()

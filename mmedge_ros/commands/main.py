"""The `mmedge` command line."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from mmedge_ros.commands.bench import bench_app
from mmedge_ros.commands.demo import demo
from mmedge_ros.commands.display import say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.evaluate import evaluate
from mmedge_ros.commands.evaluate_bundle import evaluate_bundle
from mmedge_ros.commands.limit import limit
from mmedge_ros.commands.model import model_app
from mmedge_ros.commands.profile import profile as profile_machine
from mmedge_ros.commands.radar import radar_app
from mmedge_ros.commands.record import record
from mmedge_ros.commands.replay import replay
from mmedge_ros.commands.replay_set import replay_set
from mmedge_ros.commands.train import train_app
from mmedge_ros.commands.up import up

app = typer.Typer(
    name='mmedge',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode='rich',
    help='Real-time multimodal perception for drones: camera and mmWave radar, pipelined.',
    epilog='./mmedge test runs format, lint, types and tests; its arguments go to pytest.',
)

app.add_typer(bench_app, name='bench')
app.add_typer(model_app, name='model')
app.add_typer(radar_app, name='radar')
app.add_typer(train_app, name='train')
app.command()(demo)
app.command()(evaluate)
app.command('evaluate-bundle')(evaluate_bundle)
app.command()(limit)
app.command('profile')(profile_machine)
app.command()(record)
app.command()(replay)
app.command('replay-set')(replay_set)
app.command()(up)

MotArgument = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help='frame,id,x,y,w,h,conf,x,y,z')
]


@app.command()
def simulate(
    out: Annotated[
        Path | None, typer.Argument(help='folder of the flight, or of the flights of a set')
    ] = None,
    scenario: Annotated[
        str, typer.Option('--scenario', help='what is flown over, see --list \\[park_day_middle]')
    ] = '',
    seconds: Annotated[
        float | None, typer.Option('--seconds', help='length of the flight, s \\[20]')
    ] = None,
    seed: Annotated[
        int | None, typer.Option('--seed', help='the same one gives the same flight \\[1]')
    ] = None,
    preview: Annotated[
        bool,
        typer.Option('--preview', help='also draw a contact sheet of the flight, preview.png'),
    ] = False,
    trace_only: Annotated[
        bool,
        typer.Option('--trace-only', help='only battery and computer states, for the monitor'),
    ] = False,
    which: Annotated[
        bool, typer.Option('--list', help='show the scenarios in words and end')
    ] = False,
    standard_set: Annotated[
        str,
        typer.Option('--set', help='train, validation, calibration or test: the whole set'),
    ] = '',
    jobs: Annotated[
        int, typer.Option('--jobs', min=0, help='flights of a set at once; 0: one per processor')
    ] = 1,
) -> None:
    """Simulate a flight with ground truth, or a standard set of them, as recordings."""
    from mmedge_ros.commands.simulate import (
        list_scenarios,
        run_simulate,
        run_simulate_set,
    )

    if which:
        list_scenarios()
        return
    if out is None:
        raise typer.BadParameter('name the folder to write, or ask for --list')
    chosen = scenario or seconds is not None or seed is not None
    if standard_set and (chosen or preview or trace_only):
        raise typer.BadParameter(
            '--set decides on scenarios, seconds and seeds, and writes whole flights without '
            'preview'
        )
    if jobs != 1 and not standard_set:
        raise typer.BadParameter('--jobs belongs to --set; one flight uses every processor')
    with plain_errors():
        if standard_set:
            run_simulate_set(out, standard_set, jobs)
        else:
            run_simulate(
                out,
                scenario or 'park_day_middle',
                1 if seed is None else seed,
                20.0 if seconds is None else seconds,
                preview,
                trace_only,
            )


@app.command()
def parameters(
    write: Annotated[
        Path | None,
        typer.Option('--write', exists=True, dir_okay=False, help='document to bring up to date'),
    ] = None,
) -> None:
    """Show every node's parameters as Markdown tables."""
    with plain_errors():
        from mmedge_ros.ros.parameter_tables import parameter_tables, write_tables

        if write is None:
            typer.echo(parameter_tables())
        else:
            write_tables(write)


@app.command('evaluate-mot')
def evaluate_mot(
    truth: MotArgument,
    result: MotArgument,
    report: Annotated[
        Path | None, typer.Option('--json', dir_okay=False, help='write the figures here as well')
    ] = None,
) -> None:
    """Judge any tracker's output in MOTChallenge text by the ground truth."""
    from mmedge_ros.commands.mot import run_evaluate_mot

    with plain_errors():
        run_evaluate_mot(truth, result, report)


@app.command('track-mot')
def track_mot(
    detections: MotArgument,
    out: Annotated[
        Path, typer.Option('--out', dir_okay=False, help='file for the tracks, the same format')
    ],
    width: Annotated[
        int, typer.Option('--width', help='of the pictures, px; 0: extent of the boxes')
    ] = 0,
    height: Annotated[
        int, typer.Option('--height', help='of the pictures, px; 0: extent of the boxes')
    ] = 0,
    fps: Annotated[float, typer.Option('--fps', help='pictures per second')] = 25.0,
) -> None:
    """Track the boxes of any detector in MOTChallenge text, without radar."""
    from mmedge_ros.commands.mot import run_track_mot
    from mmedge_ros.lab.evaluation.mot_tracking import MotCamera

    with plain_errors():
        run_track_mot(detections, out, MotCamera(width, height, fps))


class _Stopped(SystemExit):
    """Unwinds the stack, so that nothing is left running, and ends with a shell's exit code."""


_received: list[int] = []


def _stop(number: int, _: object) -> NoReturn:
    _received.append(number)
    raise _Stopped(128 + number)


def main() -> None:
    """Run the command line."""
    # Also Ctrl-C: started with & from a script, Python would ignore it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        app(prog_name='mmedge')
    except BaseException as err:
        if not _received:
            raise
        # Unwound in the middle of something, the stack may end in another error than ours.
        say('stopped')
        raise _Stopped(128 + _received[0]) from err


if __name__ == '__main__':
    main()

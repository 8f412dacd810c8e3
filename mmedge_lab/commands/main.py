"""The words of the laboratory: `mmedge demo`, `mmedge simulate` and `mmedge lab ...`.

`mmedge` finds them by the entry point that this distribution declares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_lab.commands.bench import bench_app
from mmedge_lab.commands.bench_run import results
from mmedge_lab.commands.demo import demo
from mmedge_lab.commands.evaluate import evaluate
from mmedge_lab.commands.evaluate_bundle import evaluate_bundle
from mmedge_lab.commands.model import model_app
from mmedge_lab.commands.replay_set import replay_set
from mmedge_lab.commands.train import train_app
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, flag, option

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
) -> None:
    """Simulate a flight with ground truth, or a standard set of them, as recordings."""
    from mmedge_lab.commands.simulate import (
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
    with plain_errors():
        if standard_set == 'scenes':
            run_simulate_scenes(out, jobs)
        elif standard_set:
            run_simulate_set(out, standard_set, jobs)
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
    from mmedge_lab.commands.mot import run_evaluate_mot, run_evaluate_rivals
    from mmedge_lab.rivals.trackers.mot_tracking import MotCamera

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
    from mmedge_lab.commands.mot import run_track_mot
    from mmedge_lab.rivals.trackers.mot_tracking import MotCamera

    with plain_errors():
        run_track_mot(detections, out, MotCamera(width, height, fps))


lab_app = CommandGroup(
    no_args_is_help=True, help='Simulate, train, judge and compare; not needed to fly.'
)
lab_app.command('replay-set')(replay_set)
lab_app.command('evaluate')(evaluate)
lab_app.command('evaluate-bundle')(evaluate_bundle)
lab_app.command('evaluate-mot')(evaluate_mot)
lab_app.command('track-mot')(track_mot)
lab_app.command('results')(results)
lab_app.add_typer(bench_app, name='bench')
lab_app.add_typer(model_app, name='model')
lab_app.add_typer(train_app, name='train')

# What `mmedge` shows of the laboratory.
COMMANDS = {'demo': demo, 'simulate': simulate, 'lab': lab_app}

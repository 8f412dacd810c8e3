"""The words of the laboratory: `mmedge demo`, `mmedge simulate` and `mmedge lab ...`.

`mmedge` finds them by the entry point that this distribution declares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mmedge_lab.commands.bench_run import bench, results
from mmedge_lab.commands.demo import demo
from mmedge_lab.commands.evaluate_bundle import evaluate_bundle
from mmedge_lab.commands.model import model_app
from mmedge_lab.commands.replay_set import replay_set
from mmedge_lab.commands.simulate import simulate
from mmedge_lab.commands.train import train_app
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, flag, option

MotArgument = Annotated[
    Path,
    argument('FILE', 'frame,id,x,y,w,h,conf,x,y,z', exists=True, dir_okay=False),
]


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
            'RESULT holds detections: track them with SORT, ByteTrack, OC-SORT and this one',
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
lab_app.command('bench')(bench)
lab_app.command('replay-set')(replay_set)
lab_app.command('evaluate-bundle')(evaluate_bundle)
lab_app.command('evaluate-mot')(evaluate_mot)
lab_app.command('track-mot')(track_mot)
lab_app.command('results')(results)
lab_app.add_typer(model_app, name='model')
lab_app.add_typer(train_app, name='train')

# What `mmedge` shows of the laboratory.
COMMANDS = {'demo': demo, 'simulate': simulate, 'lab': lab_app}

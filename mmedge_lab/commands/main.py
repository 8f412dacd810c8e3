"""The words of the laboratory: `mmedge demo`, `mmedge simulate` and `mmedge lab ...`.

`mmedge` finds them by the entry point that this distribution declares.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_lab.commands.bench_run import bench
from mmedge_lab.commands.demo import demo
from mmedge_lab.commands.evaluate_bundle import evaluate_bundle
from mmedge_lab.commands.judge_detector import judge_detector
from mmedge_lab.commands.model_build import build
from mmedge_lab.commands.model_quantize import quantize
from mmedge_lab.commands.replay_set import replay_set
from mmedge_lab.commands.simulate import simulate
from mmedge_lab.commands.train import train_app
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, existing_file, flag, option


def mot(
    boxes: Annotated[
        Path,
        argument('FILE', 'frame,id,x,y,w,h,conf,x,y,z', exists=True, dir_okay=False),
    ],
    truth: Annotated[
        Path | None, existing_file('--truth', 'ground truth to judge the boxes of FILE by')
    ] = None,
    out: Annotated[
        Path | None,
        option(
            '--out',
            'FILE',
            'for the tracks; with --truth for the figures, as JSON',
            dir_okay=False,
        ),
    ] = None,
    rivals: Annotated[
        bool,
        flag(
            '--rivals',
            'with --truth: FILE holds detections; track them with SORT, ByteTrack, OC-SORT and '
            'this one',
        ),
    ] = False,
    width: Annotated[
        int, option('--width', 'PX', 'of the pictures, px; 0: extent of the boxes')
    ] = 0,
    height: Annotated[
        int, option('--height', 'PX', 'of the pictures, px; 0: extent of the boxes')
    ] = 0,
    fps: Annotated[float, option('--fps', 'HZ', 'pictures per second')] = 25.0,
) -> None:
    """Track the boxes of any detector in MOTChallenge text, or judge those of any tracker.

    Without --truth the boxes are detections: they are tracked, without radar, and --out is
    written. With --truth they are the output of a tracker, and its figures are printed.
    """
    if truth is None and (out is None or rivals):
        raise typer.BadParameter('name --out to track boxes, or --truth to judge them')
    from mmedge_lab.commands.mot import run_mot
    from mmedge_lab.rivals.trackers.mot_tracking import MotCamera

    with plain_errors():
        run_mot(boxes, truth, out, rivals, MotCamera(width, height, fps))


model_app = CommandGroup(no_args_is_help=True, help='Build bundles.')
model_app.command('build')(build)
model_app.command('quantize')(quantize)

lab_app = CommandGroup(
    no_args_is_help=True, help='Simulate, train, judge and compare; not needed to fly.'
)
lab_app.command('bench')(bench)
lab_app.command('replay-set')(replay_set)
lab_app.command('evaluate-bundle')(evaluate_bundle)
lab_app.command('judge-detector')(judge_detector)
lab_app.command('mot')(mot)
lab_app.add_typer(model_app, name='model')
lab_app.add_typer(train_app, name='train')

# What `mmedge` shows of the laboratory.
COMMANDS = {'demo': demo, 'simulate': simulate, 'lab': lab_app}

"""`mmedge train`: networks from flights with ground truth."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import WORK, SetArgument, existing_set, flag, frame_span
from mmedge_ros.commands.train_replayed import (
    OutOption,
    train_gate,
    train_predictor,
    train_rivals,
)

# Panels of help.
TRUTH, ABLATIONS = 'Without ground truth', 'Ablations'

train_app = typer.Typer(
    no_args_is_help=True, help='Train networks on flights with ground truth; needs torch.'
)


class Width(Enum):
    """How wide a detector is."""

    NARROW = 'narrow'
    WIDE = 'wide'


class Part(Enum):
    """What temporal aggregation can do without."""

    SHIFT = 'shift'
    DIFFERENCES = 'differences'
    AGGREGATION = 'aggregation'


class Precision(Enum):
    """What a training calculates with."""

    AUTO = 'auto'
    FLOAT32 = 'float32'
    BFLOAT16 = 'bfloat16'


ValidationOption = Annotated[
    Path | None,
    existing_set(
        '--validation',
        help='set to judge it on',
    ),
]
TestOption = Annotated[
    Path | None,
    existing_set(
        '--test',
        help='another set to judge it on',
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        '--seed', metavar='N', min=0, max=2**31, help='the same seed gives the same network'
    ),
]
ThreadsOption = Annotated[
    int,
    typer.Option(
        '--threads',
        metavar='N',
        min=0,
        max=64,
        help='0: as many as there are cores',
        rich_help_panel=WORK,
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        '--precision',
        help='float32, bfloat16, or auto: bfloat16 where the processor is made for it',
        rich_help_panel=WORK,
    ),
]
ResumeOption = Annotated[
    bool,
    flag('--resume', help='go on with a training that was cut short', rich_help_panel=WORK),
]


@train_app.callback()
def train() -> None:
    """Train networks on flights with ground truth; needs torch."""


@train_app.command('detector')
def detector(
    flights: SetArgument,
    out: OutOption,
    validation: ValidationOption = None,
    test: TestOption = None,
    epochs: Annotated[
        int,
        typer.Option(
            '--epochs', metavar='N', min=1, max=1000, help='how often each picture is seen'
        ),
    ] = 16,
    seed: SeedOption = 0,
    pictures: Annotated[
        int,
        typer.Option(
            '--pictures',
            metavar='N',
            min=1,
            help='about so many are taken, evenly from all flights',
        ),
    ] = 3600,
    threads: ThreadsOption = 0,
    width: Annotated[
        Width, typer.Option('--width', help='narrow (0.34 M parameters) or wide (1.0 M)')
    ] = Width.NARROW,
    precision: PrecisionOption = Precision.AUTO,
    resume: ResumeOption = False,
    batch: Annotated[
        int, typer.Option('--batch', min=1, max=1024, help='pictures in a step; 128 for a GPU')
    ] = 16,
    begin_with: Annotated[
        Path | None,
        typer.Option(
            '--begin-with',
            metavar='PATH',
            exists=True,
            help='checkpoint to begin with, such as models/flight_people/narrow.pt',
        ),
    ] = None,
    keep_work: Annotated[
        bool,
        flag(
            '--keep-work',
            help='keep the pictures and checkpoints beside the bundle',
            rich_help_panel=WORK,
        ),
    ] = False,
) -> None:
    """Train the small detector on simulated flights or scenes and write it as a bundle.

    It finds people, cyclists, cars and dogs. The same seed on the same machine gives the same
    network. A training that is cut short goes on with --resume.
    """
    with plain_errors():
        from mmedge_ros.lab.training.detector_session import DetectorRequest, train_detector
        from mmedge_ros.lab.training.detector_training import detector_settings

        request = DetectorRequest(
            flights,
            out.absolute(),
            _judged(validation, test),
            detector_settings(
                epochs=epochs,
                seed=seed,
                pictures=pictures,
                threads=threads,
                width=width.value,
                precision=_precision(precision),
                batch=batch,
            ),
            resume,
            keep_work,
            begin_with,
        )
        with StatusLine(f'training {out.name}') as line:
            metrics = train_detector(request, line.advance)
    for name, figures in metrics.items():
        say(
            f'{name}: mAP50 {figures.get("map50_20px", float("nan")):.3f} for people of 20 px '
            f'and more, {figures.get("map50", float("nan")):.3f} for all of 8 px and more '
            f'({figures["people"]} people in {figures["pictures"]} pictures)'
        )
    typer.echo(out)


@train_app.command('levels')
def levels(
    flights: SetArgument,
    narrow: Annotated[
        Path,
        typer.Option(
            '--narrow',
            metavar='FOLDER',
            exists=True,
            help='bundle or checkpoint of --width narrow',
        ),
    ],
    wide: Annotated[
        Path,
        typer.Option(
            '--wide', metavar='FOLDER', exists=True, help='bundle or checkpoint of --width wide'
        ),
    ],
    out: OutOption,
    validation: ValidationOption = None,
    test: TestOption = None,
) -> None:
    """Join two trained detectors into a bundle with the levels small, medium and large.

    Small and medium are the narrow one at 416x320 and 640x480, large is the wide one. FLIGHTS
    are what they were trained on; both were trained with --keep-work.
    """
    with plain_errors():
        from mmedge_ros.lab.training.detector_session import LevelRequest, join_levels

        request = LevelRequest(
            flights,
            narrow,
            wide,
            out.absolute(),
            _judged(validation, test),
        )
        with StatusLine(f'joining {out.name}') as line:
            metrics = join_levels(request, line.advance)
    for level, by_set in metrics.items():
        for name, figures in by_set.items():
            say(
                f'{level} on {name}: mAP50 {figures.get("map50_20px", float("nan")):.3f} for '
                'people of 20 px and more'
            )
    typer.echo(out)


@train_app.command('fusion')
def fusion(
    flights: SetArgument,
    narrow: Annotated[
        Path,
        typer.Option(
            '--narrow',
            metavar='FOLDER',
            exists=True,
            help='work folder of `mmedge train detector --width narrow --keep-work`',
        ),
    ],
    wide: Annotated[
        Path,
        typer.Option('--wide', metavar='FOLDER', exists=True, help='the same of --width wide'),
    ],
    out: OutOption,
    validation: ValidationOption = None,
    test: TestOption = None,
    epochs: Annotated[
        int,
        typer.Option(
            '--epochs', metavar='N', min=1, max=1000, help='a fifth of the windows is in each'
        ),
    ] = 8,
    seed: SeedOption = 0,
    threads: ThreadsOption = 0,
    processes: Annotated[
        int,
        typer.Option(
            '--jobs',
            metavar='N',
            min=1,
            max=64,
            help='flights encoded at once',
            rich_help_panel=WORK,
        ),
    ] = 2,
    precision: PrecisionOption = Precision.AUTO,
    features: Annotated[
        Path | None,
        typer.Option(
            '--features',
            metavar='FOLDER',
            file_okay=False,
            help='folder that keeps encoders and features, for trainings with other seeds',
            rich_help_panel=WORK,
        ),
    ] = None,
    teacher: Annotated[
        str,
        typer.Option(
            '--pseudo-labels',
            metavar='DETECTOR',
            help='weights, bundle or name of a detector: its boxes are taken to be true',
            rich_help_panel=TRUTH,
        ),
    ] = '',
    frames: Annotated[
        str,
        typer.Option(
            '--frames',
            metavar='FIRST:LAST',
            help='camera frames that are labelled so',
            rich_help_panel=TRUTH,
        ),
    ] = '',
    without: Annotated[
        list[Part] | None,
        typer.Option(
            '--without',
            help='leave out a part of the aggregation, repeatable',
            rich_help_panel=ABLATIONS,
        ),
    ] = None,
    whole_window: Annotated[
        bool,
        flag(
            '--whole-window',
            help='3-D convolutions in its place; cannot be flown',
            rich_help_panel=ABLATIONS,
        ),
    ] = False,
    resume: ResumeOption = False,
    keep_work: Annotated[
        bool,
        flag(
            '--keep-work',
            help='keep features and checkpoints beside the bundle',
            rich_help_panel=WORK,
        ),
    ] = False,
) -> None:
    """Train feature fusion on top of trained detectors and write all of it as a bundle.

    Levels of camera and radar, temporal aggregation and fusion head. Where the flights have no
    ground truth, a detector can stand in for it with --pseudo-labels.
    """
    first, last = frame_span(frames)
    if frames and not teacher:
        raise typer.BadParameter('it is for --pseudo-labels only', param_hint='--frames')
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.lab.training.epoch_training import usual_threads
        from mmedge_ros.lab.training.fusion_session import FusionRequest, train_fusion
        from mmedge_ros.lab.training.fusion_settings import FusionSettings
        from mmedge_ros.lab.training.teacher import Teacher

        request = FusionRequest(
            flights,
            narrow,
            wide,
            out.absolute(),
            _judged(validation, test),
            FusionSettings(
                epochs=epochs,
                seed=seed,
                threads=usual_threads(threads),
                precision=_precision(precision),
                without=tuple(part.value for part in Part if part in (without or ())),
                whole_window=whole_window,
            ),
            features.absolute() if features else None,
            Teacher(default_detector(teacher), (first or 0, last)) if teacher else None,
            processes,
            resume,
            keep_work,
        )
        with StatusLine(f'training {out.name}') as line:
            metrics = train_fusion(request, line.advance)
    for name, figures in metrics.items():
        fused, alone = (figures['full'][what] for what in ('fused', 'newest_picture'))
        say(
            f'{name}: mean IoU {fused.get("mean_iou", float("nan")):.3f} for people of 20 px and '
            f'more, {alone.get("mean_iou", float("nan")):.3f} by the newest picture alone '
            f'({fused["people"]} people in {figures["windows"]} windows)'
        )
    typer.echo(out)


@train_app.command('ablations')
def ablations(
    features: Annotated[
        Path,
        typer.Argument(
            metavar='FEATURES',
            exists=True,
            file_okay=False,
            help='what `mmedge train fusion SET --validation SET --features FOLDER` left there',
        ),
    ],
    out: Annotated[
        Path, typer.Option('--out', metavar='FOLDER', help='folder of the runs and their report')
    ],
    seeds: Annotated[
        int, typer.Option('--seeds', metavar='N', min=1, max=100, help='trainings of each network')
    ] = 3,
    epochs: Annotated[
        int,
        typer.Option(
            '--epochs', metavar='N', min=1, max=1000, help='a fifth of the windows is in each'
        ),
    ] = 2,
    flights: Annotated[
        int,
        typer.Option('--flights', metavar='N', min=0, help='learn from so many only; 0: from all'),
    ] = 0,
    judged: Annotated[
        int, typer.Option('--judged', metavar='N', min=1, help='judge on about so many windows')
    ] = 450,
    threads: ThreadsOption = 0,
    precision: PrecisionOption = Precision.AUTO,
    resume: ResumeOption = False,
) -> None:
    """Train feature fusion with and without its parts, and say what each of them is worth.

    Without temporal shift, without differences, with the last unit only, and with 3-D
    convolutions over the whole window; each with some seeds, in the same way as the full network.
    """
    with plain_errors():
        from mmedge_ros.lab.training.ablation_report import PAGE, summary, write_ablations
        from mmedge_ros.lab.training.ablations import AblationRequest, run_ablations
        from mmedge_ros.lab.training.epoch_training import usual_threads
        from mmedge_ros.lab.training.fusion_settings import FusionSettings

        request = AblationRequest(
            features,
            out.absolute(),
            FusionSettings(
                epochs=epochs,
                seed=0,
                judged_windows=judged,
                threads=usual_threads(threads),
                precision=_precision(precision),
            ),
            seeds,
            flights,
            resume,
        )
        with StatusLine(f'ablations in {out.name}') as line:
            table = run_ablations(request, line.advance)
        write_ablations(request.out, table)
    for sentence in summary(table):
        say(sentence)
    typer.echo(out / PAGE)


train_app.command('gate')(train_gate)
train_app.command('predictor')(train_predictor)
train_app.command('rivals')(train_rivals)


def _judged(validation: Path | None, test: Path | None) -> dict[str, Path]:
    sets = {'validation': validation, 'test': test}
    return {name: folder for name, folder in sets.items() if folder is not None}


def _precision(precision: Precision) -> str:
    from mmedge_ros.lab.training.epoch_training import fastest_precision

    return fastest_precision() if precision is Precision.AUTO else precision.value

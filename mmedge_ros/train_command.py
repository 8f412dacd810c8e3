"""`mmedge train`: networks from flights with ground truth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.display import StatusLine, say

train_app = typer.Typer(
    no_args_is_help=True, help='Train networks on flights with ground truth; needs torch.'
)

SetArgument = Annotated[
    Path,
    typer.Argument(exists=True, file_okay=False, help='set: a folder with one folder per flight'),
]


class Width(Enum):
    """How wide a detector is."""

    NARROW = 'narrow'
    WIDE = 'wide'


class Precision(Enum):
    """What a training calculates with."""

    AUTO = 'auto'
    FLOAT32 = 'float32'
    BFLOAT16 = 'bfloat16'


@contextmanager
def learning_errors() -> Iterator[None]:
    """Turn the errors of training and judging into one sentence and exit code 1."""
    from mmedge_ros.replay_command import plain_errors, stop
    from mmedge_ros.training.errors import TrainingError

    with plain_errors():
        try:
            yield
        except TrainingError as err:
            stop(str(err))


@train_app.callback()
def train() -> None:
    """Train networks on flights with ground truth; needs torch."""


@train_app.command('detector')
def detector(
    flights: SetArgument,
    out: Annotated[Path, typer.Option('--out', help='folder of the bundle; must not exist yet')],
    validation: Annotated[
        Path | None,
        typer.Option('--validation', exists=True, file_okay=False, help='set to judge it on'),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option('--test', exists=True, file_okay=False, help='another set to judge it on'),
    ] = None,
    epochs: Annotated[
        int, typer.Option('--epochs', min=1, max=1000, help='how often each picture is seen')
    ] = 16,
    seed: Annotated[
        int,
        typer.Option('--seed', min=0, max=2**31, help='the same seed gives the same network'),
    ] = 0,
    pictures: Annotated[
        int,
        typer.Option('--pictures', min=1, help='about so many are taken, evenly from all flights'),
    ] = 3600,
    threads: Annotated[
        int, typer.Option('--threads', min=0, max=64, help='0: as many as there are cores')
    ] = 0,
    width: Annotated[
        Width, typer.Option('--width', help='narrow (0.34 M parameters) or wide (1.0 M)')
    ] = Width.NARROW,
    precision: Annotated[
        Precision,
        typer.Option(
            '--precision',
            help='float32, bfloat16, or auto: bfloat16 where the processor is made for it',
        ),
    ] = Precision.AUTO,
    resume: Annotated[
        bool, typer.Option('--resume', help='go on with a training that was cut short')
    ] = False,
    keep_work: Annotated[
        bool,
        typer.Option('--keep-work', help='keep the pictures and checkpoints beside the bundle'),
    ] = False,
) -> None:
    """Train the small detector on simulated flights and write it as a bundle.

    It finds people, cyclists, cars and dogs. The same seed on the same machine gives the same
    network. A training that is cut short goes on with --resume.
    """
    with learning_errors():
        from mmedge_ros.training.detector_session import DetectorRequest, train_detector
        from mmedge_ros.training.detector_settings import detector_settings
        from mmedge_ros.training.detector_training import fastest_precision

        judged = {'validation': validation, 'test': test}
        request = DetectorRequest(
            flights,
            out.absolute(),
            {name: folder for name, folder in judged.items() if folder is not None},
            detector_settings(
                epochs=epochs,
                seed=seed,
                pictures=pictures,
                threads=threads,
                width=width.value,
                precision=fastest_precision() if precision.value == 'auto' else precision.value,
            ),
            resume,
            keep_work,
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

"""`mmedge lab train recogniser`: what tracked objects look like, learned from random scenes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_lab.commands.train_replayed import OutOption, SeedOption
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import WORK, BundleArgument, JobsOption, flag, option


def train_recogniser(
    bundle: BundleArgument,
    out: OutOption,
    crops: Annotated[
        Path,
        option('--crops', 'FOLDER', 'keeps the crops of the scenes, for other trainings', WORK),
    ] = Path('out/crops'),
    scenes: Annotated[
        int, option('--scenes', 'N', 'random scenes to take crops from', min=20, max=2400)
    ] = 860,
    epochs: Annotated[
        int, option('--epochs', 'N', 'how often as many crops are seen', min=1, max=1000)
    ] = 16,
    seed: SeedOption = 0,
    threads: Annotated[
        int,
        option(
            '--threads', 'N', 'more than one helps little: steps are small', WORK, min=1, max=64
        ),
    ] = 1,
    jobs: JobsOption = 2,
    resume: Annotated[
        bool, flag('--resume', 'go on with a training that was cut short', WORK)
    ] = False,
) -> None:
    """Train the recogniser of class, colours, backpack and child, and its semantic memory.

    It learns from crops of simulated scenes, every tap of it is taught to tell the classes apart,
    and it goes into a copy of BUNDLE.
    """
    with plain_errors():
        from mmedge_lab.training.checkpoint import work_beside
        from mmedge_lab.training.epoch_training import (
            fastest_precision,
            prepare_torch,
        )
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        prepare_torch(work_beside(out.absolute()), threads)
        from mmedge_lab.training.recogniser_session import (
            RecogniserRequest,
            describe,
            run_recogniser,
        )
        from mmedge_lab.training.recogniser_training import RecogniserSettings

        request = RecogniserRequest(
            folder,
            out.absolute(),
            crops,
            RecogniserSettings(
                scenes=scenes,
                epochs=epochs,
                seed=seed,
                threads=threads,
                precision=fastest_precision(),
            ),
            jobs,
            resume,
        )
        with StatusLine(f'training {out.name}') as line:
            figures = run_recogniser(request, line.advance)
    say(describe(figures))
    typer.echo(out)

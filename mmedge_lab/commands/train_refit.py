"""`mmedge lab train refit`: whole bundles for new camera stages, by one command."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import WORK, JobsOption, flag, option


def train_refit(
    narrow: Annotated[
        Path, option('--narrow', 'FOLDER', 'bundle or checkpoint of --width narrow', exists=True)
    ],
    wide: Annotated[
        Path, option('--wide', 'FOLDER', 'bundle or checkpoint of --width wide', exists=True)
    ],
    scenes: Annotated[
        Path,
        option('--scenes', 'SET', 'what the detectors learned from', exists=True, file_okay=False),
    ],
    sets: Annotated[
        Path,
        option(
            '--sets',
            'FOLDER',
            'folder of the standard sets; flights that are not there are simulated',
            file_okay=False,
        ),
    ],
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the bundles', file_okay=False)],
    steps: Annotated[
        str,
        option(
            '--steps',
            'NAME,...',
            'only these of levels, fusion, noise, accuracy, predictor and rivals \\[all]',
            WORK,
        ),
    ] = '',
    epochs: Annotated[int, option('--epochs', 'N', 'of the fusion', min=1, max=1000)] = 8,
    flights: Annotated[
        int, option('--flights', 'N', 'the fusion learns from so many only; 0: all 90', min=0)
    ] = 0,
    judged: Annotated[
        int,
        option('--judged', 'N', 'rates and levels are measured on so many flights', min=2),
    ] = 6,
    jobs: JobsOption = 2,
    only_plan: Annotated[
        bool, flag('--plan', 'only say what is there, what is stale and what would be made', WORK)
    ] = False,
) -> None:
    """Fit everything to new camera stages: two bundles like flight_people and fused_people.

    Levels, radar networks, fusion, noise, accuracies, predictor and rivals. What is there and was
    made from the same detectors is kept: a run that is cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.training.epoch_training import fastest_precision, usual_threads
        from mmedge_lab.training.fusion_settings import FusionSettings
        from mmedge_lab.training.refit import (
            RefitRequest,
            do_step,
            plan,
            refit_steps,
            require_detectors,
        )

        request = RefitRequest(
            narrow,
            wide,
            scenes,
            sets,
            out.absolute(),
            FusionSettings(epochs=epochs, threads=usual_threads(0), precision=fastest_precision()),
            flights,
            judged,
            jobs,
        )
        chosen = refit_steps(request, [name.strip() for name in steps.split(',') if name.strip()])
        planned = plan(chosen)
        for step, reason in planned:
            say(f'{step.title}: {f"to be made ({reason})" if reason else "there"}')
        if not only_plan and any(reason for _, reason in planned):
            with TemporaryDirectory() as folder:
                require_detectors(request, Path(folder))
                for step in chosen:
                    begun = time.monotonic()
                    with StatusLine(step.title) as line:
                        done = do_step(step, line.advance)
                    if done:
                        say(f'{step.title}: made in {(time.monotonic() - begun) / 60:.1f} min')
    typer.echo(out)

"""`mmedge train rivals`: gating, model selection and imputation, to be compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.command_errors import plain_errors
from mmedge_ros.commands.display import StatusLine, say


def train_rivals(
    flights: Annotated[
        Path,
        typer.Argument(
            exists=True, file_okay=False, help='set: a folder with one folder per flight'
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            '--out',
            help='folder of the rivals; must not exist yet. In BUNDLE/rivals they are found',
        ),
    ],
    bundle: Annotated[
        str, typer.Option('--bundle', help='bundle folder, or the name of a bundle')
    ] = 'flight_people',
    validation: Annotated[
        Path | None,
        typer.Option('--validation', exists=True, file_okay=False, help='set to judge them on'),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            '--threshold',
            min=0.0,
            max=1.0,
            help='the camera rests if that is no loss with this probability',
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            '--margin',
            min=0.0,
            max=1.0,
            help='by how much the quality of a window may fall short of that of the best level',
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option('--seed', min=0, max=2**31 - 1, help='the same seed gives the same rivals'),
    ] = 0,
    jobs: Annotated[
        int, typer.Option('--jobs', min=0, help='flights at once; 0: one per processor')
    ] = 2,
) -> None:
    """Train the rivals that `mmedge evaluate` compares with, for the encoders of a bundle.

    Modality gating lets the camera rest where its pictures would change nothing for the better,
    model selection picks a level for each window, imputation makes up the picture that is not
    ready. Samples of each flight are kept: a run that is cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.lab.training.rivals.rival_training import RivalSettings
        from mmedge_ros.lab.training.rivals.rivals_session import RivalsRequest, build_rivals

        usual = RivalSettings()
        settings = RivalSettings(
            replace(usual.windows, seed=seed),
            replace(usual.pictures, seed=seed),
            usual.threshold if threshold is None else threshold,
            usual.margin if margin is None else margin,
        )
        folder = default_detector(bundle)
        request = RivalsRequest(folder, flights, out.absolute(), validation, settings, jobs)
        with StatusLine(f'rivals for {folder.name}') as line:
            facts = build_rivals(request, line.advance)
    for rival, figures in (facts['validation'] or {}).items():
        if isinstance(figures, dict):
            words = ', '.join(f'{name} {value:g}' for name, value in figures.items())
            say(f'{rival} on {facts["validation"]["set"]}: {words}')
    typer.echo(out)

"""`mmedge train predictor`: what configurations are worth in the present scene."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.command_errors import plain_errors
from mmedge_ros.commands.display import StatusLine, say


def train_predictor(
    bundle: Annotated[str, typer.Argument(help='bundle folder, or the name of a bundle')],
    calibration: Annotated[
        Path,
        typer.Option('--calibration', exists=True, file_okay=False, help='set it learns from'),
    ],
    test: Annotated[
        Path,
        typer.Option('--test', exists=True, file_okay=False, help='set that it is judged on'),
    ],
    out: Annotated[Path, typer.Option('--out', help='folder of the bundle; must not exist yet')],
    seconds: Annotated[
        float,
        typer.Option('--seconds', min=0.0, help='use so much of each flight; 0: all of it'),
    ] = 6.0,
    test_flights: Annotated[
        int,
        typer.Option(
            '--test-flights', min=0, help='judge on so many, spread over the set; 0: all'
        ),
    ] = 0,
    samples: Annotated[
        Path | None,
        typer.Option('--samples', file_okay=False, help='folder that keeps what was replayed'),
    ] = None,
    jobs: Annotated[
        int, typer.Option('--jobs', min=0, help='flights at once; 0: one per processor')
    ] = 2,
    report: Annotated[Path, typer.Option('--report', help='folder of the report')] = Path(
        'out/train-predictor'
    ),
) -> None:
    """Learn how accurate configurations are in the scene of the moment, and judge that.

    It learns from flights replayed in many configurations, and is compared on other flights with
    a table that knows the configuration alone. The copy of the bundle says which of them is used:
    the predictor only where errors and choices are better beyond doubt. What was replayed before
    is kept: a run that is cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.lab.training.accuracy_predictor_session import (
            PredictorRequest,
            build_predictor,
        )

        folder = default_detector(bundle)
        request = PredictorRequest(
            folder,
            calibration,
            test,
            out.absolute(),
            report,
            seconds,
            test_flights,
            samples,
            jobs,
        )
        with StatusLine(f'predictor for {folder.name}') as line:
            content = build_predictor(request, line.advance)
        for name, comparison in content['against'].items():
            for what, figures in comparison.items():
                value, low, high = figures['difference']
                say(
                    f'{what} of the predictor {figures["predictor"]:.4f}, of the '
                    f'{name.replace("_", " ")} {figures["table"]:.4f}: difference {value:.4f} '
                    f'({low:.4f} to {high:.4f})'
                )
        say(f'used: the {content["used"]}')
    typer.echo(out)

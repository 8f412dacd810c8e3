"""`mmedge train gate`, `predictor` and `rivals`: what is learned from replayed flights."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors, stop
from mmedge_ros.commands.options import (
    SETS,
    WORK,
    BundleArgument,
    JobsOption,
    SetArgument,
    existing_set,
)

# Panel of help.
CERTIFICATE = 'Certificate'

ReportOption = Annotated[
    Path, typer.Option('--report', metavar='FOLDER', help='folder of the report')
]
OutOption = Annotated[
    Path, typer.Option('--out', metavar='FOLDER', help='folder of the bundle; must not exist yet')
]


class Strategy(Enum):
    """How the sensors are fused."""

    AUTO = 'auto'
    DECISION = 'decision'
    FEATURE = 'feature'


class Method(Enum):
    """How a threshold is certified."""

    STUDENT = 'student'
    HOEFFDING_BENTKUS = 'hoeffding_bentkus'


def train_gate(
    bundle: BundleArgument,
    train: Annotated[
        Path,
        typer.Option(
            '--train', metavar='SET', exists=True, file_okay=False, help='set it learns from'
        ),
    ],
    calibration: Annotated[
        Path,
        typer.Option(
            '--calibration',
            metavar='SET',
            exists=True,
            file_okay=False,
            help='set that certifies thresholds',
        ),
    ],
    out: OutOption,
    test: Annotated[
        Path | None,
        existing_set(
            '--test',
            help='set to judge it on',
        ),
    ] = None,
    shifted: Annotated[
        Path | None,
        typer.Option(
            '--shifted',
            metavar='SET',
            exists=True,
            file_okay=False,
            help='set of another kind, on which the drift monitor should raise an alarm',
            rich_help_panel=SETS,
        ),
    ] = None,
    level: Annotated[
        str, typer.Option('--level', metavar='NAME', help='level of the camera that is flown')
    ] = 'medium',
    strategy: Annotated[
        Strategy, typer.Option('--strategy', help='auto: by networks where the bundle has them')
    ] = Strategy.AUTO,
    alpha: Annotated[
        float,
        typer.Option(
            '--alpha',
            metavar='SHARE',
            min=0.001,
            max=0.5,
            help='share of early decisions that may differ',
            rich_help_panel=CERTIFICATE,
        ),
    ] = 0.05,
    confidence: Annotated[
        float,
        typer.Option(
            '--confidence',
            metavar='SHARE',
            min=0.5,
            max=0.999,
            help='that this is kept',
            rich_help_panel=CERTIFICATE,
        ),
    ] = 0.9,
    method: Annotated[
        Method,
        typer.Option(
            '--method',
            help='student: approximate, from 10 flights on; hoeffding_bentkus: holds for any '
            'flights, needs 45 of them for 5 %',
            rich_help_panel=CERTIFICATE,
        ),
    ] = Method.STUDENT,
    seed: Annotated[
        int,
        typer.Option(
            '--seed', metavar='N', min=0, max=2**31 - 1, help='the same seed gives the same gate'
        ),
    ] = 0,
    jobs: JobsOption = 2,
    report: ReportOption = Path('out/train-gate'),
) -> None:
    """Train the gate that lets the camera rest, certify it, and put it into a copy of a bundle.

    It learns from flights replayed with early decisions made at random, and is certified by
    whole flights that it did not learn from. What was replayed before is kept: a run that is cut
    short goes on where it was. Where nothing can be certified no bundle is written.
    """
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.lab.gates.gate_report import PAGE, gate_summary
        from mmedge_ros.lab.training.gate_session import GateRequest, build_gate
        from mmedge_ros.lab.training.gate_training import GateTrainingSettings

        request = GateRequest(
            default_detector(bundle),
            train,
            calibration,
            out.absolute(),
            report,
            test,
            shifted,
            level,
            '' if strategy is Strategy.AUTO else strategy.value,
            alpha,
            confidence,
            method.value,
            GateTrainingSettings(seed=seed),
            jobs,
        )
        with StatusLine(f'gate for {request.bundle.name}') as line:
            content = build_gate(request, line.advance)
        say(gate_summary(content))
        typer.echo(report / PAGE)
        if not content['certified']:
            stop(
                f'nothing is certified at {alpha:g}, so no bundle was written; what the flights '
                f'allow is in {report / PAGE}. More flights, or a larger --alpha, may do'
            )
    typer.echo(out)


def train_predictor(
    bundle: BundleArgument,
    train: Annotated[
        Path,
        typer.Option(
            '--train', metavar='SET', exists=True, file_okay=False, help='set it learns from'
        ),
    ],
    test: Annotated[
        Path,
        existing_set(
            '--test',
            help='set that it is judged on',
        ),
    ],
    out: OutOption,
    seconds: Annotated[
        float,
        typer.Option(
            '--seconds', metavar='S', min=0.0, help='use so much of each flight; 0: all of it'
        ),
    ] = 6.0,
    test_flights: Annotated[
        int,
        typer.Option(
            '--test-flights',
            metavar='N',
            min=0,
            help='judge on so many, spread over the set; 0: all',
        ),
    ] = 0,
    replays: Annotated[
        Path | None,
        typer.Option(
            '--replays',
            metavar='FOLDER',
            file_okay=False,
            help='folder that keeps what was replayed',
            rich_help_panel=WORK,
        ),
    ] = None,
    jobs: JobsOption = 2,
    report: ReportOption = Path('out/train-predictor'),
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
            train,
            test,
            out.absolute(),
            report,
            seconds,
            test_flights,
            replays,
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


def train_rivals(
    flights: SetArgument,
    out: Annotated[
        Path,
        typer.Option(
            '--out',
            metavar='FOLDER',
            help='folder of the rivals; must not exist yet. In BUNDLE/rivals they are found',
        ),
    ],
    bundle: Annotated[
        str,
        typer.Option('--bundle', metavar='BUNDLE', help='bundle folder, or the name of a bundle'),
    ] = 'flight_people',
    validation: Annotated[
        Path | None,
        existing_set(
            '--validation',
            help='set to judge them on',
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            '--threshold',
            metavar='SHARE',
            min=0.0,
            max=1.0,
            help='the camera rests if that is no loss with this probability',
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            '--margin',
            metavar='SHARE',
            min=0.0,
            max=1.0,
            help='by how much the quality of a window may fall short of that of the best level',
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            '--seed', metavar='N', min=0, max=2**31 - 1, help='the same seed gives the same rivals'
        ),
    ] = 0,
    jobs: JobsOption = 2,
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

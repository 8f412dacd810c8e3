"""`mmedge train gate`: a gate for skipping, certified by whole flights."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.command_errors import plain_errors, stop
from mmedge_ros.commands.display import StatusLine, say


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
    bundle: Annotated[str, typer.Argument(help='bundle folder, or the name of a bundle')],
    samples: Annotated[
        Path,
        typer.Option('--samples', exists=True, file_okay=False, help='set it learns from'),
    ],
    calibration: Annotated[
        Path,
        typer.Option(
            '--calibration', exists=True, file_okay=False, help='set that certifies thresholds'
        ),
    ],
    out: Annotated[Path, typer.Option('--out', help='folder of the bundle; must not exist yet')],
    test: Annotated[
        Path | None,
        typer.Option('--test', exists=True, file_okay=False, help='set to judge it on'),
    ] = None,
    shifted: Annotated[
        Path | None,
        typer.Option(
            '--shifted',
            exists=True,
            file_okay=False,
            help='set of another kind, on which the drift monitor should raise an alarm',
        ),
    ] = None,
    level: Annotated[
        str, typer.Option('--level', help='level of the camera that is flown')
    ] = 'medium',
    strategy: Annotated[
        Strategy, typer.Option('--strategy', help='auto: by networks where the bundle has them')
    ] = Strategy.AUTO,
    alpha: Annotated[
        float,
        typer.Option(
            '--alpha', min=0.001, max=0.5, help='share of early decisions that may differ'
        ),
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option('--confidence', min=0.5, max=0.999, help='that this is kept')
    ] = 0.9,
    method: Annotated[
        Method,
        typer.Option(
            '--method',
            help='student: approximate, from 10 flights on; hoeffding_bentkus: holds for any '
            'flights, needs 45 of them for 5 %',
        ),
    ] = Method.STUDENT,
    seed: Annotated[
        int, typer.Option('--seed', min=0, max=2**31 - 1, help='the same seed gives the same gate')
    ] = 0,
    jobs: Annotated[
        int, typer.Option('--jobs', min=0, help='flights at once; 0: one per processor')
    ] = 2,
    report: Annotated[Path, typer.Option('--report', help='folder of the report')] = Path(
        'out/train-gate'
    ),
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
            samples,
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

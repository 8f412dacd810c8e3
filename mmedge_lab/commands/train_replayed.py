"""`mmedge lab train gate`, `noise`, `predictor`, `rivals`: learned from replayed flights."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors, stop
from mmedge_ros.commands.options import (
    WORK,
    BundleArgument,
    JobsOption,
    SetArgument,
    argument,
    existing_file,
    existing_set,
    option,
)

# Panel of help.
CERTIFICATE = 'Certificate'

OutOption = Annotated[Path, option('--out', 'FOLDER', 'folder of the bundle; must not exist yet')]
TrainSetsOption = Annotated[
    list[Path], existing_set('--train', 'set it learns from; may be given again', '')
]
ServiceTimesOption = Annotated[
    Path | None,
    existing_file('--profile', 'service times from a device profile: the same result every time'),
]
TrainOption = Annotated[Path, existing_set('--train', 'set it learns from', '')]
ValidationOption = Annotated[Path | None, existing_set('--validation', 'set to judge it on')]
SeedOption = Annotated[
    int, option('--seed', 'N', 'the same seed gives the same result', min=0, max=2**31 - 1)
]


class FusionChoice(Enum):
    """How the sensors are fused."""

    AUTO = 'auto'
    DECISION = 'decision'
    FEATURE = 'feature'


def train_gate(
    bundle: BundleArgument,
    train: TrainOption,
    calibration: Annotated[
        Path, existing_set('--calibration', 'set that certifies thresholds', '')
    ],
    out: OutOption,
    level: Annotated[
        str, option('--level', 'NAME', 'level of the camera that is flown')
    ] = 'medium',
    strategy: Annotated[
        FusionChoice, option('--strategy', '', 'auto: by networks where the bundle has them')
    ] = FusionChoice.AUTO,
    delta: Annotated[
        float,
        option(
            '--delta',
            'SHARE',
            'most that may be lost, of streaming IoU and of the people kept in view',
            CERTIFICATE,
            min=0.001,
            max=0.5,
        ),
    ] = 0.01,
    confidence: Annotated[
        float,
        option('--confidence', 'SHARE', 'that this is kept', CERTIFICATE, min=0.5, max=0.999),
    ] = 0.9,
    seconds: Annotated[
        float, option('--seconds', 'S', 'certify by so much of each flight; 0: all', min=0.0)
    ] = 0.0,
    seed: SeedOption = 0,
    jobs: JobsOption = 2,
) -> None:
    """Train the gate that lets the camera rest, certify it, and put it into a copy of a bundle.

    It learns from flights replayed with early decisions made at random, and is certified by
    whole flights that it did not learn from. What was replayed before is kept: a run that is cut
    short goes on where it was. Where nothing can be certified no bundle is written. `mmedge lab
    bench gate` says what the gate saves and loses beside a lower rate of the camera and reuse.
    """
    with plain_errors():
        from mmedge_lab.training.gate_training import (
            GateRequest,
            GateTrainingSettings,
            build_gate,
        )
        from mmedge_ros.encoding.bundle.default_model import default_detector

        request = GateRequest(
            default_detector(bundle),
            train,
            calibration,
            out.absolute(),
            level,
            '' if strategy is FusionChoice.AUTO else strategy.value,
            delta,
            confidence,
            seconds,
            GateTrainingSettings(seed=seed),
            jobs,
        )
        with StatusLine(f'gate for {request.bundle.name}') as line:
            certificates = build_gate(request, line.advance)
        for certificate in certificates:
            lost = certificate.total
            say(
                f'at most {certificate.delta:g} lost: threshold {certificate.threshold:.3f}, '
                f'{lost.saved / max(lost.encodes, 1):.1%} of the encodes saved, '
                f'{lost.iou / max(lost.people, 1):.4f} of streaming IoU lost'
                if certificate.holds
                else f'at most {certificate.delta:g} lost: nothing is certified'
            )
        if not out.exists():
            stop(
                f'nothing is certified at {delta:g}, so no bundle was written; more flights, or a '
                'larger --delta, may do'
            )
    typer.echo(out)


def train_noise(
    bundle: BundleArgument,
    train: TrainSetsOption,
    profile: ServiceTimesOption = None,
) -> None:
    """Fit how large the errors of tracks are with a bundle, and write that into the bundle.

    Afterwards the covariances of tracks fit their errors on average (NEES 4).
    """
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_lab.training.noise_fit import fit_noise_scale, write_noise_scale
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        flights = [flight for chosen in train for flight in flights_in(chosen)]
        with StatusLine(f'noise of {folder.name}') as line:
            fit = fit_noise_scale(folder, flights, profile, line.advance)
        write_noise_scale(folder, fit)
        for what, nees in (('as it was', fit.before), ('on seeds left out', fit.left_out)):
            say(f'mean NEES {what}: {nees.value:.2f} ({nees.low:.2f} to {nees.high:.2f})')
    typer.echo(f'{fit.scale:.3g}')


def train_pictures(
    bundles: Annotated[list[str], argument('BUNDLE...', 'bundle folders, or names of bundles')],
    train: TrainSetsOption,
    every: Annotated[
        int, option('--every', 'N', 'look at every N-th picture only', min=1, max=100)
    ] = 1,
) -> None:
    """Note in bundles how the pictures of flights look, so that other ones are noticed in flight.

    Fog, a dirty lens or lamps that flicker are then warned of; no track changes by it.
    """
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_lab.training.picture_fit import fit_pictures, write_pictures
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folders = [default_detector(bundle) for bundle in bundles]
        flights = [flight for chosen in train for flight in flights_in(chosen)]
        with StatusLine('usual pictures') as line:
            usual = fit_pictures(flights, every, line.advance)
        for folder in folders:
            write_pictures(folder, usual, len(flights))
    for folder in folders:
        typer.echo(folder)


def train_predictor(
    bundle: BundleArgument,
    train: TrainOption,
    out: OutOption,
    seconds: Annotated[
        float, option('--seconds', 'S', 'use so much of each flight; 0: all of it', min=0.0)
    ] = 6.0,
    replays: Annotated[
        Path | None,
        option(
            '--replays', 'FOLDER', 'folder that keeps what was replayed', WORK, file_okay=False
        ),
    ] = None,
    jobs: JobsOption = 2,
) -> None:
    """Learn how accurate configurations are in the scene of the moment.

    It learns from flights replayed in many configurations, on top of a table that knows the
    configuration alone. Where it chooses no better on flights held out, the copy of the bundle
    keeps to the table. What was replayed before is kept: a run that is cut short goes on where it
    was. `mmedge lab bench predictor` judges it on other flights.
    """
    with plain_errors():
        from mmedge_lab.training.accuracy_predictor import PredictorRequest, build_predictor
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        request = PredictorRequest(
            folder, train, out.absolute(), seconds, replays=replays, jobs=jobs
        )
        with StatusLine(f'predictor for {folder.name}') as line:
            learnt = build_predictor(request, line.advance)
    say(f'used: the {"predictor" if learnt.is_used else "table"}')
    typer.echo(out)


def train_rivals(
    flights: SetArgument,
    out: Annotated[
        Path,
        option(
            '--out',
            'FOLDER',
            'folder of the rival; must not exist yet. In BUNDLE/rivals it is found',
        ),
    ],
    bundle: Annotated[
        str, option('--bundle', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    validation: Annotated[Path | None, existing_set('--validation', 'set to judge it on')] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = 2,
) -> None:
    """Train the rival that `mmedge lab bench rivals` compares with, for the encoders of a bundle.

    It makes up the picture that is not ready (imputation). Samples of each flight are kept: a
    run that is cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.training.imputation_training import RivalsRequest, build_rivals
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        request = RivalsRequest(folder, flights, out.absolute(), validation, jobs=jobs)
        request = replace(request, settings=replace(request.settings, seed=seed))
        with StatusLine(f'rival for {folder.name}') as line:
            facts = build_rivals(request, line.advance)
    if facts['validation']:
        figures = facts['validation']['imputation'].items()
        words = ', '.join(f'{name} {value:g}' for name, value in figures)
        say(f'imputation on {facts["validation"]["set"]}: {words}')
    typer.echo(out)

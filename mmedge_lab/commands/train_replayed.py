"""`mmedge lab train gate` and `fit`: learned from replayed flights."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors, stop
from mmedge_ros.commands.options import (
    BundleArgument,
    JobsOption,
    argument,
    existing_file,
    existing_set,
    option,
)

if TYPE_CHECKING:
    from mmedge_lab.training import Report

# Panel of help.
CERTIFICATE = 'Certificate'

OutOption = Annotated[Path, option('--out', 'FOLDER', 'folder of the bundle; must not exist yet')]
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
    bench rivals` flies a bundle with its gate and without (`ours_without_skipping`).
    """
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_lab.training.gate_training import (
            GateTrainingSettings,
            build_gate,
            gate_setting,
        )
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        wanted = '' if strategy is FusionChoice.AUTO else strategy.value
        with StatusLine(f'gate for {folder.name}') as line:
            certificates = build_gate(
                gate_setting(folder, level, wanted, seconds),
                flights_in(train),
                flights_in(calibration),
                out.absolute(),
                delta,
                confidence,
                GateTrainingSettings(seed=seed),
                jobs,
                line.advance,
            )
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


class Fitted(Enum):
    """What is fitted to a bundle as it is."""

    NOISE = 'noise'
    PICTURES = 'pictures'
    PREDICTOR = 'predictor'
    IMPUTER = 'imputer'


def train_fit(
    what: Annotated[Fitted, argument('WHAT', 'noise, pictures, predictor or imputer')],
    bundle: BundleArgument,
    train: Annotated[
        list[Path], existing_set('--train', 'set it learns from; may be given again', '')
    ],
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile',
            'noise: service times from a device profile, for the same result every time',
        ),
    ] = None,
    seconds: Annotated[
        float, option('--seconds', 'S', 'predictor: use so much of each flight; 0: all', min=0.0)
    ] = 6.0,
    jobs: JobsOption = 2,
) -> None:
    """Fit a part of a bundle to flights, and write it into the bundle.

    noise: how large errors of tracks are, so that covariances fit them on average (NEES 4).

    pictures: how pictures look, so that fog, a dirty lens or lamps that flicker are warned of.

    predictor: how accurate configurations are in the scene of the moment. It keeps to the table
    of accuracies where it chooses no better on flights held out.

    imputer: where people are in a picture that is not ready, for a rival of `mmedge lab bench
    rivals`.

    Samples of flights are kept: a run that was cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        flights = [flight for chosen in train for flight in flights_in(chosen)]
        with StatusLine(f'{what.value} of {folder.name}') as line:
            if what is Fitted.NOISE:
                words = _fit_noise(folder, flights, profile, line.advance)
            elif what is Fitted.PICTURES:
                words = _fit_pictures(folder, flights, line.advance)
            elif what is Fitted.IMPUTER:
                from mmedge_lab.training.imputation_training import fit_imputer

                facts = fit_imputer(folder, flights, jobs, line.advance)
                words = f'learned from {facts["samples"]} samples'
            else:
                from mmedge_lab.training.accuracy_predictor import fit_predictor

                learnt = fit_predictor(folder, flights, seconds, jobs, line.advance)
                words = f'used: the {"predictor" if learnt.is_used else "table"}'
    say(words)
    typer.echo(folder)


def _fit_noise(folder: Path, flights: list[Path], profile: Path | None, report: Report) -> str:
    from mmedge_lab.training.noise_fit import fit_noise_scale, write_noise_scale

    fit = fit_noise_scale(folder, flights, profile, report)
    write_noise_scale(folder, fit)
    before, after = (
        f'{nees.value:.2f} ({nees.low:.2f} to {nees.high:.2f})'
        for nees in (fit.before, fit.left_out)
    )
    return f'scale {fit.scale:.3g}: mean NEES {before} as it was, {after} on seeds left out'


def _fit_pictures(folder: Path, flights: list[Path], report: Report) -> str:
    from mmedge_lab.training.picture_fit import fit_pictures, write_pictures

    write_pictures(folder, fit_pictures(flights, report), len(flights))
    return f'pictures of {len(flights)} flights are usual now'

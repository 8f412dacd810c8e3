"""`mmedge lab train`: networks from flights with ground truth."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.command_group import CommandGroup
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
    flag,
    option,
)

if TYPE_CHECKING:
    from mmedge_lab.training import Report

# Panels of help.
ABLATIONS, CERTIFICATE = 'Ablations', 'Certificate'

OutOption = Annotated[Path, option('--out', 'FOLDER', 'folder of the bundle; must not exist yet')]
TrainOption = Annotated[Path, existing_set('--train', 'set it learns from', '')]
ValidationOption = Annotated[Path | None, existing_set('--validation', 'set to judge it on')]
SeedOption = Annotated[
    int, option('--seed', 'N', 'the same seed gives the same result', min=0, max=2**31 - 1)
]

train_app = CommandGroup(
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


DataArgument = Annotated[
    list[Path],
    argument(
        'DATA...',
        'pictures with labels, in any mix: of mmedge simulate --set scenes, folders with '
        'images/NAME.jpg beside labels/NAME.txt, data.yaml as ultralytics has it, COCO .json',
        exists=True,
    ),
]
AttributionOption = Annotated[
    str, option('--attribution', 'TEXT', 'what the licences of the pictures ask to be said')
]
NarrowOption = Annotated[
    Path, option('--narrow', 'BUNDLE', 'detector of --width narrow', exists=True)
]
WideOption = Annotated[Path, option('--wide', 'BUNDLE', 'detector of --width wide', exists=True)]
KeepWorkOption = Annotated[
    bool, flag('--keep-work', 'keep data and checkpoints beside the bundle', WORK)
]


@train_app.callback()
def train() -> None:
    """Train networks on flights with ground truth; needs torch."""


@train_app.command('detector')
def detector(
    data: DataArgument,
    out: OutOption,
    validation: ValidationOption = None,
    epochs: Annotated[
        int, option('--epochs', 'N', 'how often each picture is seen', min=1, max=1000)
    ] = 16,
    seed: SeedOption = 0,
    threads: Annotated[
        int, option('--threads', 'N', '0: as many as there are cores', WORK, min=0, max=64)
    ] = 0,
    width: Annotated[
        Width, option('--width', '', 'narrow (0.34 M parameters) or wide (1.0 M)')
    ] = Width.NARROW,
    batch: Annotated[
        int, option('--batch', 'N', 'pictures in a step; 128 for a GPU', min=1, max=1024)
    ] = 16,
    begin_with: Annotated[
        Path | None,
        option(
            '--begin-with',
            'BUNDLE',
            'bundle with a detector of that width to begin with, such as models/flight_people',
            exists=True,
        ),
    ] = None,
    rate: Annotated[
        float, option('--rate', 'RATE', 'learning rate of a batch of 16', min=1e-6, max=0.1)
    ] = 2e-3,
    remind: Annotated[
        Path | None,
        option(
            '--remind',
            'BUNDLE',
            'bundle whose scores of simulated pictures it learns too, so that less is forgotten',
            exists=True,
        ),
    ] = None,
    teacher: Annotated[
        Path | None,
        existing_file('--teacher', 'YOLOX .onnx whose scores of real colour pictures it learns'),
    ] = None,
    attribution: AttributionOption = '',
) -> None:
    """Train the small detector on pictures with labels and write it as a bundle.

    It finds people, cyclists, cars and dogs. Half of an epoch is simulated pictures; all other
    kinds are drawn equally often (at most eight times over). A class that nobody labelled in one
    of them is not unlearned. The same seed on the same machine gives the same network. A training
    that was cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.training.detector_training import DetectorSettings, train_detector
        from mmedge_lab.training.epoch_training import fastest_precision, usual_threads

        settings = DetectorSettings(
            epochs=epochs,
            seed=seed,
            threads=usual_threads(threads),
            width=width.value,
            precision=fastest_precision(),
            batch=batch,
            learning_rate=rate,
        )
        with StatusLine(f'training {out.name}') as line:
            metrics = train_detector(
                data,
                out.absolute(),
                line.advance,
                validation=validation,
                settings=settings,
                begin_with=begin_with,
                remind=remind,
                teacher=teacher,
                attribution=attribution,
            )
    for name, figures in metrics.items():
        say(
            f'{name}: mAP50 {figures.get("map50_20px", float("nan")):.3f} for people of 20 px '
            f'and more, {figures.get("map50", float("nan")):.3f} for all of 8 px and more '
            f'({figures["people"]} people in {figures["pictures"]} pictures)'
        )
    typer.echo(out)


@train_app.command('levels')
def levels(
    data: DataArgument,
    narrow: NarrowOption,
    wide: WideOption,
    out: OutOption,
    validation: ValidationOption = None,
    attribution: AttributionOption = '',
) -> None:
    """Join two trained detectors into a bundle with the levels small, medium and large.

    Small and medium are the narrow one at 416x320 and 640x480, large is the wide one. DATA are
    what they were trained on.
    """
    with plain_errors():
        from mmedge_lab.training.detector_training import join_levels

        with StatusLine(f'joining {out.name}') as line:
            metrics = join_levels(
                data, narrow, wide, out.absolute(), line.advance, validation, attribution
            )
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
    narrow: NarrowOption,
    wide: WideOption,
    out: OutOption,
    validation: ValidationOption = None,
    epochs: Annotated[
        int, option('--epochs', 'N', 'a fifth of the windows is in each', min=1, max=1000)
    ] = 8,
    seed: SeedOption = 0,
    jobs: JobsOption = 2,
    features: Annotated[
        Path | None,
        option(
            '--features',
            'FOLDER',
            'folder that keeps encoders and features, for trainings with other seeds',
            WORK,
            file_okay=False,
        ),
    ] = None,
    without: Annotated[
        list[Part] | None,
        option('--without', '', 'leave out a part of the aggregation, repeatable', ABLATIONS),
    ] = None,
    keep_work: KeepWorkOption = False,
) -> None:
    """Train feature fusion on top of trained detectors and write all of it as a bundle.

    Levels of camera and radar, temporal aggregation and fusion head. A training that was cut
    short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.training.epoch_training import fastest_precision, usual_threads
        from mmedge_lab.training.fusion_session import train_fusion
        from mmedge_lab.training.fusion_settings import FusionSettings

        settings = FusionSettings(
            epochs=epochs,
            seed=seed,
            threads=usual_threads(0),
            precision=fastest_precision(),
            without=tuple(part.value for part in Part if part in (without or ())),
        )
        with StatusLine(f'training {out.name}') as line:
            metrics = train_fusion(
                flights,
                narrow,
                wide,
                out.absolute(),
                line.advance,
                validation=validation,
                settings=settings,
                features=features.absolute() if features else None,
                jobs=jobs,
                keep_work=keep_work,
            )
    for name, figures in metrics.items():
        fused, alone = (figures['full'][what] for what in ('fused', 'newest_picture'))
        say(
            f'{name}: mean IoU {fused.get("mean_iou", float("nan")):.3f} for people of 20 px and '
            f'more, {alone.get("mean_iou", float("nan")):.3f} by the newest picture alone '
            f'({fused["people"]} people in {figures["windows"]} windows)'
        )
    typer.echo(out)


@train_app.command('recogniser')
def recogniser(
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
    jobs: JobsOption = 2,
) -> None:
    """Train the recogniser of class, colours, backpack and child, and its semantic memory.

    It learns from crops of simulated scenes, every tap of it is taught to tell the classes apart,
    and it goes into a copy of BUNDLE. A training that was cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.training.checkpoint import work_beside
        from mmedge_lab.training.epoch_training import fastest_precision, prepare_torch
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        # Steps are small: more than one thread helps little.
        prepare_torch(work_beside(out.absolute()), 1)
        from mmedge_lab.training.recogniser_training import (
            RecogniserSettings,
            describe,
            run_recogniser,
        )

        settings = RecogniserSettings(scenes, epochs, seed=seed, precision=fastest_precision())
        with StatusLine(f'training {out.name}') as line:
            figures = run_recogniser(folder, out.absolute(), crops, settings, jobs, line.advance)
    say(describe(figures))
    typer.echo(out)


class FusionChoice(Enum):
    """How the sensors are fused."""

    AUTO = 'auto'
    DECISION = 'decision'
    FEATURE = 'feature'


@train_app.command('gate')
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
        from mmedge_lab.training.gate_training import build_gate, gate_setting
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
                seed,
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


@train_app.command('fit')
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
    A folder of pictures may be a set too; name it beside sets of flights.

    predictor: how accurate configurations are in the scene of the moment. It keeps to the table
    of accuracies where it chooses no better on flights held out.

    imputer: where people are in a picture that is not ready, for a rival of `mmedge lab bench
    rivals`.

    Samples of flights are kept: a run that was cut short goes on where it was.
    """
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_lab.training.picture_sources import is_source
        from mmedge_ros.encoding.bundle.default_model import default_detector

        folder = default_detector(bundle)
        singles = [place for place in train if what is Fitted.PICTURES and is_source(place)]
        sets = [place for place in train if place not in singles]
        flights = [flight for chosen in sets for flight in flights_in(chosen)]
        with StatusLine(f'{what.value} of {folder.name}') as line:
            if what is Fitted.NOISE:
                words = _fit_noise(folder, flights, profile, line.advance)
            elif what is Fitted.PICTURES:
                words = _fit_pictures(folder, flights, singles, line.advance)
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


def _fit_pictures(folder: Path, flights: list[Path], singles: list[Path], report: Report) -> str:
    from mmedge_lab.training.picture_fit import fit_pictures, single_looks, write_pictures

    looks = single_looks(singles)
    write_pictures(folder, fit_pictures(flights, looks, report), len(flights), len(looks))
    return f'pictures of {len(flights)} flights and {len(looks)} single ones are usual now'

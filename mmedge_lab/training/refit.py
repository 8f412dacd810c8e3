"""From new camera stages to whole bundles: every step that fits something to them, in order.

Each part of a bundle says what it was fitted to (see fitted_parts). A step is done where its
result is missing or stale, so that a run that was cut short goes on where it was.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_lab.judging.bench import few
from mmedge_lab.judging.bundle_evaluation import (
    EvaluationRequest,
    evaluate_bundle,
)
from mmedge_lab.policies.trained_rivals import FOLDER as RIVALS_FOLDER
from mmedge_lab.simulation.flight_folder import flights_in, read_description
from mmedge_lab.simulation.flight_set import PlannedFlight, simulate_set
from mmedge_lab.simulation.standard_sets import standard_set
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.accuracy_predictor import PredictorRequest, build_predictor
from mmedge_lab.training.detector_session import LevelRequest, join_levels
from mmedge_lab.training.detector_training import checkpoint_of, load_detector
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.fitted_parts import (
    ACCURACY,
    FUSION,
    NOISE,
    PREDICTOR,
    RIVALS,
    Fit,
    enter_accuracy,
    fitted_parts,
)
from mmedge_lab.training.fusion_session import FusionRequest, train_fusion
from mmedge_lab.training.fusion_settings import NARROW, WIDE, FusionSettings
from mmedge_lab.training.imputation_training import RivalsRequest, build_rivals
from mmedge_lab.training.noise_fit import fit_noise_scale, write_noise_scale
from mmedge_ros.adaptation.learned_accuracy import WEIGHTS
from mmedge_ros.encoding.bundle.manifest import MANIFEST, Manifest
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.report.report_files import write_files

TRAIN, VALIDATION, CALIBRATION, TEST = 'train', 'validation', 'calibration', 'test'
LEVELS, SETS = 'levels', 'sets'
STEPS = (LEVELS, FUSION, NOISE, ACCURACY, PREDICTOR, RIVALS)
CAMERA_BUNDLE, FUSED_BUNDLE = 'flight_people', 'fused_people'
MISSING, ANEW = 'missing', 'stale: its bundle is made anew'
# How much of the sets the parts of the shipped bundles are made from.
_PREDICTOR_SECONDS = 6.0
_RIVALS_TRAIN, _RIVALS_JUDGED = 10, 6


@dataclass(frozen=True)
class RefitRequest:
    """The request for a refit: the detectors, what they learned from, and where all of it goes.

    ``sets`` is the folder of the standard sets; flights that are not there are simulated.
    ``flights`` of the train set are learned from (0: all), ``judged`` flights of the validation
    set are measured in every configuration.
    """

    narrow: Path
    wide: Path
    scenes: Path
    sets: Path
    out: Path
    settings: FusionSettings = field(default_factory=FusionSettings)
    flights: int = 0
    judged: int = 6
    jobs: int = 1

    def planned(self, name: str) -> tuple[PlannedFlight, ...]:
        """Return the flights of a set that are needed."""
        flights = standard_set(name)
        return few(flights, self.flights) if name == TRAIN else flights


class Step(NamedTuple):
    """A step of the work on a bundle, or a set of flights.

    ``lacking`` says why it has to be done, '' where its result is whole and fits; ``sets`` names
    the sets it needs.
    """

    name: str
    target: Path
    lacking: Callable[[], str]
    work: Callable[[Report], object]
    sets: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it makes, for people."""
        return f'{self.name} of {self.target.name}' if self.name != SETS else str(self.target)


def refit_steps(request: RefitRequest, only: Sequence[str] = ()) -> list[Step]:
    """Return all steps in their order; sets come first, as far as a step to be done needs them.

    :param only: names of steps; () for all
    :raises TrainingError: if a detector has no checkpoint, or a step is unknown
    """
    for name in only:
        if name not in STEPS:
            near = difflib.get_close_matches(name, STEPS, n=1, cutoff=0.0)[0]
            raise TrainingError(
                f'there is no step {name!r}; the nearest is {near!r} of {", ".join(STEPS)}'
            )
    chosen = [step for step in _bundle_steps(request) if not only or step.name in only]
    needed = {name for step, reason in plan(chosen) if reason for name in step.sets}
    order = (TRAIN, VALIDATION, CALIBRATION, TEST)
    return [*(_set_step(request, name) for name in order if name in needed), *chosen]


def plan(steps: Sequence[Step]) -> list[tuple[Step, str]]:
    """Return each step and why it has to be done, '' where it has not."""
    anew: set[Path] = set()
    planned = []
    for step in steps:
        reason = step.lacking() or (ANEW if step.target in anew else '')
        if reason and step.name in (LEVELS, FUSION):
            anew.add(step.target)
        planned.append((step, reason))
    return planned


def do_step(step: Step, report: Report) -> bool:
    """Do a step, unless its result is whole by now; returns whether it was done.

    :raises MmedgeError: if it cannot be done
    """
    if not step.lacking():
        return False
    step.work(report)
    if reason := step.lacking():
        raise TrainingError(f'{step.title} was made and is {reason}; look into {step.target}')
    return True


def require_detectors(request: RefitRequest, folder: Path) -> None:
    """Open both detectors, before anything takes long.

    :param folder: where libraries may keep their settings until all is done
    :raises TrainingError: if one is none, damaged, or of another width
    :raises EncodingError: if a library is missing
    """
    prepare_torch(folder, request.settings.threads)
    load_detector(request.narrow, NARROW)
    load_detector(request.wide, WIDE)


def _bundle_steps(request: RefitRequest) -> list[Step]:
    detectors = {
        width: sha256_of(checkpoint_of(place))
        for width, place in ((NARROW, request.narrow), (WIDE, request.wide))
    }
    camera, fused = request.out / CAMERA_BUNDLE, request.out / FUSED_BUNDLE
    learned = (request.settings.epochs, len(request.planned(TRAIN)))

    def step(name: str, bundle: Path, work: Any, *sets: str) -> Step:
        lacking = partial(_part_lacking, bundle, name)
        return Step(name, bundle, lacking, partial(work, request, bundle), sets)

    return [
        step(LEVELS, camera, _join, VALIDATION, TEST)._replace(
            lacking=partial(_bundle_lacking, camera, detectors)
        ),
        step(FUSION, fused, _fuse, TRAIN, VALIDATION)._replace(
            lacking=partial(_bundle_lacking, fused, detectors, learned)
        ),
        *(step(NOISE, bundle, _fit_noise, VALIDATION) for bundle in (camera, fused)),
        *(step(ACCURACY, bundle, _measure, VALIDATION) for bundle in (camera, fused)),
        step(PREDICTOR, camera, _predict, CALIBRATION),
        *(step(RIVALS, bundle, _rival, TRAIN, VALIDATION) for bundle in (camera, fused)),
    ]


def _set_step(request: RefitRequest, name: str) -> Step:
    folder, flights = request.sets / name, request.planned(name)

    def lacking() -> str:
        whole = sum(read_description(folder / f.name) == f.description for f in flights)
        return '' if whole == len(flights) else f'{whole} of {len(flights)} flights are there'

    def work(report: Report) -> None:
        simulate_set(
            folder,
            flights,
            request.jobs,
            lambda done: report(done.share, f'{done.whole} of {done.flights} flights'),
        )

    return Step(SETS, folder, lacking, work)


def _bundle_lacking(
    bundle: Path, detectors: dict[str, str], learned: tuple[int, int] | None = None
) -> str:
    """Compare what a bundle was made from: detectors, and epochs and flights of a fusion."""
    if not (bundle / MANIFEST).is_file():
        return MISSING
    training = Manifest(bundle).section('training')
    known = training.get('detectors', training)
    digests = {width: _entry(known, width, 'sha256') for width in detectors}
    if None in digests.values():
        return 'not said from which detectors it was made'
    if digests != detectors:
        return 'stale: made from other detectors'
    epochs, flights = _entry(training, 'settings', 'epochs'), _entry(training, 'data', 'flights')
    if learned is not None and (epochs != learned[0] or (flights or 0) < learned[1]):
        return f'stale: learned in {epochs} epochs from {flights} flights'
    return ''


def _entry(content: Any, *names: str) -> Any:
    for name in names:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _part_lacking(bundle: Path, part: str) -> str:
    if not (bundle / MANIFEST).is_file():
        return MISSING
    fit = fitted_parts(bundle).get(part)
    if fit is None:
        return MISSING
    return '' if fit is Fit.FITTED else fit.value


def _set_aside(bundle: Path) -> None:
    """Make room for a new bundle; the stale one stays beside it until the next."""
    if bundle.exists():
        aside = bundle.with_name(f'{bundle.name}.stale')
        shutil.rmtree(aside, ignore_errors=True)
        bundle.rename(aside)


def _join(request: RefitRequest, bundle: Path, report: Report) -> None:
    _set_aside(bundle)
    judged = {name: request.sets / name for name in (VALIDATION, TEST)}
    join_levels(LevelRequest(request.scenes, request.narrow, request.wide, bundle, judged), report)


def _fuse(request: RefitRequest, bundle: Path, report: Report) -> None:
    _set_aside(bundle)
    train_fusion(
        FusionRequest(
            request.sets / TRAIN,
            request.narrow,
            request.wide,
            bundle,
            {VALIDATION: request.sets / VALIDATION},
            request.settings,
            processes=max(1, request.jobs),
            resume=True,
            most=request.flights,
        ),
        report,
    )


def _fit_noise(request: RefitRequest, bundle: Path, report: Report) -> None:
    flights = flights_in(request.sets / VALIDATION)
    write_noise_scale(bundle, fit_noise_scale(bundle, flights, on_progress=report))


def _measure(request: RefitRequest, bundle: Path, report: Report) -> None:
    flights = few(flights_in(request.sets / VALIDATION), request.judged)
    out = request.out / 'reports' / f'{bundle.name}_accuracy'
    evaluation = EvaluationRequest(bundle, VALIDATION, flights, out, jobs=request.jobs)
    figures = evaluate_bundle(
        evaluation, lambda share, whole: report(share, f'{whole} of {len(flights)} flights')
    )
    enter_accuracy(bundle, figures)


def _predict(request: RefitRequest, bundle: Path, report: Report) -> None:
    copy = bundle.with_name(f'{bundle.name}.predictor')
    shutil.rmtree(copy, ignore_errors=True)
    build_predictor(
        PredictorRequest(
            bundle, request.sets / CALIBRATION, copy, _PREDICTOR_SECONDS, jobs=request.jobs
        ),
        report,
    )
    names = [name for name in (WEIGHTS, MANIFEST) if (copy / name).is_file()]
    files = {name: (copy / name).read_bytes() for name in names}
    write_files(bundle, files, {WEIGHTS} - files.keys())
    shutil.rmtree(copy)


def _rival(request: RefitRequest, bundle: Path, report: Report) -> None:
    out = bundle / RIVALS_FOLDER
    shutil.rmtree(out, ignore_errors=True)
    build_rivals(
        RivalsRequest(
            bundle,
            request.sets / TRAIN,
            out,
            request.sets / VALIDATION,
            jobs=request.jobs,
            most=_RIVALS_TRAIN,
            most_judged=_RIVALS_JUDGED,
        ),
        report,
    )

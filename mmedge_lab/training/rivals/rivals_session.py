"""From a set of flights to a folder of trained rivals, judged on another set."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_lab.judging.bundle_evaluation import flights_of
from mmedge_lab.judging.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_lab.judging.flight_cases import CachedTruth, encoded_with_truth
from mmedge_lab.policies.policy_run import levels_needed
from mmedge_lab.policies.settings import STATED
from mmedge_lab.policies.trained_rivals import choices_of, encoders_digest, write_rivals
from mmedge_lab.training import OnShare, Report
from mmedge_lab.training.bundle_files import require_free
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.flight_pictures import flights_in
from mmedge_lab.training.flight_works import FlightFolders, make_of_flights, missing
from mmedge_lab.training.rivals.rival_training import RivalSettings, judge_rivals, train_rivals
from mmedge_lab.training.rivals.sample_runs import WindowRuns, picture_samples
from mmedge_lab.training.rivals.samples import (
    FlightSamples,
    joined,
    keep_samples,
    kept_samples,
)
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.replay.recording import Recording

# Of the work on a flight; a guess that only the progress depends on.
_ENCODED, _GATED = 0.5, 0.7


@dataclass(frozen=True)
class RivalFlight:
    """A flight, its number among others, and the folder that keeps its samples."""

    path: Path
    number: int
    bundle: BundleUnderTest
    folder: Path

    @property
    def samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.npz'


def collect(task: RivalFlight, on_share: OnShare) -> None:
    """Collect the samples of a flight for all rivals; those that are there already are kept.

    :raises TrainingError: if they cannot be written
    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if the flight lacks a sensor or the truth
    """
    if kept_samples(task.samples_path) is None:
        bundle = task.bundle
        with Recording(task.path) as recording:
            flight = encoded_with_truth(
                recording,
                bundle.encoders(),
                levels_needed(bundle),
                lambda share: on_share(_ENCODED * share),
            )
        assert flight.truth is not None  # see `encoded_with_truth`
        choices, truth = choices_of(bundle.folder), CachedTruth(flight.truth)
        runs = WindowRuns(flight, truth, bundle, bundle.networks(), choices, task.number)
        gating = runs.gating()
        on_share(_GATED)
        window_ns = round(WindowParameters().window * NS_PER_S)
        pictures = picture_samples(
            flight, task.number, choices.levels[-1], window_ns, seed=task.number
        )
        keep_samples(task.samples_path, FlightSamples(gating, runs.selection(), pictures))
    on_share(1.0)


def collected(task: RivalFlight) -> FlightSamples:
    """Read the samples of a flight.

    :raises TrainingError: if there are none
    """
    samples = kept_samples(task.samples_path)
    if samples is None:
        raise missing(task.samples_path)
    return samples


@dataclass(frozen=True)
class RivalsRequest:
    """The request for rivals: a bundle, a set to learn from and one to judge them on.

    ``most`` and ``most_judged`` flights of these are taken, spread over the set; 0 for all.
    """

    bundle: Path
    flights: Path
    out: Path
    validation: Path | None = None
    settings: RivalSettings = field(default_factory=RivalSettings)
    jobs: int = 1
    most: int = 0
    most_judged: int = 0


def build_rivals(request: RivalsRequest, report: Report) -> dict[str, Any]:
    """Train the rivals for a bundle and write them; returns what is known of them.

    The samples of each flight are kept in a folder beside ``out`` until the rivals are written.

    :raises TrainingError: if they cannot be trained with these flights, or written
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(request.out)
    bundle = open_bundle(request.bundle, STATED)
    tasks, judged = _tasks(request, bundle)
    works = {f'{t.number}/{t.path.name}': partial(collect, t) for t in (*tasks, *judged)}
    make_of_flights(works, request.jobs, report)
    choices = choices_of(request.bundle)
    samples = joined([collected(task) for task in tasks])
    trained = train_rivals(samples, choices, request.settings)
    unseen = joined([collected(task) for task in judged]) if judged else None
    facts: dict[str, Any] = {
        'software': software_identity(request.bundle),
        'seed': request.settings.windows.seed,
        'training': {'set': request.flights.name, 'flights': len(tasks), **trained.facts},
        'validation': _judged(request, trained.plugins, samples, unseen, len(judged)),
    }
    write_rivals(request.out, request.bundle, trained.plugins, facts)
    shutil.rmtree(work_beside(request.out), ignore_errors=True)
    return facts


def _judged(
    request: RivalsRequest,
    plugins: Any,
    samples: FlightSamples,
    unseen: FlightSamples | None,
    flights: int,
) -> dict[str, Any] | None:
    if unseen is None or request.validation is None:
        return None
    figures = judge_rivals(plugins, samples, unseen)
    return {
        'set': request.validation.name,
        'flights': flights,
        **{
            rival: {name: round(value, 4) for name, value in of_rival.items()}
            for rival, of_rival in figures.items()
        },
    }


def _tasks(
    request: RivalsRequest, bundle: BundleUnderTest
) -> tuple[list[RivalFlight], list[RivalFlight]]:
    """Find the flights of both sets, none of which may be in both."""
    made_from = f'{bundle.digest} {encoders_digest(request.bundle)}'
    folders = FlightFolders(work_beside(request.out), made_from)

    def of_set(folder: Path | None, most: int) -> list[RivalFlight]:
        tasks = []
        for path in flights_of(flights_in(folder), most) if folder is not None else ():
            kept = folders.of(path)
            tasks.append(RivalFlight(path, len(folders), bundle, kept))
        return tasks

    return of_set(request.flights, request.most), of_set(request.validation, request.most_judged)

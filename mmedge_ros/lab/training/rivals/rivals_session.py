"""From a set of flights to a folder of trained rivals, judged on another set."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_ros import MmedgeError
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_ros.lab.policies.rivals_folder import choices_of, encoders_digest, write_rivals
from mmedge_ros.lab.policies.settings import STATED
from mmedge_ros.lab.training.detector_bundle import require_free
from mmedge_ros.lab.training.flight_pictures import flights_in
from mmedge_ros.lab.training.flight_works import DistinctFlights, Report, do_flight_works
from mmedge_ros.lab.training.rivals.rival_flight import RivalFlight, collect, collected
from mmedge_ros.lab.training.rivals.rival_training import RivalSettings, judge_rivals, train_rivals
from mmedge_ros.lab.training.rivals.samples import FlightSamples, joined
from mmedge_ros.lab.training.work_folder import work_beside
from mmedge_ros.records.software import software_identity

_EXPECTED = (MmedgeError,)


@dataclass(frozen=True)
class RivalsRequest:
    """Rivals as asked for: a bundle, a set to learn from and one to judge them on."""

    bundle: Path
    flights: Path
    out: Path
    validation: Path | None = None
    settings: RivalSettings = field(default_factory=RivalSettings)
    jobs: int = 1


def build_rivals(request: RivalsRequest, report: Report) -> dict[str, Any]:
    """Train the rivals for a bundle and write them; returns what is known of them.

    The samples of each flight are kept in a folder beside ``out`` until the rivals are written.

    :param report: told the share done (0..1) and what is being done
    :raises TrainingError: if they cannot be trained with these flights, or written
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(request.out)
    bundle = open_bundle(request.bundle, STATED)
    tasks, judged = _tasks(request, bundle)
    _collect([*tasks, *judged], request.jobs, report)
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
            rival: {name: round(value, 4) for name, value in found.items()}
            for rival, found in figures.items()
        },
    }


def _tasks(
    request: RivalsRequest, bundle: BundleUnderTest
) -> tuple[list[RivalFlight], list[RivalFlight]]:
    """Find the flights of both sets, none of which may be in both."""
    made_from = f'{bundle.digest} {encoders_digest(request.bundle)}'
    work = work_beside(request.out) / hashlib.sha256(made_from.encode()).hexdigest()[:12]
    known = DistinctFlights()

    def of_set(folder: Path | None) -> list[RivalFlight]:
        found = []
        for path in flights_in(folder) if folder is not None else ():
            digest = known.digest(path)
            found.append(RivalFlight(path, len(known), bundle, work / digest[:12]))
        return found

    return of_set(request.flights), of_set(request.validation)


def _collect(tasks: Sequence[RivalFlight], jobs: int, report: Report) -> None:
    works = {f'{task.number}/{task.path.name}': partial(collect, task) for task in tasks}
    do_flight_works(works, jobs, _EXPECTED, report)

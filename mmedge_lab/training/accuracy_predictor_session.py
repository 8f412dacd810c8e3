"""Learns an accuracy predictor from flights, and enters it in a bundle if it beats the table."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmedge_lab.judging.bundle_evaluation import NOMINAL, flights_of
from mmedge_lab.judging.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_lab.judging.flight_bootstrap import flight_seeds
from mmedge_lab.judging.measured_accuracy import without_entry
from mmedge_lab.policies.trained_rivals import encoders_digest
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.accuracy_predictor import (
    Learnt,
    Windows,
    compare,
    learn,
    predicted,
    windows_of,
)
from mmedge_lab.training.accuracy_predictor_samples import (
    LEARNT_RATES,
    FlightCourse,
    PredictorFlight,
    collect,
    kept,
)
from mmedge_lab.training.bundle_files import bundle_copy, require_free
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.fitted_parts import ENCODERS
from mmedge_lab.training.flight_pictures import flights_in
from mmedge_lab.training.flight_works import FlightFolders, make_of_flights, missing
from mmedge_ros.configuration.accuracy_predictor import Indicators, bundle_accuracy
from mmedge_ros.configuration.bundle_configurations import bundle_space, manifest_of
from mmedge_ros.configuration.configuration_space import ConfigurationSpace
from mmedge_ros.configuration.learned_accuracy import SECTION, WEIGHTS, surface_bytes
from mmedge_ros.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.report_files import REPORT, require_writable, write_files


@dataclass(frozen=True)
class PredictorRequest:
    """The request for a predictor: a bundle, two sets of flights, and where all of it goes.

    ``seconds`` is how much of each flight is used, 0 for all; ``test_flights`` how many are judged
    on, spread over the set, 0 for all. ``samples`` is the folder in which
    what was replayed is kept; None for one beside the bundle, until that is written.
    """

    bundle: Path
    calibration: Path
    test: Path
    out: Path
    report: Path
    seconds: float = 0.0
    test_flights: int = 0
    samples: Path | None = None
    jobs: int = 1


def build_predictor(request: PredictorRequest, report: Report) -> dict[str, Any]:
    """Learn accuracies, judge them, and write a report and the bundle with the better one.

    :return: the content of report.json
    :raises TrainingError: if it cannot be done with these flights, or the bundle has no table
    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if the report cannot be written
    """
    require_free(request.out)
    require_writable(request.report)
    bundle = open_bundle(request.bundle, NOMINAL)
    space = bundle_space(request.bundle, (CAMERA, RADAR), LEARNT_RATES)
    table = _table(request.bundle, space)
    tasks, judged = _tasks(request, bundle)
    works = {
        f'{number}/{task.path.name}': partial(collect, task)
        for number, task in enumerate([*tasks, *judged])
        if kept(task) is None
    }
    make_of_flights(works, request.jobs, report)
    learnt_from, unseen = (windows_of([_course(task) for task in of]) for of in (tasks, judged))
    learnt = learn(learnt_from, table, space)
    seeds = flight_seeds([task.path for task in judged])
    content = _content(request, learnt, learnt_from, unseen, table, space, seeds)
    write_files(request.report, {REPORT: (json.dumps(content, indent=1) + '\n').encode()})
    _write_bundle(request, learnt, content)
    if request.samples is None:
        shutil.rmtree(work_beside(request.out), ignore_errors=True)
    return content


def _content(
    request: PredictorRequest,
    learnt: Learnt,
    learnt_from: Windows,
    unseen: Windows,
    table: FloatArray,
    space: ConfigurationSpace,
    seeds: Sequence[str],
) -> dict[str, Any]:
    predictions = predicted(unseen, learnt.surface, table, space)
    refitted = learnt_from.values.mean(axis=0)
    # Two tables: the one the bundle has, and the best that the same windows give.
    against = {
        'table_of_the_bundle': compare(unseen, predictions, table, space, seeds),
        'table_of_the_same_windows': compare(unseen, predictions, refitted, space, seeds),
    }
    is_better = all(comparison.is_better for comparison in against.values())
    return {
        'software': software_identity(request.bundle),
        'seconds_of_each_flight': request.seconds,
        'configurations': len(space),
        **{
            name: {
                'set': folder.name,
                'flights': len(np.unique(windows.flights)),
                'windows': len(windows.flights),
            }
            for name, folder, windows in (
                ('calibration', request.calibration, learnt_from),
                ('test', request.test, unseen),
            )
        },
        'penalties': [str(penalty) for penalty in learnt.penalties],
        'used': 'predictor' if is_better else 'table',
        'against': {name: comparison.report() for name, comparison in against.items()},
    }


def _table(bundle: Path, space: ConfigurationSpace) -> FloatArray:
    table = bundle_accuracy(manifest_of(bundle), space)
    values = None if table is None else table.predict(Indicators())
    if values is None or np.isnan(values).any():
        raise TrainingError(
            f'{bundle} lacks a table of accuracies to compare with; measure one with `mmedge '
            'evaluate-bundle` and enter it with `mmedge lab model accuracy`'
        )
    return values


def _tasks(
    request: PredictorRequest, bundle: BundleUnderTest
) -> tuple[list[PredictorFlight], list[PredictorFlight]]:
    """Find the flights of both sets, none of which may be in both."""
    made_from = f'{bundle.digest} {request.seconds:g}'
    folders = FlightFolders(request.samples or work_beside(request.out), made_from)

    def of_set(flights: Path, most: int = 0) -> list[PredictorFlight]:
        paths = flights_of(flights_in(flights), most)
        return [PredictorFlight(p, bundle, folders.of(p), request.seconds) for p in paths]

    return of_set(request.calibration), of_set(request.test, request.test_flights)


def _course(task: PredictorFlight) -> FlightCourse:
    course = kept(task)
    if course is None:
        raise missing(task.kept_path)
    return course


def _write_bundle(request: PredictorRequest, learnt: Learnt, content: dict[str, Any]) -> None:
    """Copy the bundle, with the predictor or with what speaks against it."""
    is_used = content['used'] == 'predictor'
    data = surface_bytes(learnt.surface)
    entry = {key: content[key] for key in ('used', 'calibration', 'test', 'against')}
    if is_used:
        digest = hashlib.sha256(data).hexdigest()
        entry = {'network': {'weights': WEIGHTS, 'sha256': digest, 'bytes': len(data)}, **entry}
    entry[ENCODERS] = encoders_digest(request.bundle)
    with bundle_copy(request.bundle, request.out) as copy:
        (copy / WEIGHTS).unlink(missing_ok=True)
        plain = without_entry((copy / MANIFEST).read_text(), SECTION)
        text = plain + yaml.safe_dump({SECTION: entry}, sort_keys=False, default_flow_style=None)
        files = {WEIGHTS: data} if is_used else {}
        write_files(copy, {**files, MANIFEST: text.encode()})

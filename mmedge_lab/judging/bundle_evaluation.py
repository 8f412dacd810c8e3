"""An evaluation from a bundle and a set to a folder with a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import RADAR_ONLY, Case, CasePlan, plan_cases
from mmedge_lab.judging.bundle_report import Evaluation, evaluation_report
from mmedge_lab.judging.bundle_under_test import (
    NOMINAL as NOMINAL,  # noqa: PLC0414
)
from mmedge_lab.judging.bundle_under_test import (
    BundleUnderTest,
    flight_digest,
    open_bundle,
)
from mmedge_lab.judging.case_figures import CaseFigures
from mmedge_lab.judging.flight_bootstrap import Drawings, flight_seeds
from mmedge_lab.judging.flight_cases import FlightTask
from mmedge_lab.judging.flight_workers import OnProgress, evaluate_flights
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.records.device_profile import DeviceProfile
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.report_files import write_report

TABLE, PAGE = 'report.md', 'report.html'
CASES = 'cases'
_FEW_SEEDS = 10
_Flight = TypeVar('_Flight')


@dataclass(frozen=True)
class EvaluationRequest:
    """What to judge: () levels are all; ``jobs`` 0 is one process per processor."""

    bundle: Path
    name: str
    flights: tuple[Path, ...]
    out: Path
    profile: DeviceProfile = NOMINAL
    levels: tuple[str, ...] = ()
    every_configuration: bool = True
    jobs: int = 1


def evaluate_bundle(
    request: EvaluationRequest,
    on_progress: OnProgress | None = None,
    on_plan: Callable[[CasePlan], None] | None = None,
) -> dict[str, Any]:
    """Judge a bundle on a set of flights and write the report; returns its content.

    What was judged before, of the same bundle, flights, profile and software, is kept.

    :param on_plan: called with what will be judged, before anything takes long
    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if a level is unknown or a flight has no ground truth
    :raises ReportError: if the report cannot be written
    :raises ReplayError: if a flight or the profile cannot be used
    """
    bundle = open_bundle(request.bundle, request.profile)
    plan = plan_cases(
        {modality: encoder.levels for modality, encoder in bundle.encoders().items()},
        request.levels,
        every_configuration=request.every_configuration,
        learned_fusion=bundle.has_fusion,
    )
    if on_plan:
        on_plan(plan)
    tasks = _tasks(request, bundle, plan)
    evaluate_flights(tasks, request.jobs, on_progress)
    evaluation = Evaluation(
        plan,
        tuple(task.name for task in tasks),
        {case: [_result(task, case) for task in tasks] for case in plan.cases},
        Drawings.of(flight_seeds(request.flights)),
    )
    report = _described(request, bundle) | evaluation_report(evaluation)
    report['problems'] = _problems(report)
    write_evaluation(report, request.out)
    return report


def write_evaluation(report: dict[str, Any], folder: Path) -> None:
    """Write report.json, report.md, the figures and report.html.

    :raises ReportError: if the folder or a file in it cannot be written
    """
    from mmedge_lab.judging.bundle_figures import BUNDLE_FIGURES, draw_bundle
    from mmedge_lab.judging.bundle_page import bundle_markdown, render_bundle_page

    figures = draw_bundle(report)
    pages = {TABLE: bundle_markdown(report), PAGE: render_bundle_page(report, figures)}
    write_report(report, folder, pages, figures, BUNDLE_FIGURES)


def _tasks(
    request: EvaluationRequest, bundle: BundleUnderTest, plan: CasePlan
) -> list[FlightTask]:
    folder = request.out / CASES
    return [
        FlightTask(flight, flight_digest(flight), bundle, plan.cases, folder)
        for flight in request.flights
    ]


def _result(task: FlightTask, case: Case) -> CaseFigures:
    figures = task.result(case)
    if figures is None:
        raise EvaluationError(
            f'flight {task.name}: the figures of {case.key} were written and cannot be read; '
            'look for a full or failing disk and run the same command again'
        )
    return figures


def _described(request: EvaluationRequest, bundle: BundleUnderTest) -> dict[str, Any]:
    loaded = load_bundle(bundle.folder)
    return {
        'bundle': {
            'name': loaded.name,
            'path': str(bundle.folder),
            'sha256': sha256_of(bundle.folder / MANIFEST),
            'fusion': bundle.has_fusion,
        },
        'set': request.name,
        'seconds': _seconds(request.flights),
        'profile': request.profile.description,
        'software': software_identity(bundle.folder),
    }


def _seconds(flights: tuple[Path, ...]) -> float | None:
    """Return how long flights are together; None where one does not say."""
    descriptions = [read_description(flight) for flight in flights]
    known = [description.seconds for description in descriptions if description is not None]
    return sum(known) if len(known) == len(flights) else None


def _problems(report: dict[str, Any]) -> list[str]:
    problems = []
    count = report['bootstrap']['seeds']
    if count < _FEW_SEEDS:
        problems.append(
            f'only {count} seed{"" if count == 1 else "s"} of flights: intervals over so few '
            'are much too narrow, and over one there are none'
        )
    if not report['bundle']['fusion']:
        problems.append(
            'the bundle has no fusion network: "fusion" is decision fusion of boxes and returns'
        )
    boxes = report['strategies'][RADAR_ONLY.name]['overall']['mean_iou']['value']
    if boxes == 0.0:
        problems.append(
            'without a camera unit there is no box at all, so that every comparison of boxes with '
            'radar only is won beforehand: compare places'
        )
    return problems


def flights_of(flights: Sequence[_Flight], most: int) -> tuple[_Flight, ...]:
    """Return ``most`` of the flights of a set, spread over it; all of them for 0."""
    if not most or most >= len(flights):
        return tuple(flights)
    return tuple(flights[number * len(flights) // most] for number in range(most))

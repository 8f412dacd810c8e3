"""A comparison from a bundle and sets of flights to a folder with a report."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import (
    BundleUnderTest,
    flight_digest,
    open_bundle,
)
from mmedge_lab.judging.flight_bootstrap import flight_seeds
from mmedge_lab.judging.flight_workers import OnProgress, work_through
from mmedge_lab.policies.schedule import SAMPLE
from mmedge_lab.rivals.comparison.beside import beside_report, ours_alone
from mmedge_lab.rivals.comparison.measured_results import Result
from mmedge_lab.rivals.comparison.outcome import Outcome
from mmedge_lab.rivals.comparison.overheads import overheads
from mmedge_lab.rivals.comparison.plain_fields import plain_record
from mmedge_lab.rivals.comparison.plan import BLOCKING, OURS, ComparisonCase, ComparisonPlan
from mmedge_lab.rivals.comparison.report import Comparison, comparison_report
from mmedge_lab.rivals.comparison.targets import verdicts
from mmedge_lab.rivals.comparison.task import (
    ComparisonTask,
    PolicyRunner,
    compare_flight,
    policies_digest,
)
from mmedge_lab.rivals.comparison.verdict import Evidence
from mmedge_lab.rivals.mmedge.contention_bench import published_steps
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.records.device_profile import DeviceProfile
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.report_files import write_report

TABLE, PAGE = 'report.md', 'report.html'
CASES, BESIDE_FOLDER = 'cases', 'beside'
_FEW_SEEDS = 10


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """What to compare, and where.

    ``flights`` have unique names; ``jobs`` 0 is one process per processor. ``plugins`` is the
    digest of trained policies; ``without`` says why policies are missing. ``command`` repeats all
    this. ``tables`` is the folder of the published latency tables, if there is one. ``results``
    of other commands are by kind. ``beside`` is another bundle that ours flies with as well.
    """

    bundle: Path
    sets: tuple[str, ...]
    flights: tuple[tuple[str, Path], ...]
    plan: ComparisonPlan
    run: PolicyRunner
    profile: DeviceProfile
    out: Path
    jobs: int = 2
    timing: bool = True
    plugins: str = ''
    without: tuple[str, ...] = ()
    command: str = 'mmedge lab evaluate'
    tables: Path | None = None
    results: Mapping[str, Result] = field(default_factory=dict)
    beside: Path | None = None


def compare(
    request: ComparisonRequest,
    on_progress: OnProgress | None = None,
    on_pending: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run what is not kept from before, judge, and write the report; returns its content.

    :param on_pending: called with the number of outcomes to compute and of all
    :raises EncodingError: if the bundle cannot be used
    :raises ClusterError: if the cluster cannot be used
    :raises EvaluationError: if a flight has no ground truth or the report cannot be written
    :raises ReplayError: if a flight or the profile cannot be used
    """
    bundle = open_bundle(request.bundle, request.profile)
    tasks, others = _tasks(request, bundle), _others(request)
    if on_pending:
        every = [*tasks, *others]
        on_pending(
            sum(len(task.pending()) for task in every), sum(len(task.cases) for task in every)
        )
    work_through(tasks, compare_flight, request.jobs, on_progress)
    comparison = _comparison(request, request.plan, tasks)
    timed = (
        overheads(bundle.folder, request.out, f'{bundle.digest} {tasks[0].extra}')
        if request.timing
        else None
    )
    report = _described(request, bundle)
    stepped = None if request.tables is None else published_steps(request.tables)
    evidence = Evidence(
        *(comparison, request.profile, timed, request.command, stepped),
        accuracies=report['bundle']['accuracies'],
        results=request.results,
        bundle=report['bundle']['name'],
    )
    report['verdicts'] = verdicts(evidence)
    report |= comparison_report(comparison)
    report['machine'] = timed
    report['contention'] = stepped
    report['beside'] = None
    if others:
        work_through(others, compare_flight, request.jobs, on_progress)
        other = _comparison(request, ours_alone(request.plan), others)
        report['beside'] = beside_report(others[0].bundle.folder.name, comparison, other)
    report['measured'] = {name: plain_record(result) for name, result in request.results.items()}
    report['problems'] = [*problems(report), *request.without]
    write_comparison(report, request.out)
    return report


def write_comparison(report: dict[str, Any], folder: Path) -> None:
    """Write report.json, report.md, the figures and report.html.

    :raises EvaluationError: if the folder or a file in it cannot be written
    """
    from mmedge_lab.rivals.comparison.comparison_page import (
        comparison_markdown,
        render_comparison_page,
    )
    from mmedge_lab.rivals.comparison.figures import COMPARISON_FIGURES, draw_comparison

    figures = draw_comparison(report)
    pages = {TABLE: comparison_markdown(report), PAGE: render_comparison_page(report, figures)}
    write_report(report, folder, pages, figures, COMPARISON_FIGURES)


def problems(report: dict[str, Any]) -> list[str]:
    """Return what a reader must know before any figure."""
    sentences = []
    count = report['bootstrap']['seeds']
    names = [facts['name'] for facts in report['plan']['policies']]
    if count < _FEW_SEEDS:
        sentences.append(
            f'only {count} seed{"" if count == 1 else "s"} of flights: intervals over so few '
            'are much too narrow, and over one there are none'
        )
    sentences += [
        f'flight {name} could not be used as a whole: {"; ".join(reasons)}'
        for name, reasons in report['unread'].items()
    ]
    sentences += [
        f'the policy {name!r} was not run; what is compared with it is missing'
        for name in (OURS, BLOCKING)
        if name not in names
    ]
    if report['halves'] is None and BLOCKING in names:
        sentences.append(
            f'without the {SAMPLE} protocol no window can be told easy or hard beforehand'
        )
    if not report['bundle']['fusion']:
        sentences.append(
            'the bundle has no fusion network: every policy fuses boxes and returns by decision '
            'fusion, and temporal aggregation has no part in any figure'
        )
    elif 'imputation' in names:
        sentences.append(
            'imputation deviates from the paper: its trained generator makes up the detections of '
            'a picture that is not ready, which go to the tracker, and no feature grid that the '
            'networks could fuse'
        )
    return sentences


def named_flights(sets: Sequence[tuple[str, Sequence[Path]]]) -> tuple[tuple[str, Path], ...]:
    """Give flights unique names: with that of their set where there are several sets.

    :raises EvaluationError: if two are named the same
    """
    named = [
        (flight.name if len(sets) == 1 else f'{name}/{flight.name}', flight)
        for name, flights in sets
        for flight in flights
    ]
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EvaluationError(f'the sets have two flights named {twice[0]!r}; name each set once')
    return tuple(named)


def _comparison(
    request: ComparisonRequest, plan: ComparisonPlan, tasks: Sequence[ComparisonTask]
) -> Comparison:
    return Comparison(
        plan,
        tuple(task.name for task in tasks),
        {case: [_result(task, case) for task in tasks] for case in plan.cases},
        flight_seeds([path for _, path in request.flights]),
    )


def _others(request: ComparisonRequest) -> list[ComparisonTask]:
    """Return the flights with the other bundle, of ours alone."""
    if request.beside is None or not request.plan.has(OURS):
        return []
    plan = ours_alone(request.plan)
    # Files of cases are named by the case: those of another bundle need a folder of their own.
    apart = replace(request, plan=plan, out=request.out / BESIDE_FOLDER)
    return _tasks(apart, open_bundle(request.beside, request.profile))


def _tasks(request: ComparisonRequest, bundle: BundleUnderTest) -> list[ComparisonTask]:
    extra = hashlib.sha256(f'{policies_digest()} {request.plugins}'.encode()).hexdigest()
    return [
        ComparisonTask(
            name,
            flight,
            flight_digest(flight),
            bundle,
            request.plan.cases,
            request.out / CASES,
            request.run,
            extra,
        )
        for name, flight in request.flights
    ]


def _result(task: ComparisonTask, case: ComparisonCase) -> Outcome:
    outcome = task.result(case)
    if outcome is None:
        raise EvaluationError(
            f'flight {task.name}: what {case.key} gave was written and cannot be read; look for a '
            'full or failing disk and run the same command again'
        )
    return outcome


def _accuracies(manifest: Mapping[str, Any]) -> str:
    """Say by which accuracies the optimiser chooses."""
    entry = manifest.get('accuracy')
    if not isinstance(entry, Mapping):
        return 'an assumed order: every rate and level helps'
    rows, flights = entry.get('configurations') or (), entry.get('flights') or ()
    on = f', measured on {len(flights)} flights' if flights else ''
    return f'the table of the bundle: {len(rows)} configurations{on}'


def _described(request: ComparisonRequest, bundle: BundleUnderTest) -> dict[str, Any]:
    loaded = load_bundle(bundle.folder)
    return {
        'command': request.command,
        'bundle': {
            'name': loaded.name,
            'path': str(bundle.folder),
            'sha256': sha256_of(bundle.folder / MANIFEST),
            'fusion': bundle.has_fusion,
            'accuracies': _accuracies(loaded.content),
        },
        'sets': list(request.sets),
        'profile': request.profile.description,
        'software': software_identity(bundle.folder),
    }

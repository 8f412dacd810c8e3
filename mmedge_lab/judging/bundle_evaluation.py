"""An evaluation of a bundle: by strategy, by strata of people, and in every configuration."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_lab.flight_workers import OnProgress
from mmedge_lab.judging.bench import Bench, Results, Row, Subject, Sums, flight_subject
from mmedge_lab.judging.bench_table import bench_table, write_table
from mmedge_lab.judging.bundle_cases import (
    CAMERA_ONLY,
    DECISION_FUSION,
    FUSION,
    STRATEGIES,
    Case,
    Strategy,
    plan_cases,
)
from mmedge_lab.judging.bundle_under_test import NOMINAL, BundleUnderTest, open_bundle
from mmedge_lab.judging.encoded_flight import replay_encoded
from mmedge_lab.judging.judged_flight import FlightOpener, JudgedFlight, bundle_about
from mmedge_lab.judging.run_bench import JUDGED, judge
from mmedge_lab.judging.strata_sums import (
    FACTORS,
    FIGURES,
    person_sums,
    strata_in,
    strata_sums,
    sums_of_stratum,
)
from mmedge_lab.simulation.flight_folder import read_description
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of

NAME = 'evaluate-bundle'
CONFIGURATIONS = 'configurations'
_FEW_SEEDS = 10


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
    request: EvaluationRequest, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Judge a bundle on a set of flights and write the table; returns its content.

    What was judged before, of the same bundle, flights, profile and software, is kept. Beside the
    tables the content has ``evaluated``: what `measured_accuracy` enters into the manifest.

    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if a level is unknown or a flight has no ground truth
    :raises ReportError: if the report cannot be written
    :raises ReplayError: if a flight or the profile cannot be used
    """
    bundle = open_bundle(request.bundle, request.profile)
    bench = bundle_bench(request, bundle)
    judged = judge(bench, request.out / JUDGED, request.jobs, on_progress)
    seconds = [read_description(flight) for flight in request.flights]
    command = ['mmedge', 'lab', NAME, bundle.folder.name, request.name]
    command += ['--levels', ','.join(request.levels)] if request.levels else []
    command += [] if request.every_configuration else ['--configurations', 'full']
    content = bench_table(NAME, bench, judged, shlex.join(command)) | {
        'evaluated': {
            'manifest': sha256_of(bundle.folder / MANIFEST),
            'set': request.name,
            'flights': [subject.name for subject in bench.subjects],
            'seconds': None if None in seconds else sum(of.seconds for of in seconds if of),
            'service_times': request.profile.description,
        },
    }
    write_table(content, request.out)
    return content


def bundle_bench(request: EvaluationRequest, bundle: BundleUnderTest) -> Bench:
    """Return the bench: strategies at the highest rates and levels, and all configurations."""
    cases = plan_cases({m: e.levels for m, e in bundle.encoders().items()}, request.levels)
    rows = [
        Row(s.name, partial(_judged_by_strata, s, cases[-1]), s.words, levels=_levels(cases[-1:]))
        for s in STRATEGIES
        if s.learned or bundle.has_fusion
    ]
    if request.every_configuration:
        rows += [
            Row(case.name, partial(_judged, case), group=CONFIGURATIONS, levels=_levels([case]))
            for case in cases
        ]
    subjects = tuple(map(flight_subject, request.flights))
    return Bench(
        f'{bundle.folder.name} on {request.name}',
        tuple(rows),
        FIGURES,
        subjects,
        FlightOpener(bundle),
        references=(CAMERA_ONLY.name, DECISION_FUSION.name),
        # Rows of strategies are named alike at whatever levels are the highest of those chosen.
        key=f'{bundle.digest} {cases[-1].name}',
        about={**bundle_about(bundle, subjects), 'highest': cases[-1].name},
        derive=_by_strata,
        notes=partial(_notes, subjects, bundle.has_fusion),
    )


def _levels(cases: Sequence[Case]) -> tuple[str, ...]:
    return tuple(case.camera_level for case in cases)


def _judged_by_strata(strategy: Strategy, case: Case, of: JudgedFlight) -> Sums:
    record = replay_encoded(
        of.flight,
        of.bundle.pipeline(strategy, of.networks),
        case.configuration,
        of.bundle.profile,
        strategy.modalities,
    )
    return strata_sums(record, of.truth, of.accuracy(record))


def _judged(case: Case, of: JudgedFlight) -> Sums:
    record = replay_encoded(of.flight, of.pipeline(), case.configuration, of.bundle.profile)
    sums = dict(person_sums(record, of.truth, of.accuracy(record)))
    # Medians over every configuration would keep every sample of each.
    del sums['range_errors'], sums['position_errors']
    return sums


def _by_strata(results: Results) -> Mapping[Row, Sequence[Sums]]:
    """Make a row of each stratum of people, judged as the bundle fuses."""
    flights = results[FUSION.name]
    return {
        Row(stratum.name, group=f'{FUSION.name} by {FACTORS[stratum.factor]}'): [
            sums_of_stratum(sums, stratum) for sums in flights
        ]
        for stratum in strata_in(flights)
    }


def _notes(subjects: Sequence[Subject], has_fusion: bool, _: Results) -> list[str]:
    notes = []
    count = len({subject.seed for subject in subjects})
    if count < _FEW_SEEDS:
        notes.append(
            f'only {count} seed{"" if count == 1 else "s"} of flights: intervals over so few '
            'are much too narrow, and over one there are none'
        )
    if not has_fusion:
        notes.append(
            'the bundle has no fusion network: "fusion" is decision fusion of boxes and returns'
        )
    return notes

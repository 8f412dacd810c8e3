"""A gate from sets of flights to a copy of a bundle that holds it, and a report."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_lab.judging.flight_bootstrap import flight_seeds
from mmedge_lab.policies.trained_rivals import encoders_digest
from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import bundle_copy, require_free
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.fitted_parts import ENCODERS
from mmedge_lab.training.flight_pictures import flights_in
from mmedge_lab.training.flight_works import FlightFolders, make_of_flights
from mmedge_lab.training.gate_training import (
    GateFit,
    GateFlight,
    GateTrainingSettings,
    collect,
    collected,
    joined,
    train_gate,
)
from mmedge_lab.training.gate_trials import (
    AUDITED,
    Table,
    Trial,
    across_splits,
    gate_name,
    gate_trials,
    replay_trials,
    rival_trials,
    table_of,
)
from mmedge_lab.training.gates.certificate import FEWEST_SEEDS, Certificate
from mmedge_lab.training.gates.gate_file import write_bundle_gate
from mmedge_lab.training.gates.gate_report import (
    DELTAS,
    GateEvidence,
    gate_report,
    write_gate_report,
)
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE
from mmedge_ros.records.run_record import software_identity
from mmedge_ros.report.report_files import require_writable
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.skip_control import SkipParameters

SAMPLES, CALIBRATION, TEST, SHIFTED = 'samples', 'calibration', 'test', 'shifted'
_CAMERA_RATE, _RADAR_RATE = 30.0, 20.0
# Shares of the progress shown.
_SAMPLED, _CALIBRATED = 0.35, 0.75
_SPLITS = 20
# Many more audits than in flight: recorded flights are short.
_AUDITED_SHARE = 0.15


@dataclass(frozen=True)
class GateRequest:
    """The request for a gate: a bundle, sets of flights by folder, and where all of it goes.

    ``test`` judges only; without it the report shows the calibration set. ``shifted`` are flights
    of another kind: the report counts the audits until the gate notices. ``level`` is that of
    the camera ('' for one model that serves every level); ``delta`` is the loss that must be
    certified for a gate to be written at all; ``seconds`` is how much of each flight certifies and
    judges, 0 for all.
    """

    bundle: Path
    samples: Path
    calibration: Path
    out: Path
    report: Path
    test: Path | None = None
    shifted: Path | None = None
    level: str = 'medium'
    strategy: str = ''
    delta: float = 0.01
    confidence: float = 0.9
    seconds: float = 0.0
    settings: GateTrainingSettings = field(default_factory=GateTrainingSettings)
    jobs: int = 1

    @property
    def sets(self) -> dict[str, Path]:
        """The sets, by what they are for."""
        named = {
            SAMPLES: self.samples,
            CALIBRATION: self.calibration,
            TEST: self.test,
            SHIFTED: self.shifted,
        }
        return {name: folder for name, folder in named.items() if folder is not None}


def build_gate(request: GateRequest, report: Report) -> dict[str, Any]:
    """Train a gate, certify it, write the report and, where it holds, the bundle.

    What was replayed before is kept in a folder beside the bundle until that is written.

    :return: the content of report.json
    :raises TrainingError: if it cannot be done with these flights
    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if the report cannot be written
    """
    require_free(request.out)
    require_writable(request.report)
    bundle = open_bundle(request.bundle, NOMINAL)
    strategy = _strategy(request, bundle)
    _require_level(request, bundle)
    flights = _flights(request, bundle, strategy)
    fit = make_gate(
        flights[SAMPLES], request.settings, request.jobs, part_of(report, 0.0, _SAMPLED)
    )
    name, own = gate_name(fit.gate), gate_trials(fit.gate)
    judged = flights.get(TEST, [])
    trials = [*own, *rival_trials(fit.gate)]
    calibrated = tested = replay_trials(
        flights[CALIBRATION],
        own if judged else trials,
        name,
        request.jobs,
        part_of(report, _SAMPLED, _CALIBRATED),
        CALIBRATION,
    )
    if judged:
        rest = part_of(report, _CALIBRATED, 1.0)
        tested = replay_trials(judged, trials, name, request.jobs, rest, TEST)
    seeds = {
        name: flight_seeds([flight.path for flight in of_set]) for name, of_set in flights.items()
    }
    table = table_of(own, calibrated, seeds[CALIBRATION])
    certificates = [
        table.certified(delta, request.confidence) for delta in sorted({*DELTAS, request.delta})
    ]
    judges = seeds[TEST if judged else CALIBRATION]
    pool = table
    if judged:
        pool = table_of(own, [*calibrated, *tested], (*seeds[CALIBRATION], *judges))
    evidence = GateEvidence(
        table_of(own, tested, judges).rows,
        table.thresholds,
        {t.key: [flight[t.key] for flight in tested] for t in trials if t not in own},
        tuple(certificates),
        {
            delta: tuple(
                across_splits(pool, delta, _SPLITS, request.confidence)
                if len(set(pool.seeds)) >= 2 * FEWEST_SEEDS
                else ()
            )
            for delta in DELTAS
        },
        request.delta,
        _audits(request, flights, fit, certificates),
        judges,
    )
    content = {
        **_described(request, bundle, strategy, fit, table),
        **gate_report(evidence),
    }
    write_gate_report(content, request.report)
    holding = [certificate for certificate in certificates if certificate.holds]
    if any(certificate.delta <= request.delta for certificate in holding):
        _write_bundle(request, fit, strategy, holding)
    return content


def make_gate(
    flights: Sequence[GateFlight], settings: GateTrainingSettings, jobs: int, report: Report
) -> GateFit:
    """Collect samples and train a gate with them.

    :raises TrainingError: if a flight cannot be used, or there is too little to learn from
    """
    make_of_flights({f.name: partial(collect, f) for f in flights}, jobs, report)
    return train_gate(joined([collected(flight) for flight in flights]), settings)


def _audits(
    request: GateRequest,
    flights: Mapping[str, Sequence[GateFlight]],
    fit: GateFit,
    certificates: Sequence[Certificate],
) -> dict[str, list[tuple[float, ...]]]:
    """Replay flights with audits, by set; {} where there is no shifted set, or no threshold."""
    threshold = next(
        (c.threshold for c in certificates if c.holds and c.delta == request.delta), None
    )
    if threshold is None or SHIFTED not in flights:
        return {}
    trial = Trial(AUDITED, threshold, fit.gate, threshold)
    # Alarms are raised later, by all flights of a set.
    audits = AuditParameters(share=_AUDITED_SHARE, alarm=math.inf)
    usual = TEST if TEST in flights else CALIBRATION
    outcomes = {}
    for name in (usual, SHIFTED):
        audited = [
            replace(flight, skipping=SkipParameters(audits=audits)) for flight in flights[name]
        ]
        figures = replay_trials(
            audited, [trial], gate_name(fit.gate), request.jobs, lambda *_: None
        )
        outcomes[name] = [of_flight[trial.key].audits for of_flight in figures]
    return outcomes


def _strategy(request: GateRequest, bundle: BundleUnderTest) -> str:
    if request.strategy in (DECISION, FEATURE):
        if request.strategy == FEATURE and not bundle.has_fusion:
            raise TrainingError(
                f'{request.bundle} has no fusion networks; use --strategy {DECISION}'
            )
        return request.strategy
    return FEATURE if bundle.has_fusion else DECISION


def _require_level(request: GateRequest, bundle: BundleUnderTest) -> None:
    known = bundle.encoders()[CAMERA].levels
    if known and request.level not in known:
        raise TrainingError(
            f'{request.bundle} has no level {request.level!r}; choose {", ".join(known)}'
        )


def _flights(
    request: GateRequest, bundle: BundleUnderTest, strategy: str
) -> dict[str, list[GateFlight]]:
    """Find the flights of all sets, none of which may be in two of them."""
    levels = bundle.encoders()[RADAR].levels
    configuration = Configuration(
        1,
        0,
        (
            ModalityConfiguration(CAMERA, _CAMERA_RATE, request.level),
            ModalityConfiguration(RADAR, _RADAR_RATE, levels[-1] if levels else ''),
        ),
    )
    made_from = f'{bundle.digest} {strategy} {configuration}'
    folders = FlightFolders(work_beside(request.out), made_from)
    flights: dict[str, list[GateFlight]] = {}
    for name, folder in request.sets.items():
        flights[name] = []
        for path in flights_in(folder):
            kept = folders.of(path)
            flight = GateFlight(path, len(folders), bundle, strategy, (configuration,), kept)
            seconds = 0.0 if name == SAMPLES else request.seconds
            flights[name].append(replace(flight, seconds=seconds))
    count = len(set(flight_seeds([flight.path for flight in flights[CALIBRATION]])))
    if count < FEWEST_SEEDS:
        raise TrainingError(
            f'{request.calibration} holds flights of {count} seeds; fewer than {FEWEST_SEEDS} '
            'certify nothing'
        )
    return flights


def _described(
    request: GateRequest, bundle: BundleUnderTest, strategy: str, fit: GateFit, table: Table
) -> dict[str, Any]:
    return {
        'bundle': {'name': bundle.folder.name, 'path': str(bundle.folder)},
        'software': software_identity(bundle.folder),
        'strategy': strategy,
        'camera_level': request.level,
        'profile': bundle.profile.description,
        'sets': {name: str(folder) for name, folder in request.sets.items()},
        'fit': {name: value for name, value in fit._asdict().items() if name != 'gate'},
        'calibration_flights': table.flights,
        'confidence': request.confidence,
        'seconds': request.seconds,
    }


def _write_bundle(
    request: GateRequest,
    fit: GateFit,
    strategy: str,
    certificates: Sequence[Certificate],
) -> None:
    """Write a copy of the bundle with the gate in it; it is there as a whole or not at all."""
    facts: Mapping[str, Any] = {
        'camera_level': request.level,
        'samples': fit.samples,
        'sample_flights': fit.flights,
        ENCODERS: encoders_digest(request.bundle),
    }
    with bundle_copy(request.bundle, request.out) as copy:
        write_bundle_gate(copy, fit.gate, strategy, [CAMERA], certificates, facts)
    shutil.rmtree(work_beside(request.out), ignore_errors=True)

"""Closed-loop replays of flights: the gate at every threshold, the rules beside it, and a table.

Sets of flights, none of which may be another's: what made the samples certifies nothing, and
what certifies does not judge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.training import OnShare, Report, TrainingError
from mmedge_lab.training.flight_works import make_of_flights, write_whole
from mmedge_lab.training.gate_training import GateFlight
from mmedge_lab.training.gates.certificate import Certificate, FlightLoss, certify, total
from mmedge_lab.training.gates.closed_loop import FlightLoop, Never
from mmedge_lab.training.gates.gate_file import gate_bytes
from mmedge_lab.training.gates.gate_report import BOTH, GATE, REUSE, THINNED
from mmedge_lab.training.gates.loop_figures import (
    FlightFigures,
    ReferenceFlight,
    plain_figures,
    read_plain_figures,
    saved,
)
from mmedge_ros.data_types import CAMERA
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.gate import EarlyDecisionClassifier, Gate
from mmedge_ros.skipping.gate_features import GateFeatures

AUDITED = 'audited'
# Evenly spaced logits from 0.88 to 0.38, 0.5 among them. More careful ones save next to nothing.
THRESHOLDS: tuple[float, ...] = tuple(
    float(1.0 / (1.0 + np.exp(-logit))) for logit in np.linspace(2.0, -0.5, 6)
)
# Of the camera's usual rate; every n-th picture is encoded, and others are followed.
RATES = (24 / 30, 20 / 30)
REUSES = (2, 3)
# The gate is also tried on top of this, at every so many of its thresholds.
_UNDER_GATE, _EVERY = 2, 2
_LARGEST_FILE = 50 << 20


class Trial(NamedTuple):
    """A rule at a threshold; of one rule those with larger values save less.

    ``value`` identifies a trial of a rule: a threshold, a share of the camera's rate, or
    1 / reuse. ``rate`` is that share, ``reuse`` is as in a configuration.
    """

    rule: str
    value: float
    classifier: EarlyDecisionClassifier
    threshold: float
    rate: float = 1.0
    reuse: int = 1

    @property
    def key(self) -> str:
        return f'{self.rule} {self.value:.6f}'


def gate_trials(gate: Gate, thresholds: Sequence[float] = THRESHOLDS) -> list[Trial]:
    """Return the gate at all thresholds."""
    return [Trial(GATE, threshold, gate, threshold) for threshold in thresholds]


def rival_trials(gate: Gate) -> list[Trial]:
    """Return the rules the gate is compared with, and the gate on top of one of them."""
    never = Never()
    return [
        *[Trial(THINNED, rate, never, 1.0, rate=rate) for rate in RATES],
        *[Trial(REUSE, 1.0 / reuse, never, 1.0, reuse=reuse) for reuse in REUSES],
        *[Trial(BOTH, t, gate, t, reuse=_UNDER_GATE) for t in THRESHOLDS[2::_EVERY]],
    ]


def gate_name(gate: Gate) -> str:
    """Return a short digest of a gate."""
    return hashlib.sha256(gate_bytes(gate)).hexdigest()[:12]


@dataclass
class _Recording:
    """A classifier whose largest confidence is kept."""

    classifier: EarlyDecisionClassifier
    highest: float = 0.0

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        confidence = self.classifier.confidence(features, end_ns)
        self.highest = max(self.highest, confidence)
        return confidence


def try_all(task: GateFlight, trials: Sequence[Trial], name: str, on_share: OnShare) -> None:
    """Replay a flight in closed loop with every trial; what is there already is kept.

    :param name: of the gate, see `gate_name`
    :raises TrainingError: if the results cannot be read or written
    """
    path = task.trials_path(name)
    known = _read(path) if path.is_file() else {}
    todo = [trial for trial in trials if trial.key not in known]
    if todo:
        settings = task.settings()
        flight = task.encoded(with_greys=any(trial.reuse > 1 for trial in todo))
        usual = FlightLoop(flight, settings)
        reference = ReferenceFlight(usual.reference())
        loops = {(1.0, 1): usual}
        quiet: dict[str, tuple[float, dict[str, Any]]] = {}
        for place, trial in enumerate(sorted(todo, key=lambda t: (t.rule, -t.value))):
            # A higher threshold than any confidence of a run gives that run again.
            highest, plain = quiet.get(trial.rule, (np.inf, {}))
            if not highest < trial.threshold:
                recording = _Recording(trial.classifier)
                way = (trial.rate, trial.reuse)
                if way not in loops:
                    own = settings.changed(CAMERA, *way)
                    loops[way] = FlightLoop(flight, own, reference.record)
                run = loops[way].gated(recording, trial.threshold)
                plain = plain_figures(reference.figures(run))
                if not run.early and trial.rule in (GATE, BOTH):
                    quiet[trial.rule] = recording.highest, plain
            known[trial.key] = plain
            write_whole(path, json.dumps(known).encode())
            on_share((place + 1) / len(todo))
    on_share(1.0)


def tried(task: GateFlight, trials: Sequence[Trial], name: str) -> dict[str, FlightFigures]:
    """Read the figures that `try_all` kept, by key of the trial.

    :raises TrainingError: if something is missing
    """
    path = task.trials_path(name)
    known = _read(path)
    try:
        return {trial.key: read_plain_figures(known[trial.key]) for trial in trials}
    except (KeyError, SkippingError) as err:
        raise TrainingError(f'{path} lacks {err}; delete it and replay the flight again') from err


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise TrainingError(f'{path} is too large for outcomes; delete it')
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as err:
        raise TrainingError(f'{path} cannot be read ({err}); delete it and replay again') from err
    if not isinstance(content, dict):
        raise TrainingError(f'{path} holds no outcomes; delete it and replay again')
    return content


class Table(NamedTuple):
    """Figures of the gate in closed loop: of each threshold those of the same flights.

    ``seeds`` are those of the flights: flights of one seed are one sample.
    """

    thresholds: tuple[float, ...]
    rows: tuple[tuple[FlightFigures, ...], ...]
    seeds: tuple[str, ...]

    def of(self, seeds: Sequence[str]) -> Table:
        """Return the table of the flights of some seeds."""
        places = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return Table(self.thresholds, rows, tuple(self.seeds[place] for place in places))

    @property
    def flights(self) -> int:
        return len(self.rows[0]) if self.rows else 0

    def at(self, threshold: float) -> tuple[FlightFigures, ...]:
        """Return the row of a threshold; () for an infinite one."""
        places = [place for place, known in enumerate(self.thresholds) if known == threshold]
        return self.rows[places[0]] if places else ()

    def certified(self, delta: float, confidence: float = 0.9) -> Certificate:
        """Find the least careful threshold that keeps the promise in these flights.

        :raises SkippingError: for anything that cannot be tested
        """
        losses = [self._by_seed(row) for row in self.rows]
        return certify(self.thresholds, losses, delta, confidence)

    def _by_seed(self, row: Sequence[FlightFigures]) -> list[FlightLoss]:
        sums = {seed: FlightLoss() for seed in self.seeds}
        for seed, flight in zip(self.seeds, row, strict=True):
            sums[seed] = sums[seed].plus(flight.loss)
        return list(sums.values())


class SplitResult(NamedTuple):
    """A threshold certified by one part of the flights, and what it does in the other.

    ``saved`` is the share of slow encodes left out there, 0 where nothing was certified.
    """

    certificate: Certificate
    loss: FlightLoss
    saved: float


def replay_trials(
    flights: Sequence[GateFlight],
    trials: Sequence[Trial],
    name: str,
    jobs: int,
    report: Report,
    words: str = 'audits',
) -> list[dict[str, FlightFigures]]:
    """Replay flights with all trials; returns their figures by key of the trial.

    :param name: of the gate
    :param words: what the flights are for, for the progress
    :raises TrainingError: if a flight cannot be used
    """
    works = {f.name: partial(try_all, f, tuple(trials), name) for f in flights}
    make_of_flights(works, jobs, report, words)
    return [tried(flight, trials, name) for flight in flights]


def table_of(
    trials: Sequence[Trial],
    figures: Sequence[Mapping[str, FlightFigures]],
    seeds: Sequence[str],
) -> Table:
    """Arrange the figures of the gate that `replay_trials` returned.

    :param seeds: those of the flights
    """
    own = sorted((t for t in trials if t.rule == GATE), key=lambda t: -t.threshold)
    return Table(
        tuple(trial.threshold for trial in own),
        tuple(tuple(flight[trial.key] for flight in figures) for trial in own),
        tuple(seeds),
    )


def across_splits(
    table: Table,
    delta: float,
    splits: int = 10,
    confidence: float = 0.9,
    seed: int = 0,
) -> list[SplitResult]:
    """Certify with the flights of a random half of the seeds and judge on the other half's.

    That is done ``splits`` times.

    :raises SkippingError: for anything that cannot be tested
    """
    random = np.random.default_rng(seed)
    seeds = list(dict.fromkeys(table.seeds))
    results = []
    for _ in range(splits):
        order = [seeds[place] for place in random.permutation(len(seeds))]
        half = (len(order) + 1) // 2
        certificate = table.of(order[:half]).certified(delta, confidence)
        tested = table.of(order[half:]).at(certificate.threshold)
        lost = total([flight.loss for flight in tested])
        results.append(SplitResult(certificate, lost, saved(tested) if tested else 0.0))
    return results

"""From flights to a gate in a bundle: samples, training, thresholds, certificates.

Three sets of flights, none of which may be another's: what the encoders were trained with
makes no samples, and what made the samples certifies nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mmedge_ros.encoding.detector import EncodingError
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.replay.errors import ReplayError
from mmedge_ros.skipping.certificate import STUDENT, Certificate, FlightOutcome, certify
from mmedge_ros.skipping.gate import Gate, gate_bytes
from mmedge_ros.training.errors import TrainingError
from mmedge_ros.training.gate_flights import (
    GateFlight,
    collect,
    collected,
    outcomes,
    try_thresholds,
)
from mmedge_ros.training.gate_samples import joined
from mmedge_ros.training.gate_training import GateFit, GateTrainingSettings, train_gate
from mmedge_ros.worker_processes import Work, WorkError, do_works

# Evenly spaced logits, from 0.998 to 0.31; fixed before any flight is looked at.
THRESHOLDS: tuple[float, ...] = tuple(
    float(1.0 / (1.0 + np.exp(-logit))) for logit in np.linspace(6.0, -0.8, 18)
)
_EXPECTED = (EncodingError, FusionError, ReplayError, TrainingError)

OnShare = Callable[[str, float], None]


class SplitResult(NamedTuple):
    """A threshold certified by one part of the flights, and what it does in the other."""

    certificate: Certificate
    early: int
    differing: int
    windows: int

    @property
    def disagreement(self) -> float:
        """Share of early decisions that differ in flights that certified nothing."""
        return self.differing / self.early if self.early else 0.0


def make_gate(
    flights: Sequence[GateFlight],
    settings: GateTrainingSettings | None = None,
    jobs: int = 1,
    on_share: OnShare = lambda *_: None,
) -> GateFit:
    """Collect samples and train a gate with them.

    :raises TrainingError: if a flight cannot be used, or there is too little to learn from
    """
    _do({f.path.name: partial(collect, f) for f in flights}, jobs, on_share)
    return train_gate(joined([collected(flight) for flight in flights]), settings)


def closed_loop_table(
    flights: Sequence[GateFlight],
    gate: Gate,
    thresholds: Sequence[float] = THRESHOLDS,
    jobs: int = 1,
    on_share: OnShare = lambda *_: None,
) -> list[list[FlightOutcome]]:
    """Replay flights at all thresholds; returns a row for each threshold.

    :raises TrainingError: if a flight cannot be used
    """
    name = hashlib.sha256(gate_bytes(gate)).hexdigest()[:12]
    works = {
        f.path.name: partial(try_thresholds, f, gate, tuple(thresholds), name) for f in flights
    }
    _do(works, jobs, on_share)
    columns = [outcomes(flight, thresholds, name) for flight in flights]
    return [list(row) for row in zip(*columns, strict=True)]


def across_splits(
    table: Sequence[Sequence[FlightOutcome]],
    thresholds: Sequence[float],
    alpha: float,
    splits: int = 10,
    confidence: float = 0.9,
    method: str = STUDENT,
    seed: int = 0,
) -> list[SplitResult]:
    """Certify with a random half of the flights and look at the other, again and again.

    :param table: of `closed_loop_table`
    :raises SkippingError: for anything that cannot be tested
    """
    random = np.random.default_rng(seed)
    count = len(table[0])
    found = []
    for _ in range(splits):
        order = random.permutation(count)
        calibrating, testing = order[: (count + 1) // 2], order[(count + 1) // 2 :]
        rows = [[row[place] for place in calibrating] for row in table]
        certificate = certify(thresholds, rows, alpha, confidence, method)
        tested: list[FlightOutcome] = []
        if certificate.holds:
            row = table[list(thresholds).index(certificate.threshold)]
            tested = [row[place] for place in testing]
        found.append(
            SplitResult(
                certificate,
                sum(flight.early for flight in tested),
                sum(flight.differing for flight in tested),
                sum(flight.windows for flight in tested),
            )
        )
    return found


def _do(works: Mapping[str, Work], jobs: int, on: OnShare) -> None:
    try:
        do_works(works, jobs, _EXPECTED, on)
    except WorkError as err:
        raise TrainingError(f'flight {err.name}: {err}') from err

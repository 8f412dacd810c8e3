"""From flights to a gate with certified thresholds: samples, training, closed-loop replays.

Sets of flights, none of which may be another's: what made the samples certifies nothing, and
what certifies does not judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mmedge_ros import MmedgeError
from mmedge_ros.lab.gates.certificate import STUDENT, Certificate, certify
from mmedge_ros.lab.gates.loop_figures import FlightFigures, saved
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.gate_flights import GateFlight, collect, collected
from mmedge_ros.lab.training.gate_samples import joined
from mmedge_ros.lab.training.gate_training import GateFit, GateTrainingSettings, train_gate
from mmedge_ros.lab.training.gate_trials import GATE, Trial, tried, try_all
from mmedge_ros.lab.worker_processes import Work, WorkError, do_works

_EXPECTED = (MmedgeError,)

OnShare = Callable[[str, float], None]


class Table(NamedTuple):
    """Figures of the gate in closed loop: of each threshold those of the same flights."""

    thresholds: tuple[float, ...]
    rows: tuple[tuple[FlightFigures, ...], ...]

    def of(self, flights: Sequence[int]) -> Table:
        """Return the table of some of the flights, by their place."""
        return Table(self.thresholds, tuple(tuple(row[f] for f in flights) for row in self.rows))

    @property
    def flights(self) -> int:
        return len(self.rows[0]) if self.rows else 0

    def at(self, threshold: float) -> tuple[FlightFigures, ...]:
        """Return the row of a threshold; () for an infinite one."""
        places = [place for place, known in enumerate(self.thresholds) if known == threshold]
        return self.rows[places[0]] if places else ()

    def certified(
        self, alpha: float, confidence: float = 0.9, method: str = STUDENT
    ) -> Certificate:
        """Find the least careful threshold that keeps the promise in these flights.

        :raises SkippingError: for anything that cannot be tested
        """
        outcomes = [[flight.outcome for flight in row] for row in self.rows]
        return certify(self.thresholds, outcomes, alpha, confidence, method)


class SplitResult(NamedTuple):
    """A threshold certified by one part of the flights, and what it does in the other.

    ``saved`` is the share of slow encodes left out there, 0 where nothing was certified.
    """

    certificate: Certificate
    early: int
    differing: int
    windows: int
    saved: float

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
    _do({str(f.number): partial(collect, f) for f in flights}, flights, jobs, on_share)
    return train_gate(joined([collected(flight) for flight in flights]), settings)


def replay_trials(
    flights: Sequence[GateFlight],
    trials: Sequence[Trial],
    name: str,
    jobs: int = 1,
    on_share: OnShare = lambda *_: None,
) -> list[dict[str, FlightFigures]]:
    """Replay flights with all trials; returns their figures by key of the trial.

    :param name: of the gate
    :raises TrainingError: if a flight cannot be used
    """
    works = {str(f.number): partial(try_all, f, tuple(trials), name) for f in flights}
    _do(works, flights, jobs, on_share)
    return [tried(flight, trials, name) for flight in flights]


def table_of(trials: Sequence[Trial], figures: Sequence[Mapping[str, FlightFigures]]) -> Table:
    """Arrange what `replay_trials` found of the gate."""
    own = sorted((t for t in trials if t.rule == GATE), key=lambda t: -t.threshold)
    return Table(
        tuple(trial.threshold for trial in own),
        tuple(tuple(flight[trial.key] for flight in figures) for trial in own),
    )


def across_splits(
    table: Table,
    alpha: float,
    splits: int = 10,
    confidence: float = 0.9,
    method: str = STUDENT,
    seed: int = 0,
) -> list[SplitResult]:
    """Certify with a random half of the flights and look at the other, again and again.

    :raises SkippingError: for anything that cannot be tested
    """
    random = np.random.default_rng(seed)
    count = table.flights
    found = []
    for _ in range(splits):
        order = random.permutation(count)
        half = (count + 1) // 2
        certificate = table.of(order[:half].tolist()).certified(alpha, confidence, method)
        tested = table.of(order[half:].tolist()).at(certificate.threshold)
        windows = [window for flight in tested for window in flight.windows]
        found.append(
            SplitResult(
                certificate,
                sum(flight.outcome.early for flight in tested),
                sum(flight.outcome.differing for flight in tested),
                len(windows),
                saved(windows) if windows else 0.0,
            )
        )
    return found


def _do(works: Mapping[str, Work], flights: Sequence[GateFlight], jobs: int, on: OnShare) -> None:
    names = {str(flight.number): flight.path.name for flight in flights}
    try:
        do_works(works, jobs, _EXPECTED, lambda number, share: on(names[number], share))
    except WorkError as err:
        raise TrainingError(f'flight {names.get(err.name, err.name)}: {err}') from err

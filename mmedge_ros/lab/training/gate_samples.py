"""What the gate learns from: questions, each with whether a yes would have been right.

A decision made early changes what comes next, so questions are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each question counts, those answered with no as well: what would have been decided then is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Configuration, FloatArray
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.gates.closed_loop import Answered, FlightLoop, LoopSettings
from mmedge_ros.lab.gates.rule_rivals import AtRandom
from mmedge_ros.skipping.question import FIELDS

# From hardly ever to nearly always: the pattern of skips should look like any gate's.
SHARES = (0.05, 0.15, 0.4)


@dataclass(frozen=True, eq=False)
class GateSamples:
    """Questions (N, F), whether the decision was that of the reference (N,), and the flight (N,).

    ``flights`` are numbers; samples of one flight belong together.
    """

    questions: FloatArray
    agrees: NDArray[np.bool_]
    flights: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.agrees)

    def of(self, flights: Iterable[int]) -> GateSamples:
        """Return the samples of some flights."""
        chosen = np.isin(self.flights, list(flights))
        return GateSamples(self.questions[chosen], self.agrees[chosen], self.flights[chosen])

    @staticmethod
    def of_flight(number: int, answers: Sequence[Answered]) -> GateSamples:
        """Collect the questions of a flight."""
        return GateSamples(
            np.array([a.question.vector() for a in answers]).reshape(-1, len(FIELDS)),
            np.array([a.agrees for a in answers], np.bool_),
            np.full(len(answers), number, np.int64),
        )


def joined(parts: Sequence[GateSamples]) -> GateSamples:
    """Put samples together."""
    return GateSamples(
        np.concatenate([part.questions for part in parts]),
        np.concatenate([part.agrees for part in parts]),
        np.concatenate([part.flights for part in parts]),
    )


def collect_samples(
    flight: EncodedFlight,
    number: int,
    settings: LoopSettings,
    configurations: Sequence[Configuration],
    shares: Sequence[float] = SHARES,
    seed: int = 0,
) -> GateSamples:
    """Replay a flight with gates that say yes at random.

    :param configurations: the flight must be encoded with all their levels
    :raises ReplayError: if it is not
    """
    audits = replace(settings.skipping.audits, share=0.0)
    skipping = replace(settings.skipping, audits=audits)
    answers: list[Answered] = []
    for configuration in configurations:
        own = replace(settings, configuration=configuration, skipping=skipping)
        loop = FlightLoop(flight, own)
        for place, share in enumerate(shares):
            answers += loop.answered(AtRandom(share, seed + place), 0.5)
    return GateSamples.of_flight(number, answers)

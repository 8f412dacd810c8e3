"""What the gate learns from: gate features, and whether to decide then was right.

A decision made early changes what comes next, so samples are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each moment counts, also those that were rejected: what would have been decided then is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Configuration, FloatArray
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.gates.closed_loop import FlightLoop, JudgedMoment, LoopSettings
from mmedge_ros.lab.gates.rule_rivals import AtRandom
from mmedge_ros.skipping.gate_features import FIELDS

# From hardly ever to nearly always: the pattern of skips should look like any gate's.
SHARES = (0.05, 0.15, 0.4)


@dataclass(frozen=True, eq=False)
class GateSamples:
    """Gate features (N, F), whether the reference decided the same (N,), and the flight (N,).

    ``flights`` are numbers; samples of one flight belong together.
    """

    features: FloatArray
    agrees: NDArray[np.bool_]
    flights: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.agrees)

    def of(self, flights: Iterable[int]) -> GateSamples:
        """Return the samples of some flights."""
        chosen = np.isin(self.flights, list(flights))
        return GateSamples(self.features[chosen], self.agrees[chosen], self.flights[chosen])

    @staticmethod
    def of_flight(number: int, answers: Sequence[JudgedMoment]) -> GateSamples:
        """Collect the samples of a flight."""
        return GateSamples(
            np.array([a.features.vector() for a in answers]).reshape(-1, len(FIELDS)),
            np.array([a.agrees for a in answers], np.bool_),
            np.full(len(answers), number, np.int64),
        )


def joined(parts: Sequence[GateSamples]) -> GateSamples:
    """Put samples together."""
    return GateSamples(
        np.concatenate([part.features for part in parts]),
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
    answers: list[JudgedMoment] = []
    for configuration in configurations:
        own = replace(settings, configuration=configuration, skipping=skipping)
        loop = FlightLoop(flight, own)
        for place, share in enumerate(shares):
            answers += loop.judged(AtRandom(share, seed + place), 0.5)
    return GateSamples.of_flight(number, answers)

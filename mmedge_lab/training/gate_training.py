"""Trains a gate: flights are encoded and replayed with random early decisions, for its samples.

A decision made early changes what comes next, so samples are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each moment counts, also those that were rejected: what would have been decided then is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_lab.training import OnShare, TrainingError
from mmedge_lab.training.dense_training import (
    DenseSettings,
    log_odds,
    require_enough,
    train_dense,
    yes_or_no,
)
from mmedge_lab.training.flight_works import FlightBeginning, keep_arrays, kept_arrays, missing
from mmedge_lab.training.gates.closed_loop import (
    AtRandom,
    FlightLoop,
    JudgedMoment,
    LoopSettings,
    MakeFusion,
)
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, FloatArray
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.parameter import parameter
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import FIELDS
from mmedge_ros.skipping.skip_control import SkipParameters

# From hardly ever to nearly always: the pattern of skips should look like any gate's.
SHARES = (0.05, 0.15, 0.4)
# How often the held-out loss is looked at, in epochs.
_LOOK = 5


@dataclass(frozen=True, eq=False)
class GateSamples:
    """Gate features (N, F), what of the reference's decision was kept (N,), and the flight (N,).

    ``flights`` are numbers; samples of one flight belong together.
    """

    features: FloatArray
    kept: FloatArray
    flights: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.kept)

    def of(self, flights: Iterable[int]) -> GateSamples:
        """Return the samples of some flights."""
        chosen = np.isin(self.flights, list(flights))
        return GateSamples(self.features[chosen], self.kept[chosen], self.flights[chosen])


def joined(parts: Sequence[GateSamples]) -> GateSamples:
    """Put samples together."""
    return GateSamples(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.kept for part in parts]),
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
    """Replay a flight with gates that decide early at random.

    :param configurations: the flight must be encoded with all their levels
    :raises ReplayError: if it is not
    """
    audits = replace(settings.skipping.audits, share=0.0)
    skipping = replace(settings.skipping, audits=audits)
    moments: list[JudgedMoment] = []
    for configuration in configurations:
        own = replace(settings, configuration=configuration, skipping=skipping)
        loop = FlightLoop(flight, own)
        for place, share in enumerate(shares):
            moments += loop.judged(AtRandom(share, seed + place), 0.5)
    return GateSamples(
        np.array([moment.features.vector() for moment in moments]).reshape(-1, len(FIELDS)),
        np.array([1.0 - moment.loss for moment in moments]),
        np.full(len(moments), number, np.int64),
    )


def _without_audits() -> SkipParameters:
    return SkipParameters(audits=AuditParameters(share=0.0))


@dataclass(frozen=True)
class GateFlight:
    """A flight to make a gate of; ``folder`` keeps its results.

    ``strategy`` is decision or feature fusion. Thresholds are tried in the first configuration, in
    the first ``seconds`` of the flight; 0 for all of it.
    """

    path: Path
    number: int
    bundle: BundleUnderTest
    strategy: str
    configurations: tuple[Configuration, ...]
    folder: Path
    skipping: SkipParameters = field(default_factory=_without_audits)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The name of its works; flights of two sets may have the same folder name."""
        return f'{self.number}/{self.path.name}'

    @property
    def samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.samples.npz'

    def trials_path(self, name: str) -> Path:
        return self.folder / f'{self.path.name}.{name}.{self.seconds:g}.json'

    def encoded(self, *, with_greys: bool = False) -> EncodedFlight:
        """Read the flight and encode it with every level that is replayed.

        :param with_greys: for replays with ``reuse``

        :raises ReplayError: if it cannot be read
        :raises EncodingError: if the bundle cannot be used
        """
        wanted = {
            modality: sorted({c.of(modality).level for c in self.configurations})
            for modality in (CAMERA, RADAR)
        }
        with FlightBeginning(self.path, self.seconds) as recording:
            flight = load_flight(recording, PipelineParameters())
            encoders = self.bundle.encoders()
            encode_flight(flight, recording, encoders, wanted, with_greys=with_greys)
        return flight

    def settings(self) -> LoopSettings:
        """Return what is the same in all runs.

        Fusion networks are opened once; their results for the units of a window are cached.

        :raises EncodingError: for feature fusion, if the bundle has none
        """
        parameters = PipelineParameters(strategy=self.strategy)
        settings = LoopSettings(
            self.configurations[0], self.bundle.profile, parameters, self.skipping
        )
        if self.strategy == DECISION:
            return settings
        return replace(settings, make_fusion=_fusion_maker(self.bundle, parameters))


def _fusion_maker(bundle: BundleUnderTest, parameters: PipelineParameters) -> MakeFusion:
    networks = bundle.networks()
    # A gate that is there already plays no part: it is trained anew.
    ungated = replace(parameters, skipping=SkipParameters(delta=0.0))

    def make() -> FeatureFusion | None:
        return open_pipeline(bundle.folder, ungated, networks).feature_fusion

    return make


def collect(task: GateFlight, on_share: OnShare, shares: Sequence[float] = SHARES) -> None:
    """Collect a flight's samples; those that are there already are kept.

    :raises TrainingError: if they cannot be written
    """
    if not task.samples_path.is_file():
        samples = collect_samples(
            task.encoded(),
            task.number,
            task.settings(),
            task.configurations,
            shares,
            100 * task.number,
        )
        arrays = {'questions': samples.features, 'kept': samples.kept}
        keep_arrays(task.samples_path, {**arrays, 'fields': np.array(FIELDS)})
    on_share(1.0)


def collected(task: GateFlight) -> GateSamples:
    """Read the samples of a flight.

    :raises TrainingError: if there are none, or they are damaged or of another version
    """
    arrays = kept_arrays(task.samples_path)
    if arrays is None or tuple(arrays['fields'].tolist()) != FIELDS:
        raise missing(task.samples_path)
    kept = arrays['kept']
    return GateSamples(arrays['questions'], kept, np.full(len(kept), task.number))


@dataclass(frozen=True)
class GateTrainingSettings(DenseSettings):
    """How the gate is trained."""

    dropout: float = parameter(0.2, 'share of hidden units left out in training', '', 0.0, 0.9)
    epochs: int = parameter(150, 'most passes over the samples', '', 1, 100_000)
    held_out: float = parameter(0.2, 'share of flights that decide when to stop', '', 0.05, 0.5)


class GateFit(NamedTuple):
    """A trained gate, and what is known of it; losses in nats per sample."""

    gate: Gate
    epochs: int
    samples: int
    flights: int
    held_out_loss: float
    constant_loss: float


def train_gate(samples: GateSamples, settings: GateTrainingSettings | None = None) -> GateFit:
    """Train a gate; the same samples and settings give the same gate.

    Flights are held out as a whole, and training stops where it was best for them.

    :raises TrainingError: for too few samples or flights, or if all answers are the same
    """
    p = settings or GateTrainingSettings()
    flights = np.unique(samples.flights)
    require_enough(len(samples), len(flights))
    if samples.kept.min() == samples.kept.max():
        raise TrainingError(
            'all early decisions turned out the same way, there is nothing to learn; replay '
            'flights with more happening in them'
        )
    count = min(max(round(p.held_out * len(flights)), 1), len(flights) - 1)
    held = np.random.default_rng(p.seed).permutation(flights)[:count]
    judged = samples.of(held)
    rows = np.flatnonzero(~np.isin(samples.flights, held))
    learned = samples.kept[rows]
    networks = train_dense(
        samples.features,
        rows,
        yes_or_no(samples.kept),
        np.array([log_odds(learned, 1e-3)]),
        p,
        _LOOK,
    )
    gates = [
        Gate(n.mean, n.scale, n.weights1, n.bias1, n.weights2[:, 0], float(n.bias2[0]))
        for n in networks
    ]
    losses = [gate_loss(gate, judged) for gate in gates]
    best = int(np.argmin(losses))
    constant = np.full(len(judged), log_odds(learned, 1e-6))
    return GateFit(
        gates[best],
        _LOOK * best,
        len(samples),
        len(flights),
        losses[best],
        _cross_entropy(constant, judged.kept),
    )


def gate_loss(gate: Gate, samples: GateSamples) -> float:
    """Return the mean cross-entropy of a gate, nats."""
    return _cross_entropy(gate.logits(samples.features), samples.kept)


def _cross_entropy(logits: FloatArray, kept: FloatArray) -> float:
    return float((np.logaddexp(0.0, logits) - kept * logits).mean())

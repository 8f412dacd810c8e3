"""Trains the gate that lets the camera rest, certifies it, and puts it into a copy of a bundle.

A decision made early changes what comes next, so samples are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each moment counts, also those that were rejected: what would have been decided then is known.
Other flights certify thresholds, in closed loop.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import BundleUnderTest, open_bundle
from mmedge_lab.judging.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_lab.judging.flight_bootstrap import flight_seeds
from mmedge_lab.policies.trained_rivals import encoders_digest
from mmedge_lab.training import OnShare, Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import bundle_copy, require_free
from mmedge_lab.training.certificate import (
    FEWEST_SEEDS,
    Certificate,
    FlightLoss,
    by_seed,
    certify,
)
from mmedge_lab.training.checkpoint import work_beside
from mmedge_lab.training.dense_training import DenseSettings, Fit, fit_network, log_odds, yes_or_no
from mmedge_lab.training.fitted_parts import ENCODERS
from mmedge_lab.training.flight_pictures import flights_in
from mmedge_lab.training.flight_works import (
    FlightBeginning,
    FlightFolders,
    keep_arrays,
    kept_arrays,
    make_of_flights,
    missing,
)
from mmedge_lab.training.gate_file import write_bundle_gate
from mmedge_lab.training.gate_loop import AtRandom, FlightLoop, JudgedMoment, LoopSettings
from mmedge_ros.data_types import (
    CAMERA,
    RADAR,
    Configuration,
    FloatArray,
    ModalityConfiguration,
)
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.parameter import parameter
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE, PipelineParameters
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.gate import Gate, gate_bytes
from mmedge_ros.skipping.gate_features import FIELDS
from mmedge_ros.skipping.skip_control import SkipParameters

# From hardly ever to nearly always: the pattern of skips should look like any gate's.
SHARES = (0.05, 0.15, 0.4)
# Evenly spaced logits from 0.88 to 0.38, 0.5 among them. More careful ones save next to nothing.
THRESHOLDS: tuple[float, ...] = tuple(
    float(1.0 / (1.0 + np.exp(-logit))) for logit in np.linspace(2.0, -0.5, 6)
)
# Losses that are certified beside the wanted one.
DELTAS = (0.005, 0.01, 0.02)
_CAMERA_RATE, _RADAR_RATE = 30.0, 20.0
# Share of the progress shown.
_SAMPLED = 0.4


@dataclass(frozen=True)
class GateTrainingSettings(DenseSettings):
    """How the gate is trained."""

    dropout: float = parameter(0.2, 'share of hidden units left out in training', '', 0.0, 0.9)
    epochs: int = parameter(150, 'most passes over the samples', '', 1, 100_000)


class GateSamples(NamedTuple):
    """Gate features (N, F), what of the reference's decision was kept (N,), and the flight (N,).

    ``flights`` are numbers; samples of one flight belong together.
    """

    features: FloatArray
    kept: FloatArray
    flights: NDArray[np.int64]


def collect_samples(
    flight: EncodedFlight,
    number: int,
    settings: LoopSettings,
    shares: Sequence[float] = SHARES,
    seed: int = 0,
) -> GateSamples:
    """Replay a flight with gates that decide early at random.

    :raises ReplayError: if it is not encoded with the levels of the configuration
    """
    loop = FlightLoop(flight, settings)
    moments: list[JudgedMoment] = []
    for place, share in enumerate(shares):
        run = loop.gated(AtRandom(share, seed + place), 0.5, moments=True)
        moments += loop.reference.judged(run)
    return GateSamples(
        np.array([moment.features.vector() for moment in moments]).reshape(-1, len(FIELDS)),
        np.array([1.0 - moment.loss for moment in moments]),
        np.full(len(moments), number, np.int64),
    )


def train_gate(
    samples: GateSamples, settings: GateTrainingSettings | None = None
) -> tuple[Gate, Fit]:
    """Train a gate; the same samples and settings give the same gate.

    Flights are held out as a whole, and training stops where it was best for them.

    :raises TrainingError: for too few samples or flights, or if all answers are the same
    """
    kept = samples.kept
    if len(kept) and kept.min() == kept.max():
        raise TrainingError(
            'all early decisions turned out the same way, there is nothing to learn; replay '
            'flights with more happening in them'
        )
    fit = fit_network(
        samples.features,
        samples.flights,
        yes_or_no(kept),
        lambda rows: np.array([log_odds(kept[rows], 1e-3)]),
        settings or GateTrainingSettings(),
    )
    n = fit.network
    return Gate(n.mean, n.scale, n.weights1, n.bias1, n.weights2[:, 0], float(n.bias2[0])), fit


@dataclass(frozen=True)
class GateFlight:
    """A flight to make or judge a gate with; ``folder`` keeps what comes of it.

    ``strategy`` is decision or feature fusion. Losses are measured in the first ``seconds`` of
    the flight; 0 for all of it.
    """

    path: Path
    number: int
    bundle: BundleUnderTest
    strategy: str
    configuration: Configuration
    folder: Path
    seconds: float = 0.0

    def loop(self, *, with_greys: bool = False) -> FlightLoop:
        """Read the flight and encode it; audits would only disturb what is measured.

        :param with_greys: for replays with ``reuse``
        :raises ReplayError: if it cannot be read
        :raises EncodingError: if the bundle cannot be used, or has no networks for the strategy
        """
        wanted = {part.modality: [part.level] for part in self.configuration.modalities}
        with FlightBeginning(self.path, self.seconds) as recording:
            flight = load_flight(recording, PipelineParameters())
            encode_flight(flight, recording, self.bundle.encoders(), wanted, with_greys=with_greys)
        skipping = SkipParameters(audits=AuditParameters(share=0.0))
        parameters = PipelineParameters(strategy=self.strategy, skipping=skipping)
        settings = LoopSettings(self.configuration, self.bundle.profile, parameters)
        if self.strategy == FEATURE:
            # The networks are opened once; a gate that is there already plays no part.
            networks = self.bundle.networks()
            ungated = replace(parameters, skipping=SkipParameters(delta=0.0))

            def make() -> FeatureFusion | None:
                return open_pipeline(self.bundle.folder, ungated, networks).feature_fusion

            settings = replace(settings, make_fusion=make)
        return FlightLoop(flight, settings)

    @property
    def _samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.samples.npz'

    def collect(self, on_share: OnShare) -> None:
        """Collect the samples; those that are there already are kept.

        :raises TrainingError: if they cannot be written
        """
        if not self._samples_path.is_file():
            loop = self.loop()
            samples = collect_samples(
                loop.flight, self.number, loop.settings, seed=100 * self.number
            )
            arrays = {'questions': samples.features, 'kept': samples.kept}
            keep_arrays(self._samples_path, {**arrays, 'fields': np.array(FIELDS)})
        on_share(1.0)

    def samples(self) -> GateSamples:
        """Read the samples.

        :raises TrainingError: if there are none, or they are damaged or of another version
        """
        arrays = kept_arrays(self._samples_path)
        if arrays is None or tuple(arrays['fields'].tolist()) != FIELDS:
            raise missing(self._samples_path)
        kept = arrays['kept']
        return GateSamples(arrays['questions'], kept, np.full(len(kept), self.number))

    def _losses_path(self, gate: Gate) -> Path:
        digest = hashlib.sha256(gate_bytes(gate)).hexdigest()[:12]
        return self.folder / f'{self.path.name}.{digest}.{self.seconds:g}.npz'

    def try_gate(self, gate: Gate, on_share: OnShare) -> None:
        """Replay the flight in closed loop with each threshold, unless that is kept already.

        :raises TrainingError: if the losses cannot be written
        """
        path = self._losses_path(gate)
        if not path.is_file():
            loop, losses = self.loop(), []
            for place, threshold in enumerate(THRESHOLDS):
                losses.append(loop.reference.loss(loop.gated(gate, threshold)))
                on_share((place + 1) / len(THRESHOLDS))
            keep_arrays(path, {'losses': np.array(losses, np.float64)})
        on_share(1.0)

    def losses(self, gate: Gate) -> list[FlightLoss]:
        """Return the loss with each of `THRESHOLDS`.

        :raises TrainingError: if the flight was not replayed, or what is kept is damaged
        """
        arrays = kept_arrays(self._losses_path(gate))
        if arrays is None or arrays['losses'].shape != (len(THRESHOLDS), len(FlightLoss._fields)):
            raise missing(self._losses_path(gate))
        return [FlightLoss(*row) for row in arrays['losses'].tolist()]


@dataclass(frozen=True)
class GateRequest:
    """The request for a gate: a bundle, two sets of flights by folder, and where all of it goes.

    ``level`` is that of the camera ('' for one model that serves every level); ``strategy`` is
    decision or feature, '' for what the bundle does; ``delta`` is the loss that must be
    certified for a gate to be written at all; ``seconds`` is how much of each flight certifies,
    0 for all.
    """

    bundle: Path
    samples: Path
    calibration: Path
    out: Path
    level: str = 'medium'
    strategy: str = ''
    delta: float = 0.01
    confidence: float = 0.9
    seconds: float = 0.0
    settings: GateTrainingSettings = field(default_factory=GateTrainingSettings)
    jobs: int = 1


def build_gate(request: GateRequest, report: Report) -> list[Certificate]:
    """Train a gate, certify it and, where the wanted loss is certified, write the bundle.

    What was replayed before is kept in a folder beside the bundle until that is written.

    :return: what is certified of each loss, the wanted one among them
    :raises TrainingError: if it cannot be done with these flights
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(request.out)
    bundle = open_bundle(request.bundle, NOMINAL)
    strategy = request.strategy or (FEATURE if bundle.has_fusion else DECISION)
    configuration = flown(bundle, request.level, strategy)
    made_from = f'{bundle.digest} {strategy} {configuration}'
    folders = FlightFolders(work_beside(request.out), made_from)

    def of_set(folder: Path, seconds: float) -> list[GateFlight]:
        kept = [(path, folders.of(path)) for path in flights_in(folder)]
        first = len(folders) - len(kept)
        return [
            GateFlight(path, first + n, bundle, strategy, configuration, place, seconds)
            for n, (path, place) in enumerate(kept)
        ]

    learned = of_set(request.samples, 0.0)
    certifying = of_set(request.calibration, request.seconds)
    seeds = flight_seeds([flight.path for flight in certifying])
    if len(set(seeds)) < FEWEST_SEEDS:
        raise TrainingError(
            f'{request.calibration} holds flights of {len(set(seeds))} seeds; fewer than '
            f'{FEWEST_SEEDS} certify nothing'
        )
    gate, fit = make_gate(learned, request.settings, request.jobs, part_of(report, 0.0, _SAMPLED))
    works = {
        f'{f.number}/{f.path.name}': partial(GateFlight.try_gate, f, gate) for f in certifying
    }
    make_of_flights(works, request.jobs, part_of(report, _SAMPLED, 1.0), 'certifying')
    by_threshold = zip(*(flight.losses(gate) for flight in certifying), strict=True)
    losses = [by_seed(row, seeds) for row in by_threshold]
    certificates = [
        certify(THRESHOLDS, losses, delta, request.confidence)
        for delta in sorted({*DELTAS, request.delta})
    ]
    if any(c.holds and c.delta <= request.delta for c in certificates):
        facts = {
            'camera_level': request.level,
            'training': fit.facts(),
            ENCODERS: encoders_digest(request.bundle),
        }
        with bundle_copy(request.bundle, request.out) as copy:
            write_bundle_gate(copy, gate, strategy, [CAMERA], certificates, facts)
        shutil.rmtree(work_beside(request.out), ignore_errors=True)
    return certificates


def make_gate(
    flights: Sequence[GateFlight], settings: GateTrainingSettings, jobs: int, report: Report
) -> tuple[Gate, Fit]:
    """Collect samples and train a gate with them.

    :raises TrainingError: if a flight cannot be used, or there is too little to learn from
    """
    works = {f'{f.number}/{f.path.name}': partial(GateFlight.collect, f) for f in flights}
    make_of_flights(works, jobs, report)
    parts = [flight.samples() for flight in flights]
    return train_gate(GateSamples(*map(np.concatenate, zip(*parts, strict=True))), settings)


def flown(bundle: BundleUnderTest, level: str, strategy: str) -> Configuration:
    """Return the configuration that a gate is made for: full rates, and the radar's best level.

    :raises TrainingError: if the bundle lacks the level or the networks
    """
    encoders = bundle.encoders()
    known, scans = encoders[CAMERA].levels, encoders[RADAR].levels
    if known and level not in known:
        raise TrainingError(f'{bundle.folder} has no level {level!r}; choose {", ".join(known)}')
    if strategy == FEATURE and not bundle.has_fusion:
        raise TrainingError(f'{bundle.folder} has no fusion networks; use --strategy {DECISION}')
    camera = ModalityConfiguration(CAMERA, _CAMERA_RATE, level)
    radar = ModalityConfiguration(RADAR, _RADAR_RATE, scans[-1] if scans else '')
    return Configuration(1, 0, (camera, radar))

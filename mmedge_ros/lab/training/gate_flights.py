"""The flights a gate is made of: encoded, replayed with random early decisions, samples kept.

A decision made early changes what comes next, so samples are not collected from flights in
which nothing was skipped, but from flights in which early decisions were made at random. There
each moment counts, also those that were rejected: what would have been decided then is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import CAMERA, RADAR, Configuration, FloatArray
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_ros.lab.gates.closed_loop import (
    AtRandom,
    FlightLoop,
    JudgedMoment,
    LoopSettings,
    MakeFusion,
)
from mmedge_ros.lab.training import OnShare
from mmedge_ros.lab.training.flight_works import keep_arrays, kept_arrays, missing
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import DECISION, PipelineParameters
from mmedge_ros.replay.recording import Recording
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.gate_features import FIELDS
from mmedge_ros.skipping.skip_control import SkipParameters

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
        np.array([moment.agrees for moment in moments], np.bool_),
        np.full(len(moments), number, np.int64),
    )


def _without_audits() -> SkipParameters:
    return SkipParameters(audits=AuditParameters(share=0.0))


@dataclass(frozen=True)
class GateFlight:
    """A flight to make a gate of; ``folder`` keeps its results.

    ``strategy`` is decision or feature fusion. Thresholds are tried in the first configuration.
    """

    path: Path
    number: int
    bundle: BundleUnderTest
    strategy: str
    configurations: tuple[Configuration, ...]
    folder: Path
    skipping: SkipParameters = field(default_factory=_without_audits)

    @property
    def name(self) -> str:
        """The name of its works; flights of two sets may have the same folder name."""
        return f'{self.number}/{self.path.name}'

    @property
    def samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.samples.npz'

    def trials_path(self, name: str) -> Path:
        return self.folder / f'{self.path.name}.{name}.json'

    def encoded(self) -> EncodedFlight:
        """Read the flight and encode it with every level that is replayed.

        :raises ReplayError: if it cannot be read
        :raises EncodingError: if the bundle cannot be used
        """
        wanted = {
            modality: sorted({c.of(modality).level for c in self.configurations})
            for modality in (CAMERA, RADAR)
        }
        with Recording(self.path) as recording:
            flight = load_flight(recording, PipelineParameters())
            encode_flight(flight, recording, self.bundle.encoders(), wanted)
        return flight

    def settings(self) -> LoopSettings:
        """Return what is the same in all runs.

        Fusion networks are opened once; their results for the units of a window are cached.

        :raises EncodingError: if feature fusion is asked for and the bundle has none
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
    ungated = replace(parameters, skipping=SkipParameters(alpha=0.0))

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
        arrays = {'questions': samples.features, 'agrees': samples.agrees}
        keep_arrays(task.samples_path, {**arrays, 'fields': np.array(FIELDS)})
    on_share(1.0)


def collected(task: GateFlight) -> GateSamples:
    """Read the samples of a flight.

    :raises TrainingError: if there are none, or they are damaged or of another version
    """
    arrays = kept_arrays(task.samples_path)
    if arrays is None or tuple(arrays['fields'].tolist()) != FIELDS:
        raise missing(task.samples_path)
    agrees = arrays['agrees'].astype(bool)
    return GateSamples(arrays['questions'], agrees, np.full(len(agrees), task.number))

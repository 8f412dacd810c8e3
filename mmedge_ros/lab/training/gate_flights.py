"""The flights a gate is made of, one at a time: encoded, replayed, and results kept."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mmedge_ros.data_types import CAMERA, RADAR, Configuration
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight, encode_flight, load_flight
from mmedge_ros.lab.gates.closed_loop import LoopSettings, MakeFusion
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.gate_samples import SHARES, GateSamples, collect_samples
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import DECISION, PipelineParameters
from mmedge_ros.replay.recording import Recording
from mmedge_ros.skipping.audits import AuditParameters
from mmedge_ros.skipping.gate_features import FIELDS
from mmedge_ros.skipping.skip_control import SkipParameters

Tell = Callable[[float], None]


def _without_audits() -> SkipParameters:
    return SkipParameters(audits=AuditParameters(share=0.0))


@dataclass(frozen=True)
class GateFlight:
    """A flight to make a gate of. ``number`` tells it apart, ``folder`` keeps its results.

    ``strategy`` is decision or feature fusion. Thresholds are tried in the first configuration.
    """

    path: Path
    number: int
    bundle: BundleUnderTest
    strategy: str
    configurations: tuple[Configuration, ...]
    folder: Path
    skipping: SkipParameters = field(default_factory=_without_audits)

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

        Fusion networks are opened once; what they made of the units of a window is remembered.

        :raises EncodingError: if feature fusion is asked for and the bundle has none
        """
        parameters = PipelineParameters(strategy=self.strategy)
        settings = LoopSettings(
            self.configurations[0], self.bundle.profile, parameters, self.skipping
        )
        if self.strategy == DECISION:
            return settings
        return replace(settings, make_fusion=_fusion_maker(self.bundle, parameters))

    @property
    def samples_path(self) -> Path:
        return self.folder / f'{self.path.name}.samples.npz'

    def trials_path(self, name: str) -> Path:
        return self.folder / f'{self.path.name}.{name}.json'


def _fusion_maker(bundle: BundleUnderTest, parameters: PipelineParameters) -> MakeFusion:
    networks = bundle.networks()
    # A gate that is there already plays no part: it is trained anew.
    ungated = replace(parameters, skipping=SkipParameters(alpha=0.0))

    def make() -> FeatureFusion | None:
        return open_pipeline(bundle.folder, ungated, networks).feature_fusion

    return make


def collect(task: GateFlight, tell: Tell, shares: Sequence[float] = SHARES) -> None:
    """Collect a flight's samples; those that are there already are kept.

    :raises TrainingError: if they cannot be written
    """
    if not task.samples_path.is_file():
        found = collect_samples(
            task.encoded(),
            task.number,
            task.settings(),
            task.configurations,
            shares,
            100 * task.number,
        )
        buffer = io.BytesIO()
        np.savez(buffer, questions=found.features, agrees=found.agrees, fields=np.array(FIELDS))
        write_whole(task.samples_path, buffer.getvalue())
    tell(1.0)


def collected(task: GateFlight) -> GateSamples:
    """Read the samples of a flight.

    :raises TrainingError: if there are none, or they are of another version
    """
    path = task.samples_path
    try:
        with np.load(path, allow_pickle=False) as file:
            questions, agrees = file['questions'], file['agrees']
            fields = tuple(file['fields'].tolist())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as err:
        raise TrainingError(f'{path} cannot be read ({err}); collect samples again') from err
    if fields != FIELDS or questions.shape != (len(agrees), len(FIELDS)):
        raise TrainingError(f'{path} holds other features; delete it and collect samples again')
    return GateSamples(questions, agrees.astype(bool), np.full(len(agrees), task.number))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file as a whole: whoever is killed leaves none that is cut.

    :raises TrainingError: if it cannot be written
    """
    partial = path.with_name(f'{path.name}.part')
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as err:
        raise TrainingError(f'{path} cannot be written: {err.strerror or err}') from err

"""Whole flights replayed twice: as they are, and with a gate, whose skips change what follows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_ros.data_types import Configuration, Decision, Measurement, UnitKey
from mmedge_ros.fusion.decision_fusion import DecisionFusionParameters
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.fusion.pairing import PairedUnits
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.pipeline.fusion_strategy import gated_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.pipeline_parts import MeasurementSource, decision_fusion_source
from mmedge_ros.records.device_profile import DeviceProfile
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.skipping.box_loss import decision_loss
from mmedge_ros.skipping.early_decision import Gating, SceneChangeParameters
from mmedge_ros.skipping.gate import EarlyDecisionClassifier
from mmedge_ros.skipping.gate_features import GateFeatures, OpenWindow
from mmedge_ros.skipping.skip_control import SkipControl, SkipParameters, SkipStatus

# What a picture and the scans paired with it say of people does not depend on the tracks, and
# is more than half of the work of decision fusion.
# By units, frame, and the newest odometry where the units are newer still.
_Key: TypeAlias = tuple[UnitKey | None, tuple[UnitKey, ...], str, int | None]
Measured: TypeAlias = dict[_Key, list[Measurement]]

MakeFusion = Callable[[], FeatureFusion | None]


def _no_fusion() -> None:
    return None


@dataclass(frozen=True)
class LoopSettings:
    """What stays the same in all runs of a flight.

    ``make_fusion`` makes feature fusion anew for each run; decision fusion where it gives None.
    """

    configuration: Configuration
    profile: DeviceProfile
    pipeline: PipelineParameters
    skipping: SkipParameters
    changes: SceneChangeParameters = field(default_factory=SceneChangeParameters)
    make_fusion: MakeFusion = _no_fusion

    def changed(self, modality: str, rate: float, reuse: int) -> LoopSettings:
        """Return the settings with a share of the rate of a modality, and with ``reuse``."""
        before = self.configuration
        parts = [
            replace(p, rate=rate * p.rate, reuse=reuse) if p.modality == modality else p
            for p in before.modalities
        ]
        return replace(self, configuration=replace(before, modalities=tuple(parts)))


class JudgedMoment(NamedTuple):
    """Gate features of a moment, and the loss to decide then, 0..1."""

    features: GateFeatures
    loss: float


class EarlyDecision(NamedTuple):
    """A window decided early: its features, the confidence, and the loss, 0..1.

    ``early_by`` is the window end minus publication, s.
    """

    end_ns: int
    features: GateFeatures
    confidence: float
    loss: float
    early_by: float


@dataclass(frozen=True, eq=False)
class GatedRun:
    """A flight with a gate; ``audits`` are the losses of audited windows."""

    record: RunRecord
    early: tuple[EarlyDecision, ...]
    status: SkipStatus
    audits: tuple[float, ...]


@dataclass(frozen=True)
class Never:
    """Lets nothing rest: what other ways to save are compared by."""

    def confidence(self, features: GateFeatures, end_ns: int) -> float:  # noqa: ARG002  # any
        return 0.0


@dataclass(frozen=True)
class AtRandom:
    """Says yes at a share of all moments, whatever they are; runs repeat."""

    share: float
    seed: int = 0

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        text = f'{self.seed}/{end_ns}/{features.lead!r}'
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, 'little') < self.share * 2.0**64)


class FlightLoop:
    """Replays of one flight with the same settings.

    :param reference: of an earlier loop; made when first needed where there is none
    """

    def __init__(
        self, flight: EncodedFlight, settings: LoopSettings, reference: RunRecord | None = None
    ) -> None:
        self.flight = flight
        self.settings = settings
        self._measured: Measured = {}
        self._reference = reference
        self._full: dict[int, Decision] | None = None

    def reference(self) -> RunRecord:
        """Return the run in which nothing is skipped."""
        if self._reference is None:
            self._reference = self._replayed(None)
        return self._reference

    def gated(self, classifier: EarlyDecisionClassifier, threshold: float) -> GatedRun:
        """Replay with a gate, and compare its early decisions with the reference's."""
        return self._gated(classifier, threshold, None)

    def judged(self, classifier: EarlyDecisionClassifier, threshold: float) -> list[JudgedMoment]:
        """Replay with a gate, and judge every moment it was evaluated at, also those it rejected.

        What would have been decided then is compared with the reference's decision.
        """
        shadows: list[tuple[GateFeatures, Decision]] = []
        self._gated(classifier, threshold, shadows)
        full, size = self._decided(), _picture_size(self.reference())
        return [
            JudgedMoment(features, decision_loss(shadow, full[shadow.window_end_ns], size))
            for features, shadow in shadows
            if shadow.window_end_ns in full
        ]

    def _gated(
        self,
        classifier: EarlyDecisionClassifier,
        threshold: float,
        shadows: list[tuple[GateFeatures, Decision]] | None,
    ) -> GatedRun:
        early_features: dict[int, tuple[GateFeatures, float]] = {}
        audits: list[float] = []

        def note(window: OpenWindow, features: GateFeatures, confidence: float) -> None:
            early_features[window.end_ns] = (features, confidence)

        s = self.settings
        windows = s.pipeline.windows
        control = SkipControl(
            s.skipping,
            threshold,
            windows.window,
            windows.stride,
            periods_ns=self.flight.periods_ns,
        )

        def keep_shadow(features: GateFeatures, preview: Callable[[], Decision]) -> None:
            if shadows is not None:
                shadows.append((features, preview()))

        record = self._replayed(
            Gating(classifier, control, s.changes, keep_shadow, note, audits.append)
        )
        full, size = self._decided(), _picture_size(record)
        early = tuple(
            EarlyDecision(
                decision.window_end_ns,
                *early_features[decision.window_end_ns],
                decision_loss(decision, full[decision.window_end_ns], size),
                -decision.latency,
            )
            for decision in record.decisions
            if decision.window_end_ns in early_features and decision.window_end_ns in full
        )
        return GatedRun(record, early, control.status, tuple(audits))

    def _replayed(self, gating: Gating | None) -> RunRecord:
        s, fusion = self.settings, self.settings.make_fusion()
        # Feature fusion makes something else of a picture in each window.
        source = cached_source(s.pipeline.fusion, self._measured) if fusion is None else None
        if gating is None:
            pipeline = PerceptionPipeline(s.pipeline, fusion, measure=source)
        else:
            pipeline = gated_pipeline(gating, s.pipeline, fusion, source)
        return replay_encoded(self.flight, pipeline, s.configuration, s.profile)

    def _decided(self) -> dict[int, Decision]:
        """The reference's decisions by window end."""
        if self._full is None:
            self._full = {d.window_end_ns: d for d in self.reference().decisions}
        return self._full


def _picture_size(record: RunRecord) -> tuple[int, int]:
    camera = record.camera
    return (camera.width, camera.height) if camera else (0, 0)


def cached_source(parameters: DecisionFusionParameters, memory: Measured) -> MeasurementSource:
    """Return decision fusion that looks into ``memory`` first.

    The memory is shared by pipelines that replay one flight in one configuration. Feature fusion
    makes something else of a picture in each window: it must not be given one.
    """
    source = decision_fusion_source(parameters)

    def measure(units: PairedUnits, rig: SensorRig) -> list[Measurement]:
        ego_ns = rig.newest_ego_ns
        members = [*units.scans, *([units.camera] if units.camera is not None else [])]
        is_settled = ego_ns is None or ego_ns >= max(unit.stamp_ns for unit in members)
        key = (
            None if units.camera is None else units.camera.key,
            tuple(scan.key for scan in units.scans),
            rig.frame_id,
            None if is_settled else ego_ns,
        )
        if key not in memory:
            memory[key] = source(units, rig)
        return memory[key]

    return measure

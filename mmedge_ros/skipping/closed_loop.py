"""Whole flights replayed twice: as they are, and with a gate, whose skips change what follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from mmedge_ros.data_types import Configuration
from mmedge_ros.evaluation.run_record import RunRecord
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline, PipelineParameters
from mmedge_ros.replay.device_profile import DeviceProfile
from mmedge_ros.replay.encoded_flight import EncodedFlight, replay_encoded
from mmedge_ros.skipping.agreement import decisions_agree
from mmedge_ros.skipping.certificate import FlightOutcome
from mmedge_ros.skipping.gate import Asked
from mmedge_ros.skipping.gated_pipeline import GatedPipeline, Gating
from mmedge_ros.skipping.question import Question
from mmedge_ros.skipping.scene import Asking
from mmedge_ros.skipping.scene_change import SceneChangeParameters
from mmedge_ros.skipping.skip_control import SkipControl, SkipParameters, SkipStatus

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


class EarlyDecision(NamedTuple):
    """A window decided early: what was asked, how sure the answer was, and if it was right.

    ``early_by`` is the window end minus publication, s.
    """

    end_ns: int
    question: Question
    confidence: float
    agrees: bool
    early_by: float


@dataclass(frozen=True, eq=False)
class GatedRun:
    """A flight with a gate; ``audits`` say of each whether both decisions were equal."""

    record: RunRecord
    early: tuple[EarlyDecision, ...]
    status: SkipStatus
    audits: tuple[bool, ...]

    @property
    def outcome(self) -> FlightOutcome:
        """What counts for a certificate."""
        differing = sum(not decision.agrees for decision in self.early)
        return FlightOutcome(len(self.record.decisions), len(self.early), differing)

    @property
    def rested(self) -> dict[str, int]:
        """Units that were left out, by modality."""
        return {modality: counts.skipped for modality, counts in self.record.units.items()}


def reference_run(flight: EncodedFlight, settings: LoopSettings) -> RunRecord:
    """Replay a flight in which nothing is skipped."""
    pipeline = PerceptionPipeline(settings.pipeline, settings.make_fusion())
    return replay_encoded(flight, pipeline, settings.configuration, settings.profile)


def gated_run(
    flight: EncodedFlight,
    reference: RunRecord,
    settings: LoopSettings,
    asked: Asked,
    threshold: float,
) -> GatedRun:
    """Replay a flight with a gate, and compare its early decisions with the reference's.

    :param reference: of `reference_run` with the same settings
    """
    asked_early: dict[int, tuple[Question, float]] = {}
    audits: list[bool] = []

    def note(asking: Asking, question: Question, confidence: float) -> None:
        asked_early[asking.end_ns] = (question, confidence)

    windows = settings.pipeline.windows
    control = SkipControl(
        settings.skipping,
        threshold,
        windows.window,
        windows.stride,
        periods_ns=flight.periods_ns,
    )
    gating = Gating(asked, control, settings.changes, note, audits.append)
    pipeline = GatedPipeline(gating, settings.pipeline, settings.make_fusion())
    record = replay_encoded(flight, pipeline, settings.configuration, settings.profile)
    full = {decision.window_end_ns: decision for decision in reference.decisions}
    camera = record.camera
    size = (camera.width, camera.height) if camera else (0, 0)
    early = tuple(
        EarlyDecision(
            decision.window_end_ns,
            *asked_early[decision.window_end_ns],
            decisions_agree(decision, full[decision.window_end_ns], size),
            -decision.latency,
        )
        for decision in record.decisions
        if decision.window_end_ns in asked_early and decision.window_end_ns in full
    )
    return GatedRun(record, early, control.status, tuple(audits))

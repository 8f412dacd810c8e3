"""Whole flights replayed twice: as they are, and with a gate, whose skips change what follows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging.encoded_flight import EncodedFlight, replay_encoded
from mmedge_lab.training.certificate import FlightLoss
from mmedge_ros.core.data_types import (
    CAMERA,
    NS_PER_S,
    Configuration,
    Decision,
)
from mmedge_ros.core.device_profile import DeviceProfile
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.fusion_strategy import gated_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.report.accuracy_samples import (
    STREAM_STEP_NS,
    PersonSamples,
    picture_size,
    stream_samples,
)
from mmedge_ros.report.mot_metrics import MINIMUM_IOU
from mmedge_ros.report.truth_matching import Mask
from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.box_loss import decision_loss
from mmedge_ros.windows.early_decision import Gating
from mmedge_ros.windows.feature_fusion import FeatureFusion
from mmedge_ros.windows.gate import EarlyDecisionClassifier
from mmedge_ros.windows.gate_features import GateFeatures
from mmedge_ros.windows.skip_control import SkipControl

# A person who has been in view this long without a break is held. Published boxes are late: half
# of the IoU that counts at their own time is enough.
_HELD_NS = NS_PER_S
_IN_VIEW_IOU = 0.5 * MINIMUM_IOU


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
    make_fusion: Callable[[], FeatureFusion | None] = _no_fusion


class JudgedMoment(NamedTuple):
    """Gate features of a moment, and the loss to decide then, 0..1."""

    features: GateFeatures
    loss: float


class GatedRun(NamedTuple):
    """A flight with a gate: which windows were decided early, and each moment it was evaluated.

    ``moments`` hold the decision that would have been made; they are kept only where asked for.
    """

    record: RunRecord
    early_ends_ns: frozenset[int]
    moments: tuple[tuple[GateFeatures, Decision], ...] = ()


@dataclass(frozen=True)
class AtRandom:
    """Says yes at a share of all moments, whatever they are; runs repeat."""

    share: float
    seed: int = 0

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        text = f'{self.seed}/{end_ns}/{features.lead!r}'
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return float(int.from_bytes(digest, 'little') < self.share * 2.0**64)


class ReferenceRun:
    """A run in which nothing is skipped, and what others lose against it."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._size = picture_size(record)

    @cached_property
    def decisions(self) -> dict[int, Decision]:
        """The decisions by window end."""
        return {d.window_end_ns: d for d in self.record.decisions}

    def judged(self, run: GatedRun) -> list[JudgedMoment]:
        """Compare what would have been decided at each moment with the full decision."""
        return [
            JudgedMoment(features, self._early_loss(decision))
            for features, decision in run.moments
            if decision.window_end_ns in self.decisions
        ]

    def loss(self, run: GatedRun) -> FlightLoss:
        """Sum up what a run lost and saved.

        :raises SkippingError: if the flight has no ground truth
        """
        (samples, held), ours = self._stream, self._stream_of(run.record)
        early = [
            self._early_loss(decision)
            for decision in run.record.decisions
            if decision.window_end_ns in run.early_ends_ns
            and decision.window_end_ns in self.decisions
        ]
        usual = encodes(self.record)
        return FlightLoss(
            len(samples.overlaps),
            float(samples.overlaps.sum() - ours.overlaps.sum()),
            int(held.sum()),
            int(_in_view(samples)[held].sum()) - int(_in_view(ours)[held].sum()),
            len(early),
            sum(early),
            usual - encodes(run.record),
            usual,
        )

    def _early_loss(self, decision: Decision) -> float:
        return decision_loss(decision, self.decisions[decision.window_end_ns], self._size)

    @cached_property
    def _stream(self) -> tuple[PersonSamples, Mask]:
        """Samples every 10 ms, and which are of people whom the reference had in view."""
        samples = self._stream_of(self.record)
        return samples, held_people(samples)

    def _stream_of(self, record: RunRecord) -> PersonSamples:
        truth = self.record.truth
        if truth is None or not truth.scenes:
            raise SkippingError(
                'a flight has no ground truth, against which losses are measured; use simulated '
                'flights'
            )
        samples = stream_samples(record, truth)
        # The flight may be known for longer than it was replayed.
        return samples.select(samples.stamps_ns <= max(self.decisions, default=0))


class FlightLoop:
    """Replays of one flight with the same settings."""

    def __init__(self, flight: EncodedFlight, settings: LoopSettings) -> None:
        self.flight = flight
        self.settings = settings

    @cached_property
    def reference(self) -> ReferenceRun:
        """The run in which nothing is skipped."""
        return ReferenceRun(self._replayed(None))

    def gated(
        self, classifier: EarlyDecisionClassifier, threshold: float, *, moments: bool = False
    ) -> GatedRun:
        """Replay with a gate.

        :param moments: keep each moment it was evaluated at, also those it rejected
        """
        early: set[int] = set()
        shadows: list[tuple[GateFeatures, Decision]] = []

        def keep_shadow(features: GateFeatures, preview: Callable[[], Decision]) -> None:
            if moments:
                shadows.append((features, preview()))

        p = self.settings.pipeline
        control = SkipControl(
            p.skipping,
            threshold,
            p.windows.window,
            p.windows.stride,
            periods_ns=self.flight.periods_ns,
        )
        gating = Gating(
            classifier,
            control,
            p.scene_change,
            on_features=keep_shadow,
            on_early=lambda window, *_: early.add(window.end_ns),
        )
        return GatedRun(self._replayed(gating), frozenset(early), tuple(shadows))

    def _replayed(self, gating: Gating | None) -> RunRecord:
        s, fusion = self.settings, self.settings.make_fusion()
        if gating is None:
            pipeline = PerceptionPipeline(s.pipeline, fusion)
        else:
            pipeline = gated_pipeline(gating, s.pipeline, fusion)
        return replay_encoded(self.flight, pipeline, s.configuration, s.profile)


def encodes(record: RunRecord) -> int:
    """Return how often the camera's network ran; units that were followed had none."""
    return sum(unit.modality == CAMERA and not unit.followed for unit in record.features)


def _in_view(samples: PersonSamples) -> Mask:
    mask: Mask = samples.overlaps >= _IN_VIEW_IOU
    return mask


def held_people(samples: PersonSamples) -> Mask:
    """Mark the samples of people who were in view without a break in the second before."""
    held, in_view = np.zeros(len(samples.ids), np.bool_), _in_view(samples)
    for person in np.unique(samples.ids):
        since_ns: int | None = None
        before_ns = 0
        for row in np.flatnonzero(samples.ids == person):
            now_ns = int(samples.stamps_ns[row])
            if since_ns is not None and now_ns - before_ns > STREAM_STEP_NS:
                since_ns = None
            held[row] = since_ns is not None and now_ns - since_ns >= _HELD_NS
            if not in_view[row]:
                since_ns = None
            elif since_ns is None:
                since_ns = now_ns
            before_ns = now_ns
    return held

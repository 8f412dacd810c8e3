"""Decides some windows before they end, and lets the slow modality rest meanwhile."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from mmedge_ros.core.data_types import CAMERA, Decision, SkipDecision, UnitFeatures
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.tracking.track import TrackerState, TrackState
from mmedge_ros.windows.box_loss import decision_loss
from mmedge_ros.windows.feature_extractor import GateFeatureExtractor
from mmedge_ros.windows.gate import EarlyDecisionClassifier
from mmedge_ros.windows.gate_features import GateFeatures, OpenWindow
from mmedge_ros.windows.skip_control import SkipControl, Verdict

# Far more than a window holds.
_MOST_PICTURES = 100


@dataclass(frozen=True)
class SceneChangeParameters:
    """What counts as a change while a sensor rests."""

    # Detections after which a new track ends a rest; a ghost is rarely seen twice.
    hits: int = 2
    # A rest ends when the standard deviation of a position has grown by this factor and by so much
    # (m): small ones may double without anything having happened.
    growth: float = 2.0
    least_growth: float = 0.2


@dataclass(frozen=True)
class SceneChange:
    """Compares tracks with those at the begin of a rest: standard deviations (m) by track."""

    parameters: SceneChangeParameters
    deviations: Mapping[int, float]

    @staticmethod
    def since(parameters: SceneChangeParameters, state: TrackerState) -> SceneChange:
        """Remember a state; tracks with too few hits to be believed count as new later."""
        known = [t for t in state.tracks if t.confirmed or t.hits >= parameters.hits]
        return SceneChange(parameters, {t.id: _deviation(t) for t in known})

    def is_in(self, state: TrackerState) -> bool:
        """Whether there is a new object, or a known one has become uncertain."""
        p = self.parameters
        for track in state.tracks:
            before = self.deviations.get(track.id)
            if before is None:
                if track.hits >= p.hits:
                    return True
            elif track.confirmed:
                now = _deviation(track)
                if now > p.growth * before and now > before + p.least_growth:
                    return True
        return False


def _deviation(track: TrackState) -> float:
    """Largest standard deviation of the position on the ground, m."""
    a, b, c = (float(track.covariance[i, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
    return math.sqrt(max((a + c) / 2 + math.hypot((a - c) / 2, b), 0.0))


class DecidingPipeline(Protocol):
    """What an early decision needs of the pipeline."""

    rig: SensorRig

    @property
    def open_end_ns(self) -> int | None:
        """End of the earliest open window."""

    @property
    def track_state(self) -> TrackerState:
        """All tracks after the newest unit."""

    @property
    def unlike(self) -> tuple[str, ...]:
        """What of the pictures is unlike the calibration flights', in words."""

    def decide_early(self, now_ns: int) -> Decision | None:
        """Decide the earliest open window now."""

    def preview(self, end_ns: int, now_ns: int, pictures: Collection[UnitFeatures]) -> Decision:
        """Return what would be decided now, and change nothing."""


def _ignore(*_: object) -> None:
    """Do nothing with what is reported."""


@dataclass(frozen=True)
class Gating:
    """The classifier, the rules of skipping, and what ends a rest.

    ``on_features`` is called with the features of each open window and a function that makes the
    decision they are about; ``on_early`` with each window decided early, its features and the
    confidence; ``on_audit`` after each audit with the loss of the early decision, 0..1.
    """

    classifier: EarlyDecisionClassifier
    control: SkipControl
    changes: SceneChangeParameters = field(default_factory=SceneChangeParameters)
    on_features: Callable[[GateFeatures, Callable[[], Decision]], None] = _ignore
    on_early: Callable[[OpenWindow, GateFeatures, float], None] = _ignore
    on_audit: Callable[[float], None] = _ignore


class GatedDecision:
    """Early decisions by a gate; leases come out of `take_skips` after each poll.

    :param high_score: detections from here on begin tracks
    :param window: length of a window, s
    """

    def __init__(self, gating: Gating, high_score: float, window: float) -> None:
        self.gating = gating
        self.control = gating.control
        self._extractor = GateFeatureExtractor(high_score, window)
        self._pipeline: DecidingPipeline | None = None
        self.reset()

    def attach(self, pipeline: DecidingPipeline) -> None:
        """Work with this pipeline from now on."""
        self._pipeline = pipeline

    def reset(self) -> None:
        """Forget windows, units and tracks."""
        self.control.reset()
        self._extractor.reset()
        self._skips: list[SkipDecision] = []
        self._pictures: deque[UnitFeatures] = deque(maxlen=_MOST_PICTURES)
        self._basis: SceneChange | None = None
        self._shadow: Decision | None = None

    def unit_added(self, unit: UnitFeatures, now_ns: int) -> None:
        """Enter a unit that the pipeline took in."""
        if unit.modality == CAMERA:
            self._pictures.append(unit.without_grid())
        if self.control.unit_arrived(unit, now_ns):
            self._extractor.add(unit, self._attached.track_state)
            self._end_rest_on_change(now_ns)

    def decide(self, now_ns: int) -> list[Decision]:
        """Decide every window the gate is sure enough of, in order.

        None while pictures are unlike those that it was certified by.
        """
        decisions: list[Decision] = []
        if self._attached.unlike:
            return decisions
        while (window := self.control.open_window(self._attached.open_end_ns, now_ns)) is not None:
            decision = self._evaluate(window)
            if decision is None:
                break
            decisions.append(decision)
        return decisions

    def window_decided(self, decision: Decision) -> Decision:
        """Finish with a window that was decided in full."""
        shadow, self._shadow = self._shadow, None
        if shadow is not None and shadow.window_end_ns == decision.window_end_ns:
            loss = decision_loss(shadow, decision, self._attached.rig.picture_size)
            self.control.audited(loss)
            self.gating.on_audit(loss)
        self.control.window_decided(decision.window_end_ns)
        return self._with_rest(decision)

    def take_skips(self) -> Sequence[SkipDecision]:
        """Return the leases since the last call, in order; a later one replaces an earlier."""
        skips, self._skips = self._skips, []
        return skips

    @property
    def _attached(self) -> DecidingPipeline:
        assert self._pipeline is not None  # the pipeline attaches itself
        return self._pipeline

    def _evaluate(self, window: OpenWindow) -> Decision | None:
        """Evaluate the gate for a window; return its decision if it is decided now."""
        state = self._attached.track_state
        features = self._extractor.features(window, state)
        self.gating.on_features(features, lambda: self._preview(window))
        confidence = self.gating.classifier.confidence(features, window.end_ns)
        ruling = self.control.rule(window, confidence)
        if ruling.verdict is Verdict.SHADOW:
            self._shadow = self._preview(window)
        if ruling.verdict is not Verdict.DECIDE:
            return None
        self.gating.on_early(window, features, confidence)
        decided = self._attached.decide_early(window.now_ns)
        if decided is None:
            return None
        decision = self._with_rest(decided)
        self.control.window_decided(decision.window_end_ns)
        if ruling.skip is not None:
            self._skips.append(ruling.skip)
            self._basis = SceneChange.since(self.gating.changes, self._attached.track_state)
        return decision

    def _preview(self, window: OpenWindow) -> Decision:
        return self._attached.preview(window.end_ns, window.now_ns, self._pictures)

    def _with_rest(self, decision: Decision) -> Decision:
        """Mark modalities that were let rest: a source that pauses does not say so itself."""
        rested = self.control.rested(decision.window_end_ns)
        return replace(decision, skipped=tuple(sorted({*decision.skipped, *rested})))

    def _end_rest_on_change(self, now_ns: int) -> None:
        if self._basis is None or not self._basis.is_in(self._attached.track_state):
            return
        self._basis = None
        resumed = self.control.resume(now_ns)
        if resumed is not None:
            self._skips.append(resumed)

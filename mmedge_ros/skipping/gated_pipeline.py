"""The perception pipeline with a gate before it: some decisions come before their window ends.

Driven as the pipeline itself is. What else comes out are leases: `take_skips` after each poll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmedge_ros.data_types import CAMERA, Decision, SkipDecision, UnitFeatures
from mmedge_ros.fusion.feature_fusion import FeatureFusion
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline, PipelineParameters
from mmedge_ros.skipping.agreement import decisions_agree
from mmedge_ros.skipping.gate import Asked
from mmedge_ros.skipping.question import Question
from mmedge_ros.skipping.scene import Asking, Scene
from mmedge_ros.skipping.scene_change import SceneChange, SceneChangeParameters
from mmedge_ros.skipping.skip_control import SkipControl, Verdict

# Far more than a window holds.
_MOST_PICTURES = 100
_NO_GRID = np.zeros((0, 0, 0), np.float16)


def _ignore(*_: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class Gating:
    """Who is asked, who rules, and what ends a rest.

    ``on_early`` is told of each window decided early, what was asked about it and how sure the
    answer was; ``on_audit`` of each audit whether both decisions were equal.
    """

    asked: Asked
    control: SkipControl
    changes: SceneChangeParameters = field(default_factory=SceneChangeParameters)
    on_early: Callable[[Asking, Question, float], None] = _ignore
    on_audit: Callable[[bool], None] = _ignore


class GatedPipeline(PerceptionPipeline):
    """Windows in, decisions and leases out.

    :raises FusionError: as for the pipeline
    """

    _skips: list[SkipDecision]

    def __init__(
        self,
        gating: Gating,
        parameters: PipelineParameters | None = None,
        feature_fusion: FeatureFusion | None = None,
    ) -> None:
        p = parameters or PipelineParameters()
        self.gating = gating
        self.control = gating.control
        self._scene = Scene(p.tracking(feature_fusion is not None).high_score, p.windows.window)
        super().__init__(p, feature_fusion)

    def add_features(self, features: UnitFeatures, now_ns: int) -> bool:
        if not super().add_features(features, now_ns):
            return False
        # The gate asks about the tracks as they are now.
        self._absorb(self.assembler.next_end_ns or 0)
        if features.modality == CAMERA:
            self._pictures.append(replace(features, grid=_NO_GRID))
        if self.control.unit_arrived(features, now_ns):
            self._scene.add(features, self.tracker.state)
            self._end_rest_on_change(now_ns)
        return True

    def poll(self, now_ns: int) -> list[Decision]:
        """Decide every window that can be closed, and those the gate says yes to, in order."""
        decisions = [self._closed(decision) for decision in super().poll(now_ns)]
        while True:
            asking = self.control.asking(self.assembler.next_end_ns, now_ns)
            if asking is None:
                return decisions
            decision = self._ask(asking)
            if decision is None:
                return decisions
            decisions.append(decision)

    def take_skips(self) -> Sequence[SkipDecision]:
        """Return the leases since the last call, in order; a later one replaces an earlier."""
        skips, self._skips = self._skips, []
        return skips

    def _start_over(self) -> None:
        super()._start_over()
        self.control.reset()
        self._scene.reset()
        self._skips = []
        self._pictures: deque[UnitFeatures] = deque(maxlen=_MOST_PICTURES)
        self._basis: SceneChange | None = None
        self._shadow: Decision | None = None

    def _ask(self, asking: Asking) -> Decision | None:
        """Ask about a window; returns its decision if it is decided now."""
        question = self._scene.question(asking, self.tracker.state)
        confidence = self.gating.asked.confidence(question, asking.end_ns)
        ruling = self.control.rule(asking, confidence)
        if ruling.verdict is Verdict.SHADOW:
            self._shadow = self._preview(asking.end_ns, asking.now_ns)
        if ruling.verdict is not Verdict.DECIDE:
            return None
        self.gating.on_early(asking, question, confidence)
        window = self.assembler.close_early(asking.now_ns)
        if window is None:
            return None
        decision = self._with_rest(self._decide(window))
        self.control.window_decided(window.end_ns)
        if ruling.skip is not None:
            self._skips.append(ruling.skip)
            self._basis = SceneChange.since(self.gating.changes, self.tracker.state)
        return decision

    def _preview(self, end_ns: int, now_ns: int) -> Decision:
        """Return what would be decided now, and change nothing."""
        tracker = self.tracker.fork()
        if self.feature_fusion is not None:
            fused = {found.picture: found for found in self.feature_fusion.preview(end_ns)}
            pictures = [
                replace(picture, detections=fused[picture.key].detections)
                for picture in self._pictures
                if picture.key in fused
            ]
            if pictures:
                tracker.update(pictures)
        state_ns = min(max(self._state_ns, tracker.newest_ns or now_ns), now_ns)
        camera = self.geometry.camera
        size = (camera.width, camera.height) if camera else (0, 0)
        begin_ns = end_ns - self.assembler.window_ns
        tracks = tracker.report(state_ns, begin_ns, size)
        return Decision(end_ns, state_ns, self.frame_id, tracks, {})

    def _closed(self, decision: Decision) -> Decision:
        """Finish with a window that was decided in full."""
        shadow, self._shadow = self._shadow, None
        if shadow is not None and shadow.window_end_ns == decision.window_end_ns:
            camera = self.geometry.camera
            size = (camera.width, camera.height) if camera else (0, 0)
            agreed = decisions_agree(shadow, decision, size)
            self.control.audited(agreed)
            self.gating.on_audit(agreed)
        self.control.window_decided(decision.window_end_ns)
        return self._with_rest(decision)

    def _with_rest(self, decision: Decision) -> Decision:
        """Mark who was let rest: a source that pauses does not say so itself."""
        rested = self.control.rested(decision.window_end_ns)
        return replace(decision, skipped=tuple(sorted({*decision.skipped, *rested})))

    def _end_rest_on_change(self, now_ns: int) -> None:
        if self._basis is None or self.control.running(now_ns) is None:
            return
        if self._basis.is_in(self.tracker.state):
            resumed = self.control.resume(now_ns)
            if resumed is not None:
                self._skips.append(resumed)
            self._basis = None

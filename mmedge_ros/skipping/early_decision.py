"""Decides some windows before they end, and lets the slow modality rest meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from mmedge_ros.data_types import CAMERA, Decision, SkipDecision, UnitFeatures
from mmedge_ros.geometry.sensor_rig import SensorRig
from mmedge_ros.skipping.agreement import decisions_agree
from mmedge_ros.skipping.gate import Asked
from mmedge_ros.skipping.question import Question
from mmedge_ros.skipping.scene import Asking, Scene
from mmedge_ros.skipping.scene_change import SceneChange, SceneChangeParameters
from mmedge_ros.skipping.skip_control import SkipControl, Verdict
from mmedge_ros.tracking.track import TrackerState

# Far more than a window holds.
_MOST_PICTURES = 100
_NO_GRID = np.zeros((0, 0, 0), np.float16)


class _Assembler(Protocol):
    @property
    def next_end_ns(self) -> int | None: ...


class _Tracker(Protocol):
    @property
    def state(self) -> TrackerState: ...


class OpenWindows(Protocol):
    """What is needed of the pipeline."""

    @property
    def assembler(self) -> _Assembler:
        """Knows when the earliest open window ends."""

    @property
    def tracker(self) -> _Tracker:
        """Knows the tracks."""

    @property
    def rig(self) -> SensorRig:
        """Knows how large the picture is."""

    def decide_early(self, now_ns: int) -> Decision | None:
        """Decide the earliest open window now."""

    def preview(self, end_ns: int, now_ns: int, pictures: Iterable[UnitFeatures]) -> Decision:
        """Return what would be decided now, and change nothing."""


def _ignore(*_: object) -> None:
    """Do nothing with what is reported."""


@dataclass(frozen=True)
class Gating:
    """Which classifier answers, which rules hold, and what ends a rest.

    ``on_question`` is called with each question and a function that makes the decision it is
    about; ``on_early`` with each window decided early, its question and the confidence of the
    answer; ``on_audit`` after each audit with whether both decisions were equal.
    """

    asked: Asked
    control: SkipControl
    changes: SceneChangeParameters = field(default_factory=SceneChangeParameters)
    on_question: Callable[[Question, Callable[[], Decision]], None] = _ignore
    on_early: Callable[[Asking, Question, float], None] = _ignore
    on_audit: Callable[[bool], None] = _ignore


class GatedDecision:
    """Early decisions by a gate; leases come out of `take_skips` after each poll.

    :param high_score: detections from here on begin tracks
    :param window: length of a window, s
    """

    def __init__(self, gating: Gating, high_score: float, window: float) -> None:
        self.gating = gating
        self.control = gating.control
        self._scene = Scene(high_score, window)
        self._windows: OpenWindows | None = None
        self.reset()

    def attach(self, windows: OpenWindows) -> None:
        """Work with this pipeline from now on."""
        self._windows = windows

    def reset(self) -> None:
        """Forget windows, units and tracks."""
        self.control.reset()
        self._scene.reset()
        self._skips: list[SkipDecision] = []
        self._pictures: deque[UnitFeatures] = deque(maxlen=_MOST_PICTURES)
        self._basis: SceneChange | None = None
        self._shadow: Decision | None = None

    def unit_added(self, unit: UnitFeatures, now_ns: int) -> None:
        """Enter a unit that the pipeline took in."""
        if unit.modality == CAMERA:
            self._pictures.append(replace(unit, grid=_NO_GRID))
        if self.control.unit_arrived(unit, now_ns):
            self._scene.add(unit, self._of.tracker.state)
            self._end_rest_on_change(now_ns)

    def decide(self, now_ns: int) -> list[Decision]:
        """Decide every window the gate says yes to, in order."""
        decisions: list[Decision] = []
        while True:
            asking = self.control.asking(self._of.assembler.next_end_ns, now_ns)
            if asking is None:
                return decisions
            decision = self._ask(asking)
            if decision is None:
                return decisions
            decisions.append(decision)

    def window_decided(self, decision: Decision) -> Decision:
        """Finish with a window that was decided in full."""
        shadow, self._shadow = self._shadow, None
        if shadow is not None and shadow.window_end_ns == decision.window_end_ns:
            agreed = decisions_agree(shadow, decision, self._of.rig.picture_size)
            self.control.audited(agreed)
            self.gating.on_audit(agreed)
        self.control.window_decided(decision.window_end_ns)
        return self._with_rest(decision)

    def take_skips(self) -> Sequence[SkipDecision]:
        """Return the leases since the last call, in order; a later one replaces an earlier."""
        skips, self._skips = self._skips, []
        return skips

    @property
    def _of(self) -> OpenWindows:
        assert self._windows is not None  # the pipeline attaches itself
        return self._windows

    def _ask(self, asking: Asking) -> Decision | None:
        """Ask about a window; returns its decision if it is decided now."""
        state = self._of.tracker.state
        question = self._scene.question(asking, state)
        self.gating.on_question(question, lambda: self._preview(asking))
        confidence = self.gating.asked.confidence(question, asking.end_ns)
        ruling = self.control.rule(asking, confidence)
        if ruling.verdict is Verdict.SHADOW:
            self._shadow = self._preview(asking)
        if ruling.verdict is not Verdict.DECIDE:
            return None
        self.gating.on_early(asking, question, confidence)
        decided = self._of.decide_early(asking.now_ns)
        if decided is None:
            return None
        decision = self._with_rest(decided)
        self.control.window_decided(decision.window_end_ns)
        if ruling.skip is not None:
            self._skips.append(ruling.skip)
            self._basis = SceneChange.since(self.gating.changes, self._of.tracker.state)
        return decision

    def _preview(self, asking: Asking) -> Decision:
        return self._of.preview(asking.end_ns, asking.now_ns, self._pictures)

    def _with_rest(self, decision: Decision) -> Decision:
        """Mark modalities that were let rest: a source that pauses does not say so itself."""
        rested = self.control.rested(decision.window_end_ns)
        return replace(decision, skipped=tuple(sorted({*decision.skipped, *rested})))

    def _end_rest_on_change(self, now_ns: int) -> None:
        if self._basis is None or self.control.running(now_ns) is None:
            return
        if self._basis.is_in(self._of.tracker.state):
            resumed = self.control.resume(now_ns)
            if resumed is not None:
                self._skips.append(resumed)
            self._basis = None

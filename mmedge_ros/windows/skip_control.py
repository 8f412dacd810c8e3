"""When the gate is evaluated, what a confidence leads to, and how long a modality may rest.

Knows keys, times and confidences only. It reads no clock, and nothing waits for it: without
rulings every window closes as always.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mmedge_ros.core.data_types import NS_PER_S, SkipDecision, UnitFeatures
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.windows.audits import AuditParameters, AuditPlan, DriftMonitor
from mmedge_ros.windows.gate_features import OpenWindow
from mmedge_ros.windows.window_units import SlowModality, WindowUnits

_LOG = logging.getLogger(__name__)
_MOST_MODALITIES = 16
_MOST_LEASES = 1000


@dataclass(frozen=True)
class SkipParameters:
    """When a sensor may rest."""

    delta: float = parameter(
        0.01,
        'most that a flight may lose by skipping, of streaming IoU and of the people it keeps in '
        'view; a gate that is not certified for it is not used, and 0 switches skipping off',
        '',
        0.0,
        0.5,
    )
    # Share of the units of the slow sensor that a window must have before it may be decided early;
    # bounds what can be saved.
    sensed_share: float = 0.5
    # The forced refresh: no sensor rests longer than this (s).
    longest_lease: float = 0.5
    audits: AuditParameters = group(AuditParameters)


class Verdict(Enum):
    """What a confidence leads to."""

    WAIT = 'wait'
    DECIDE = 'decide'
    SHADOW = 'shadow'


class Ruling(NamedTuple):
    """A verdict; ``skip`` is the lease that goes with a decision, None where none is worth it.

    ``SHADOW``: an audited window would have been decided now; it is not, but compared later.
    """

    verdict: Verdict
    skip: SkipDecision | None = None


@dataclass(frozen=True)
class SkipStatus:
    """What is published of the gate. ``threshold`` is infinite while it is off."""

    slow: str
    threshold: float
    audit_loss: float
    audits: int
    evaluations: int
    early: int
    leases: int
    resumed: int
    is_off: bool


class _Lease(NamedTuple):
    modality: str
    from_ns: int
    until_ns: int


class SkipControl:
    """Evaluates the earliest undecided window only, and grants leases.

    :param threshold: the confidence from which on a window is decided early; above 1 never
    :param modalities: those the gate may let rest; () for any
    :param periods_ns: native distance of units, where it is known
    :param usual_loss: mean loss of early decisions that audits compare with, 0..1
    """

    def __init__(
        self,
        parameters: SkipParameters,
        threshold: float,
        window: float = 0.5,
        stride: float = 0.1,
        modalities: tuple[str, ...] = (),
        periods_ns: Mapping[str, int] | None = None,
        usual_loss: float = 0.05,
    ) -> None:
        self.parameters = parameters
        self._threshold = threshold
        self._window_ns, self._stride_ns = (round(s * NS_PER_S) for s in (window, stride))
        self._longest_ns = round(parameters.longest_lease * NS_PER_S)
        self._allowed = modalities
        self._periods_ns = dict(periods_ns or {})
        self._plan = AuditPlan(parameters.audits, self._stride_ns, self._window_ns)
        self.drift = DriftMonitor(parameters.audits.alarm, usual_loss)
        self._slow = SlowModality()
        self.evaluations = self.early = self.granted = self.resumed = 0
        self.reset()

    def reset(self) -> None:
        """Forget units, windows and leases; counts and audits go on."""
        self._slow.reset()
        self._units: dict[str, WindowUnits] = {}
        self._leases: deque[_Lease] = deque(maxlen=_MOST_LEASES)
        self._news = False
        self._shadowed: int | None = None

    @property
    def threshold(self) -> float:
        """The confidence that is needed now; infinite while the gate is off."""
        if self.parameters.delta <= 0.0 or self.drift.is_off or self._threshold >= 1.0:
            return math.inf
        return self._threshold

    @property
    def status(self) -> SkipStatus:
        """The state of the gate, to be published."""
        return SkipStatus(
            slow=self._slow.choose(),
            threshold=self.threshold,
            audit_loss=self.drift.loss,
            audits=self.drift.audits,
            evaluations=self.evaluations,
            early=self.early,
            leases=self.granted,
            resumed=self.resumed,
            is_off=self.drift.is_off,
        )

    def is_audited(self, end_ns: int) -> bool:
        """Whether the window that ends then is audited."""
        return self._plan.is_audited(end_ns)

    def unit_arrived(self, unit: UnitFeatures, now_ns: int) -> bool:
        """Enter an encoded unit that was taken in; returns False for one known already."""
        if unit.modality not in self._units:
            if len(self._units) >= _MOST_MODALITIES:
                return False
            period_ns = self._periods_ns.get(unit.modality)
            self._units[unit.modality] = WindowUnits(self._window_ns, period_ns)
        if not self._units[unit.modality].add(unit):
            return False
        self._slow.observe(unit, now_ns)
        self._news = True
        return True

    def window_decided(self, end_ns: int) -> None:
        """Enter that a window was decided, early or not; the next one may be evaluated."""
        self._news = True
        horizon_ns = end_ns - self._window_ns
        for units in self._units.values():
            units.forget(horizon_ns)
        while self._leases and self._leases[0].until_ns <= horizon_ns:
            self._leases.popleft()
        if self._shadowed is not None and self._shadowed <= end_ns:
            self._shadowed = None

    def audited(self, loss: float) -> None:
        """Enter what an audited window's would-be decision loses against the full one, 0..1."""
        if self.drift.observe(loss):
            _LOG.warning(
                'early decisions lose too much against full ones (%.0f points of IoU in the last '
                'audits): nothing is skipped any more; train or calibrate the gate for this scene',
                100.0 * self.drift.loss,
            )

    def open_window(self, end_ns: int | None, now_ns: int) -> OpenWindow | None:
        """Return the earliest undecided window if the gate is to be evaluated for it.

        This is at most once after each unit and each decision.
        """
        news, self._news = self._news, False
        if not news or end_ns is None or not math.isfinite(self.threshold):
            return None
        # A window that has ended, or whose end no lease could reach, is decided in full.
        if not now_ns < end_ns <= now_ns + self._longest_ns or self._shadowed == end_ns:
            return None
        slow = self._slow.choose()
        units = self._units.get(slow)
        if units is None or (self._allowed and slow not in self._allowed):
            return None
        sensed, expected = units.sensed(end_ns), units.expected()
        needed = max(math.ceil(self.parameters.sensed_share * expected), 1)
        if not expected or sensed < needed or not units.is_uniform(end_ns):
            return None
        self.evaluations += 1
        return OpenWindow(end_ns, now_ns, slow, sensed, expected, units.level)

    def rule(self, window: OpenWindow, confidence: float) -> Ruling:
        """Return what a confidence leads to; the caller must act on it at once."""
        # NaN is no confidence.
        if not confidence >= self.threshold:
            return Ruling(Verdict.WAIT)
        if self.is_audited(window.end_ns):
            self._shadowed = window.end_ns
            return Ruling(Verdict.SHADOW)
        self.early += 1
        return Ruling(Verdict.DECIDE, self._lease(window, confidence))

    def _lease(self, window: OpenWindow, confidence: float) -> SkipDecision | None:
        """Let the slow modality rest for the units of this window that no audit needs."""
        now_ns = window.now_ns
        until_ns = self._plan.free_until(now_ns, min(window.end_ns, now_ns + self._longest_ns))
        # Windows hold units by their reception, leases by their stamp.
        until_ns -= self._units[window.slow].delay_ns
        if until_ns <= now_ns:
            return None
        self.granted += 1
        self._leases.append(_Lease(window.slow, now_ns, until_ns))
        fraction = min(window.sensed / window.expected, 1.0)
        return SkipDecision(
            window.slow, now_ns, until_ns, window.end_ns, fraction, min(confidence, 1.0)
        )

    def running(self, now_ns: int) -> SkipDecision | None:
        """Return the lease that runs now."""
        for lease in reversed(self._leases):
            if lease.from_ns <= now_ns < lease.until_ns:
                return SkipDecision(lease.modality, lease.from_ns, lease.until_ns, lease.until_ns)
        return None

    def resume(self, now_ns: int) -> SkipDecision | None:
        """Take back the lease that runs now, because the scene has changed."""
        running = self.running(now_ns)
        if running is None:
            return None
        ended = [
            lease._replace(until_ns=min(lease.until_ns, max(now_ns, lease.from_ns)))
            for lease in self._leases
        ]
        self._leases = deque(ended, _MOST_LEASES)
        self.resumed += 1
        return SkipDecision(running.modality, now_ns, now_ns, running.window_end_ns)

    def rested(self, end_ns: int) -> tuple[str, ...]:
        """Return the modalities that were let rest during the window that ends then."""
        begin_ns = end_ns - self._window_ns
        rested = {
            lease.modality
            for lease in self._leases
            if lease.from_ns < min(lease.until_ns, end_ns) and lease.until_ns > begin_ns
        }
        return tuple(sorted(rested))

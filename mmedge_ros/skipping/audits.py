"""Audits: windows drawn beforehand in which nothing is skipped, and what they say of the gate."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from dataclasses import dataclass

_KEPT = 200
# What the cumulative sum takes for drift: this many times the usual loss, which is kept off 0
# and 1.
_DRIFTED = 3.0
_LEAST_USUAL, _MOST_USUAL = 1e-3, 0.9


@dataclass(frozen=True)
class AuditParameters:
    """How often the gate is checked in flight, and what follows."""

    # Share of windows that are audited: for the length of such a window nothing is skipped, so
    # 0.03 costs about a sixth of what skipping saves.
    share: float = 0.03
    # Which windows are drawn.
    seed: int = 0
    # How sure (logarithm of odds, 20 to 1) drift must be before the threshold is tightened; more
    # means fewer false alarms and a longer wait.
    alarm: float = 3.0
    # How far an alarm raises the threshold, in units of the logit.
    step: float = 1.0
    # Alarms after which the gate is switched off, and audits in a row without one that take a
    # step back.
    alarms: int = 3
    relief: int = 100


class AuditPlan:
    """Which windows are audited; known for all time, whatever happens before."""

    def __init__(self, parameters: AuditParameters, stride_ns: int, window_ns: int) -> None:
        self._parameters = parameters
        self._stride_ns = stride_ns
        self._window_ns = window_ns

    def is_audited(self, end_ns: int) -> bool:
        """Whether the window that ends then is audited."""
        p = self._parameters
        digest = hashlib.blake2b(f'{p.seed}/{end_ns}'.encode(), digest_size=8).digest()
        return int.from_bytes(digest, 'little') < p.share * 2.0**64

    def free_until(self, now_ns: int, until_ns: int) -> int:
        """Return the instant, at most ``until_ns``, up to which no audited window reaches.

        Units received after it may belong to one.
        """
        first_ns = (now_ns // self._stride_ns + 1) * self._stride_ns
        last_ns = until_ns + self._window_ns
        for end_ns in range(first_ns, last_ns + 1, self._stride_ns):
            if self.is_audited(end_ns):
                return min(until_ns, max(end_ns - self._window_ns, now_ns))
        return until_ns


class DriftMonitor:
    """Follows whether early decisions would lose no more against full ones than they used to.

    A cumulative sum of log-likelihood ratios (Page, 1954) between the usual mean loss and one
    three times as large. A loss between 0 and 1 counts for both, in these parts: whatever its
    distribution, false alarms are not more frequent than of one that is always 0 or 1.

    :param usual: mean loss of early decisions on the flights that certified the gate, 0..1
    """

    def __init__(self, parameters: AuditParameters, usual: float) -> None:
        self._parameters = parameters
        usual = min(max(usual, _LEAST_USUAL), _MOST_USUAL)
        drifted = min(_DRIFTED * usual, 0.5 + 0.5 * usual)
        self._lost = math.log(drifted / usual)
        self._kept = math.log((1.0 - drifted) / (1.0 - usual))
        self.reset()

    def reset(self) -> None:
        """Forget everything: the gate is as good as new."""
        self.audits = 0
        self.alarms = 0
        self._sum = 0.0
        self._quiet = 0
        self._recent: deque[float] = deque(maxlen=_KEPT)

    def observe(self, loss: float) -> bool:
        """Enter the loss of an audit, 0..1; returns whether it raises an alarm."""
        self.audits += 1
        self._recent.append(loss)
        evidence = loss * self._lost + (1.0 - loss) * self._kept
        self._sum = max(self._sum + evidence, 0.0)
        if self._sum >= self._parameters.alarm:
            self._sum, self._quiet = 0.0, 0
            self.alarms += 1
            return True
        self._quiet += 1
        if self._quiet >= self._parameters.relief and not self.is_off:
            self._quiet = 0
            self.alarms = max(self.alarms - 1, 0)
        return False

    @property
    def is_off(self) -> bool:
        """Whether the gate is so far off that it must not be used."""
        return self.alarms >= self._parameters.alarms

    @property
    def loss(self) -> float:
        """Mean loss of the last audits, NaN without any."""
        return sum(self._recent) / len(self._recent) if self._recent else math.nan

    def tightened(self, threshold: float) -> float:
        """Return the threshold after all alarms; 1 is never reached by a confidence."""
        if self.is_off or threshold >= 1.0:
            return math.inf
        logit = math.log(max(threshold, 1e-12) / (1.0 - threshold))
        return 1.0 / (1.0 + math.exp(-(logit + self.alarms * self._parameters.step)))

"""Audits: windows drawn beforehand in which nothing is skipped, and what they say of the gate."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from dataclasses import dataclass

# Audits whose mean loss is shown.
_KEPT = 200
# Drift is a loss so many times the usual one.
_DRIFTED = 3.0
# At a usual loss of 0 or 1 likelihood ratios are infinite.
_LEAST_USUAL, _MOST_USUAL = 1e-3, 0.9


@dataclass(frozen=True)
class AuditParameters:
    """How often the gate is checked in flight, and what follows."""

    # Share of windows that are audited: for the length of such a window nothing is skipped, so
    # 0.03 costs about a sixth of what skipping saves.
    share: float = 0.03
    # Of the draw.
    seed: int = 0
    # How sure (logarithm of odds, 400 to 1) drift must be before the gate is switched off; more
    # means fewer false alarms and a longer wait.
    alarm: float = 6.0


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
    distribution, false alarms are not more frequent than of one that is always 0 or 1. After an
    alarm the gate stays off: a person has to look at it.

    :param alarm: how sure it must be, see `AuditParameters`
    :param usual: mean loss of early decisions on the flights that certified the gate, 0..1
    """

    def __init__(self, alarm: float, usual: float) -> None:
        self._alarm = alarm
        usual = min(max(usual, _LEAST_USUAL), _MOST_USUAL)
        drifted = min(_DRIFTED * usual, 0.5 + 0.5 * usual)
        self._lost = math.log(drifted / usual)
        self._kept = math.log((1.0 - drifted) / (1.0 - usual))
        self._sum = 0.0
        self._recent: deque[float] = deque(maxlen=_KEPT)
        self.audits = 0
        self.is_off = False

    def observe(self, loss: float) -> bool:
        """Enter the loss of an audit, 0..1; returns whether it switches the gate off."""
        self.audits += 1
        self._recent.append(loss)
        evidence = loss * self._lost + (1.0 - loss) * self._kept
        self._sum = max(self._sum + evidence, 0.0)
        was_off, self.is_off = self.is_off, self.is_off or self._sum >= self._alarm
        return self.is_off and not was_off

    @property
    def loss(self) -> float:
        """Mean loss of the last audits, NaN without any."""
        return sum(self._recent) / len(self._recent) if self._recent else math.nan

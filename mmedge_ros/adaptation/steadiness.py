"""Whether a change that only gains accuracy is made now: what failed lately waits, ever longer.

Predictions wander more than machines do. A change that the latency limit or a cap forces is never
held back; one that is only worth more is made once that has been so for a while, and, where such
a change had soon to be undone, after a time that doubles each time. A machine that is clearly
faster than before starts anew.
"""

from __future__ import annotations

import math

# How long a change has to be worth more before it is made, s.
_LASTING = 0.25
# After a forced change unit times are learned anew for so long, s.
_CALM = 1.0
# A change that was undone within so long failed, s.
_TRIAL = 10.0
# On a machine that was released changes are made at once for so long, s.
_EAGER = 3.0
# How long after a failure the next one is made, and at most, s.
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 60.0


class Steadiness:
    """Instants are seconds on the monotonic clock."""

    def __init__(self) -> None:
        self._wanted_since = math.inf
        self._tried = -math.inf
        self._not_before = self._eager_until = -math.inf
        self._wait = _FIRST_WAIT

    def allows(self, now: float) -> bool:
        """Say whether a change that is worth more now, and forced by nothing, is made."""
        self._wanted_since = min(self._wanted_since, now)
        lasting = 0.0 if now < self._eager_until else _LASTING
        return now >= self._not_before and now - self._wanted_since >= lasting

    def content(self) -> None:
        """Note that no change is worth more."""
        self._wanted_since = math.inf

    def changed(self, forced: bool, now: float) -> None:
        """Note that the configuration changes."""
        self._wanted_since = math.inf
        if not forced:
            if _TRIAL < now - self._tried < math.inf:
                self._wait = max(0.5 * self._wait, _FIRST_WAIT)
            self._tried = now
            return
        wait = _CALM
        if now - self._tried <= _TRIAL:
            self._tried = -math.inf
            wait, self._wait = self._wait, min(2.0 * self._wait, _LONGEST_WAIT)
        self._not_before = max(self._not_before, now + wait)

    def forget(self, now: float) -> None:
        """Start anew: what failed before says nothing of the machine as it is."""
        self._not_before = -math.inf
        self._eager_until = now + _EAGER
        self._wait = _FIRST_WAIT

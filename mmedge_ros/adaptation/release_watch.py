"""Notices that the machine is clearly faster, or freer, than it was under the present load.

What failed on the slow machine may then be tried at once. Less load alone makes units faster too,
so only what happens while the configuration stays counts, and it has to last a moment.
"""

from __future__ import annotations

import math

# After a change of the configuration so long passes until what is seen is that of the new one, s.
_SETTLING = 1.0
# All work in so much less time, or a load of the processors lower by so much: another machine.
_FASTER, _FREER = 0.8, 0.25
# Less load alone does not make it so much faster.
_MUCH_FASTER = 0.5
# No machine gets twenty times faster: then unit times are those of other work.
_TOO_FAST = 0.05
# How long it has to last, s: longer after each time, and as at first after so long without one.
_LASTING, _LONGEST, _FORGOTTEN = 0.3, 10.0, 30.0
# How fast what is usual follows a machine that gets slower, s.
_FOLLOWS = 1.0


class ReleaseWatch:
    """Instants are seconds on the monotonic clock."""

    def __init__(self) -> None:
        self._configured = self._seen = -math.inf
        self._slowness = self._load = math.nan
        self._since, self._worst = math.inf, math.nan
        self._lasting, self._released = _LASTING, -math.inf

    def configured(self, now: float) -> None:
        """Note that another configuration holds: what was usual is so no more.

        Where the machine was faster already under the one before, that goes on to count.
        """
        if math.isfinite(self._since):
            return
        self._configured = now
        self._slowness = self._load = math.nan

    def update(self, slowness: float, load: float, now: float) -> bool:
        """Return whether it was released now.

        :param slowness: how many times as long as usual all work takes
        :param load: 0..1, of the processors, by whatever runs there; NaN where unknown
        """
        elapsed, self._seen = min(now - self._seen, _FOLLOWS), now
        share = max(elapsed, 0.0) / _FOLLOWS
        self._worst = _followed(self._worst, slowness, share)
        is_settled = now - self._configured >= _SETTLING
        is_faster = is_settled and slowness < _FASTER * self._slowness
        is_freer = is_settled and load < self._load - _FREER
        is_much_faster = _TOO_FAST * self._worst < slowness < _MUCH_FASTER * self._worst
        if not (is_faster or is_freer or is_much_faster):
            self._since = math.inf
            if not is_settled:
                return False
            self._slowness = _followed(self._slowness, slowness, share)
            self._load = _followed(self._load, load, share)
            return False
        self._since = min(self._since, now)
        if now - self._released > _FORGOTTEN:
            self._lasting = _LASTING
        if now - self._since < self._lasting:
            return False
        self._released, self._since, self._worst = now, math.inf, slowness
        self._lasting = min(2.0 * self._lasting, _LONGEST)
        self.configured(now)
        return True


def _followed(usual: float, seen: float, share: float) -> float:
    """Return what is usual: more at once where nothing was, by and by where something was."""
    if math.isnan(usual) or math.isnan(seen):
        return seen if math.isnan(usual) else usual
    return max(usual + share * (seen - usual), usual)

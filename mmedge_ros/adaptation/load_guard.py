"""How much work the machine keeps up with, learned from late decisions.

A latency model treats encoders one by one. They share processors with one another and with
fusion, so that on a starved machine it can promise a limit that nothing keeps. Late decisions
therefore bound the load of configurations, and while all decisions are in time the bound rises
again, slower after each failure.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class LoadGuardParameters:
    """When late decisions bound the load, and how the bound rises again."""

    # The newest decisions that count together, and the share of them that may be late.
    decisions: int = 10
    tolerated: float = 0.1
    # Decisions do not count for so long (s) after a change: they are made of units from before,
    # and queues empty.
    settling: float = 0.6
    # Share of a load that was too much that is allowed next.
    reduction: float = 0.8
    # For so long (s) after a late decision that unit times do not explain no greater load is
    # chosen: predictions wander more than the machine does. After a start it ends with the first
    # ``decisions`` in a row that are in time.
    calm: float = 3.0
    # The next configuration may have at most so many times the present load, because levels that
    # were not measured for long are predicted badly. After each ``decisions`` in a row that are in
    # time the limit grows by this factor, because none of the nearest loads may be worth more. The
    # next greater load is always allowed.
    climb: float = 1.6
    # Share by which the bound rises per second once it may.
    growth: float = 0.1
    # The bound stays so long (s) after a failure; twice as long after each further one at a load
    # like it, up to ``longest_patience``.
    patience: float = 15.0
    longest_patience: float = 120.0


# After so many late decisions a change to less means that the load was too much.
_ENOUGH_LATE = 2
# On another machine loads are climbed at once for so long, s.
_FREE = 3.0
# The limit on a climb grows so often at most; a power without a bound overflows.
_MOST_CLIMBS = 16
# Loads that differ by less are the same.
_MORE = 1.001


class LoadGuard:
    """The load that is allowed, from decisions and the load they were made under.

    Loads are busy seconds per second, or any other measure that grows with the work.
    Instants are seconds on one monotonic clock.
    """

    def __init__(self, parameters: LoadGuardParameters | None = None) -> None:
        self.parameters = parameters or LoadGuardParameters()
        self._bound = math.inf
        self._load = math.nan
        self._changed = self._calm_from = -math.inf
        self._late: deque[bool] = deque(maxlen=self.parameters.decisions)
        # Late decisions since the last change, those included that are too early to count.
        self._late_here = 0
        # Decisions in time in a row, and whether there ever were enough of them.
        self._in_time, self._proven = 0, False
        # Whether it kept up with the present load for a while.
        self._kept_up = False
        self._patience = self.parameters.patience
        self._rises_at = -math.inf
        # The load that failed last, and the largest that did.
        self._failed_load, self._most_failed = math.inf, math.inf
        self._seen = self._free_until = -math.inf

    @property
    def bound(self) -> float:
        """The largest load that is allowed; infinite until decisions were late."""
        return self._bound

    def allowed(self, now: float) -> float:
        """Return the largest allowed load; until calm, the present one."""
        left = self._calm_from - now
        if self._load > 0.0 and 0.0 < left <= self.parameters.calm:
            return min(self._bound, self._load)
        return self._bound

    def within(self, loads: FloatArray, now: float) -> BoolArray:
        """Return which of some loads (size,) are allowed; the least always is."""
        ceiling = self.allowed(now)
        above = loads[loads > _MORE * self._load]
        if now >= self._free_until and len(above) and ceiling > self._load:
            p = self.parameters
            climb = p.climb ** min(1 + self._in_time // p.decisions, _MOST_CLIMBS)
            ceiling = min(ceiling, max(climb * self._load, float(above.min())))
        return loads <= max(ceiling, float(loads.min()))

    def configured(self, load: float, now: float, explained: bool = False) -> None:
        """Note the load of the configuration that holds from now on.

        :param explained: whether unit times alone say that the one before is too slow; where it
            once kept up, that is a machine that got slower, and no failure of the load
        """
        if load < self._load:
            failed = self._late_here >= _ENOUGH_LATE and not (explained and self._kept_up)
            if self._load > 0.0 and failed:
                # It was left before it counted, and would be chosen again and again.
                self._fail(now)
        self._load = load
        self._changed = now
        self._late.clear()
        self._late_here = self._in_time = 0
        self._kept_up = False

    def lift(self, now: float) -> None:
        """Forget what failed: it was another machine, which may be asked for all at once."""
        self._free_until = now + _FREE
        self._bound = math.inf
        self._failed_load = self._most_failed = math.inf
        self._calm_from = -math.inf
        self._patience = self.parameters.patience
        self._late.clear()
        self._late_here = 0

    def decided(self, late: bool, now: float, explained: bool = False) -> None:
        """Take in a decision that was made in time or late.

        :param explained: whether unit times say that it had to be late: of a load that it once
            kept up with that is no news, and bounds nothing
        """
        if late and explained and self._kept_up:
            return
        p = self.parameters
        if late:
            self._calm_from = now + p.calm
            self._late_here += 1
        self._in_time = 0 if late else self._in_time + 1
        self._kept_up |= self._in_time >= self.parameters.decisions
        if not self._proven and self._in_time >= p.decisions:
            # What came late until now did so before anything had been measured.
            self._proven = True
            self._calm_from = -math.inf
        if now < self._changed + p.settling or not self._load > 0.0:
            return
        self._rise(now)
        self._late.append(late)
        most = p.tolerated * p.decisions
        if sum(self._late) - _is_one_alone(self._late) > most:
            self._fail(now)
        elif len(self._late) == p.decisions and self._load >= self._most_failed:
            # It keeps up by now with what was once too much: nothing is known any more.
            self._failed_load = self._most_failed = math.inf
            self._patience = p.patience

    def _fail(self, now: float) -> None:
        p = self.parameters
        if self._load >= p.reduction * self._failed_load:
            self._patience = min(2.0 * self._patience, p.longest_patience)
        self._failed_load = self._load
        if math.isinf(self._most_failed) or self._load > self._most_failed:
            self._most_failed = self._load
        self._bound = min(self._bound, p.reduction * self._load)
        self._rises_at = now + self._patience
        # The count starts anew: most of these decisions waited for one that was late.
        self._late.clear()
        self._late_here = 0
        self._changed = now

    def _rise(self, now: float) -> None:
        """Let the bound grow while decisions come in time; without any it stays."""
        elapsed = min(now - self._seen, 1.0)
        self._seen = now
        if now < self._rises_at or math.isinf(self._bound) or elapsed <= 0.0:
            return
        if any(self._late):
            return
        # Far above what is in use the bound would mean nothing.
        self._bound = min(self._bound * (1.0 + self.parameters.growth * elapsed), 4.0 * self._load)


def _is_one_alone(late: Sequence[bool]) -> bool:
    """Return whether a late decision has only others in time beside it: an outlier, left out."""
    padded = [False, *late, False]
    return any(
        here and not (before or after)
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )

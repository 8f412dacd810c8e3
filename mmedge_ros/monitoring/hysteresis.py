"""Grades a value as good, worrying or bad, without flickering at the limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad a state is; the values are those of diagnostic_msgs/DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True)
class Limits:
    """When a value is worrying and bad; NaN for never.

    ``below``: whether small values are bad. ``rise`` is how long (s) a value must be beyond a
    limit before it counts. To be better again it must stay for ``release`` s on the good side
    of the limit by ``margin``, a share of the limit.
    """

    warning: float
    error: float = math.nan
    below: bool = False
    rise: float = 0.0
    margin: float = 0.0
    release: float = 0.0

    def grade(self, value: float, margin: float = 0.0) -> Level:
        """Grade a value as it is, with limits moved by a share of themselves to the good side."""
        sign = -1.0 if self.below else 1.0
        for level, limit in ((Level.ERROR, self.error), (Level.WARN, self.warning)):
            moved = limit - sign * margin * abs(limit)
            if sign * value > sign * moved:
                return level
        return Level.OK


class Hysteresis:
    """The level of one value over time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._worse_since: float | None = None
        self._better_since: float | None = None
        self.level = Level.OK

    def update(self, value: float, now: float) -> Level:
        """Take a value at ``now`` (s, monotonic); one that is unknown starts all over."""
        limits = self._limits
        if math.isnan(value):
            self.level, self._worse_since, self._better_since = Level.OK, None, None
            return self.level
        worse, better = limits.grade(value), limits.grade(value, limits.margin)
        if worse > self.level:
            self._worse_since = now if self._worse_since is None else self._worse_since
            self._better_since = None
            if now - self._worse_since >= limits.rise:
                self.level, self._worse_since = worse, None
        elif better < self.level:
            self._better_since = now if self._better_since is None else self._better_since
            self._worse_since = None
            if now - self._better_since >= limits.release:
                # One step at a time: how long it was good enough for two is not known.
                self.level, self._better_since = Level(self.level - 1), now
        else:
            self._worse_since = self._better_since = None
        return self.level

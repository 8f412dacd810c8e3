"""The guard of changes: what the machine keeps up with, and when a gain is worth a change.

A latency model treats encoders one by one. They share processors with one another and with
fusion, so that on a starved machine it can promise a limit that nothing keeps; and predictions
wander more than machines do. So late decisions that unit times do not explain bound the load of
what may be chosen. A change that nothing forces is made once it has been worth more for a while,
and after a failure later and later. A machine that is clearly faster starts anew.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# The newest decisions that count together. Two of them that are late are a failure, a single one
# is an outlier.
_DECISIONS = 10
# Decisions do not count for so long (s) after a change: they are made of units from before, and
# queues empty.
_SETTLING = 0.6
# Share of a load that was too much that is allowed next, and how the bound grows with every
# decision in time once the wait is over; beyond so many times the present load it means nothing.
_REDUCTION, _GROWTH, _FAR = 0.8, 1.01, 4.0
# How long a change has to be worth more before it is made (s), and how long none is made after a
# late decision and after a forced change, which unit times are learned anew from.
_LASTING, _CALM, _LEARNING = 0.25, 3.0, 1.0
# A change that had to be undone within so long failed (s). After a failure so long passes until
# the next one (s), and after each further one twice as long.
_TRIAL, _FIRST_WAIT, _LONGEST_WAIT = 10.0, 5.0, 60.0
# All work in so much less time: another machine. Less load alone makes work faster too: so soon
# (s) after a change it has to be much more. No machine gets twenty times faster.
_FASTER, _MUCH_FASTER, _TOO_FAST, _SETTLED = 0.8, 0.5, 0.05, 1.0
# How long it has to last (s): longer after each time, and as at first after so long without one.
_MOMENT, _LONGEST_MOMENT, _FORGOTTEN = 0.3, 10.0, 30.0
# How fast what is usual follows a machine that gets slower; how long changes are made at once on
# one that was released (s).
_FOLLOWS, _EAGER = 1.0, 3.0


class ChangeGuard:
    """What may be chosen, by decisions and the load they were made under.

    Loads are busy seconds per second, or any other measure that grows with the work. Instants
    are seconds on one monotonic clock.

    :ivar bound: the largest load that is allowed; infinite until decisions were late
    """

    def __init__(self) -> None:
        self.bound = math.inf
        self._load, self._changed = math.nan, -math.inf
        self._late: deque[bool] = deque(maxlen=_DECISIONS)
        # Decisions in time in a row, and whether it kept up with the present load for a while.
        self._in_time, self._kept_up = 0, False
        self._wait, self._not_before, self._eager_until = _FIRST_WAIT, -math.inf, -math.inf
        # Since when another configuration is worth more, and when one was tried for that.
        self._wanted_since, self._tried = math.inf, -math.inf
        # How long work takes on this machine, and since when it takes less.
        self._usual, self._seen, self._learns = math.nan, -math.inf, True
        self._faster_since, self._moment, self._released = math.inf, _MOMENT, -math.inf

    def within(self, loads: FloatArray) -> BoolArray:
        """Return which of some loads (size,) are allowed; the least always is."""
        return loads <= max(self.bound, float(loads.min()))

    def decided(self, late: bool, now: float, explained: bool = False) -> None:
        """Take in a decision that was made in time or late.

        :param explained: whether unit times say that it had to be late: of a load that it once
            kept up with that is no news, and bounds nothing
        """
        if late and explained and self._kept_up:
            return
        self._in_time = 0 if late else self._in_time + 1
        self._kept_up |= self._in_time >= _DECISIONS
        if late:
            self._not_before = max(self._not_before, now + _CALM)
        elif now >= self._not_before:
            self.bound *= _GROWTH
            if self.bound > _FAR * self._load:
                self.bound = math.inf
        if now < self._changed + _SETTLING or not self._load > 0.0:
            return
        self._late.append(late)
        if sum(self._late) - _is_one_alone(self._late) > 1:
            self.bound = min(self.bound, _REDUCTION * self._load)
            self._fail(now)
            # The count starts anew: most of these decisions waited for one that was late.
            self._late.clear()
            self._changed = now

    def allows(self, now: float) -> bool:
        """Say whether a change that is worth more now, and forced by nothing, is made."""
        self._wanted_since = min(self._wanted_since, now)
        lasting = 0.0 if now < self._eager_until else _LASTING
        return now >= self._not_before and now - self._wanted_since >= lasting

    def content(self) -> None:
        """Note that no change is worth more."""
        self._wanted_since = math.inf

    def changed(self, load: float, forced: bool, now: float) -> None:
        """Note the load of the configuration that holds from now on."""
        if not forced:
            if _TRIAL < now - self._tried < math.inf:
                self._wait = max(0.5 * self._wait, _FIRST_WAIT)
            self._tried = now
        elif now - self._tried <= _TRIAL:
            self._tried = -math.inf
            self._fail(now)
        else:
            self._not_before = max(self._not_before, now + _LEARNING)
        self._wanted_since = math.inf
        self._load, self._changed = load, now
        self._late.clear()
        self._in_time, self._kept_up = 0, False
        self._learns = math.isinf(self._faster_since)

    def watch(self, slowness: float, now: float) -> None:
        """Notice a machine that is clearly faster: what failed before says nothing of it.

        :param slowness: how many times as long as in the profile all work takes
        """
        elapsed, self._seen = min(max(now - self._seen, 0.0), _FOLLOWS), now
        is_settled = now - self._changed >= _SETTLED
        if is_settled and self._learns:
            self._usual, self._learns = slowness, False
        least = (_FASTER if is_settled else _MUCH_FASTER) * self._usual
        if not _TOO_FAST * self._usual < slowness < least:
            self._faster_since = math.inf
            if math.isnan(self._usual):
                self._usual = slowness
            self._usual += max(slowness - self._usual, 0.0) * elapsed / _FOLLOWS
            return
        self._faster_since = min(self._faster_since, now)
        if now - self._released > _FORGOTTEN:
            self._moment = _MOMENT
        if now - self._faster_since >= self._moment:
            self._released, self._faster_since, self._usual = now, math.inf, slowness
            self._moment = min(2.0 * self._moment, _LONGEST_MOMENT)
            self._start_anew(now)

    def _start_anew(self, now: float) -> None:
        self.bound, self._not_before = math.inf, -math.inf
        self._wait, self._eager_until = _FIRST_WAIT, now + _EAGER
        self._late.clear()

    def _fail(self, now: float) -> None:
        self._not_before = max(self._not_before, now + self._wait)
        self._wait = min(2.0 * self._wait, _LONGEST_WAIT)


def _is_one_alone(late: Sequence[bool]) -> bool:
    """Return whether a late decision has only others in time beside it: an outlier, left out."""
    padded = [False, *late, False]
    return any(
        here and not (before or after)
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )

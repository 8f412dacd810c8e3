"""Lets through as many units as a rate allows, spread evenly.

A rate is an upper bound. Slots of a global grid of integer nanoseconds, [k P, (k + 1) P) with
P = 1 / rate, take one unit each: the one nearest the slot's centre; where it is known how long
units are under way, the last one that arrives before the slot ends; or the first one. The grid is
global so that two sensors at the same rate stay in step, their slots end with windows, and a
replay decides as the flight did.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing import SensingError

# From this share of the native rate on every unit passes: nominal and true rates of sensors
# differ by some percent, and dropping one unit in twenty gains nothing.
PASS_ALL_FROM = 0.9
# A step back this long is a new recording or a set clock, not units out of order.
_JUMP_NS = NS_PER_S
# Hz; once in thirty years, so that no period overflows.
_SLOWEST = 1e-9
_MEMORY = 32
# Cameras run at multiples of this, Hz.
_RATE_STEP = 5
_ENOUGH = 5
# Delays are rounded up, so that a replay has those of the flight, and stamps jitter.
_DELAY_STEP_NS = NS_PER_S // 200


def native_period_ns(stamps_ns: Iterable[int]) -> int | None:
    """Return the period of a stream from its stamps: the median of their forward steps.

    Bursts, duplicates, gaps and steps back do not disturb it while they are the minority.
    None if there is no forward step at all.
    """
    steps = [b - a for a, b in pairwise(stamps_ns) if b > a]
    return int(median_low(steps)) if steps else None


def nominal_rate(period_ns: int | None) -> float:
    """Return the rate (Hz) that a camera of this period is named by; inf if it is not known yet.

    A grid of slots must not move with each stamp's jitter, as it would with the measured rate.
    """
    if period_ns is None:
        return math.inf
    return max(_RATE_STEP * round(NS_PER_S / period_ns / _RATE_STEP), _RATE_STEP)


def lead_ns(delays_ns: Sequence[int]) -> int:
    """Return how long before the end of its slot a unit must be measured to arrive by then.

    :param delays_ns: from measurement to arrival, of the last units; the longest is an outlier
    """
    usual_ns = sorted(delays_ns)[-2:][0]
    return (-(-usual_ns // _DELAY_STEP_NS) + 1) * _DELAY_STEP_NS


def earliest_phase_ns(period_ns: int, native_ns: int, lead: int | None) -> int:
    """Return how far into its slot a unit must lie to be taken if it is the first that does."""
    latest_ns = period_ns - native_ns
    centre_ns = -(-latest_ns // 2)
    return centre_ns if lead is None else max(latest_ns - max(lead, 0), centre_ns)


class RateControl:
    """Decides unit by unit, without looking ahead.

    The unit nearest a slot's centre is the first one that comes no earlier than half a native
    period before it, because the next one would be farther away; the last one of a slot the first
    that comes less than a native period before its end. With ``takes_first`` it is the first one
    of all. With ``native_period_ns`` None the period is the running median of what arrives, and
    all units pass until it is known. With it given, the decision depends on the stamps alone.
    """

    def __init__(self, native_period_ns: int | None = None, *, takes_first: bool = False) -> None:
        if native_period_ns is not None and native_period_ns <= 0:
            raise SensingError(f'native period is {native_period_ns} ns; it must be positive')
        self._given_ns = native_period_ns
        self._takes_first = takes_first
        self.reset()

    def reset(self) -> None:
        """Forget the stream, but not a native period that was given."""
        self._recent: deque[int] = deque(maxlen=_MEMORY)
        self._found_ns: int | None = None
        self._admitted_ns: int | None = None

    @property
    def period_ns(self) -> int | None:
        """The native period in nanoseconds, None while it is not known yet."""
        if self._given_ns is not None:
            return self._given_ns
        return self._found_ns

    def admits(self, stamp_ns: int, rate: float, lead: int | None = None) -> bool:
        """Say whether the unit passes at ``rate`` (Hz; 0, negative or NaN = native).

        :param lead: of `lead_ns`; None for the unit nearest the centre of its slot

        A unit without a stamp (0 or less) has no place on the grid and passes only where all
        do. After a step back of more than a second everything begins anew.
        """
        self._observe(stamp_ns)
        native_ns = self.period_ns
        if not rate > 0 or native_ns is None or rate * native_ns >= PASS_ALL_FROM * NS_PER_S:
            admitted = True
        else:
            admitted = stamp_ns > 0 and self._takes(stamp_ns, rate, native_ns, lead)
        if admitted and stamp_ns > 0:
            self._admitted_ns = max(stamp_ns, self._admitted_ns or 0)
        return admitted

    def _takes(self, stamp_ns: int, rate: float, native_ns: int, lead: int | None) -> bool:
        period_ns = round(NS_PER_S / max(rate, _SLOWEST))
        slot, phase_ns = divmod(stamp_ns, period_ns)
        served = self._admitted_ns is not None and self._admitted_ns // period_ns >= slot
        if served or self._takes_first:
            return not served
        return phase_ns >= earliest_phase_ns(period_ns, native_ns, lead)

    def _observe(self, stamp_ns: int) -> None:
        if stamp_ns <= 0:
            return
        newest_ns = max(self._admitted_ns or 0, self._recent[-1] if self._recent else 0)
        if stamp_ns < newest_ns - _JUMP_NS:
            self.reset()
        self._recent.append(stamp_ns)
        if self._given_ns is None and len(self._recent) > _ENOUGH:
            self._found_ns = native_period_ns(self._recent)

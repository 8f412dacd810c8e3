"""Which units a source hands over: the configured rate, skip leases, and a bounded queue.

A driver that can pause uses the control at capture; an encoder uses it again for sources that
cannot.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from enum import Enum
from typing import Generic, TypeVar

from mmedge_ros.core.data_types import (
    LONGEST_STANDBY,
    NS_PER_S,
    RATE_AFTER_STANDBY,
    STANDBY,
    Configuration,
    SkipDecision,
)
from mmedge_ros.sensing.rate_control import RateControl, lead_ns

_KEPT_CONFIGURATIONS = 8
# A step back this long is a clock that was set, not units out of order.
_JUMP_NS = NS_PER_S
# Delays (ns) that are believed, and of how many units they are known.
_LONGEST_DELAY_NS, _MOST_DELAYS, _LEAST_DELAYS = NS_PER_S // 2, 32, 6
_LONGEST_STANDBY_NS = round(LONGEST_STANDBY * NS_PER_S)


class Admission(Enum):
    """Verdict on one unit."""

    TAKE = 'take'
    THINNED = 'thinned'
    SKIPPED = 'skipped'


class ConfigurationSchedule:
    """Configurations by the stamp they take effect from; the last ones that came are kept."""

    def __init__(self, initial: Configuration | None = None) -> None:
        self._known = [initial or Configuration()]

    def add(self, configuration: Configuration) -> None:
        """Enter a configuration; one with a known id replaces the earlier text of it."""
        kept = [c for c in self._known if c.id != configuration.id]
        self._known = [*kept, configuration][-_KEPT_CONFIGURATIONS:]

    def at(self, stamp_ns: int) -> Configuration:
        """Return the configuration a unit of this stamp falls under."""
        begun = [c for c in self._known if c.effective_from_ns <= stamp_ns]
        if begun:
            return max(begun, key=lambda c: (c.effective_from_ns, c.id))
        return min(self._known, key=lambda c: (c.effective_from_ns, c.id))

    def start_over(self, stamp_ns: int) -> None:
        """Keep what holds at a stamp, from now on: the clock was set back after it."""
        self._known = [replace(self.at(stamp_ns), effective_from_ns=0)]


class CaptureControl:
    """Admission of one modality's units, decided by their stamps alone.

    :param longest_lease: the forced refresh: longest time without a unit, in seconds, whatever
        leases and rates say; only a sensor that stands by rests longer
    """

    def __init__(
        self,
        modality: str,
        native_period_ns: int | None = None,
        longest_lease: float = 0.5,
    ) -> None:
        self.modality = modality
        self.schedule = ConfigurationSchedule()
        self._rate_control = RateControl(native_period_ns)
        self._longest_lease_ns = round(longest_lease * NS_PER_S)
        # However low a rate is, a unit is taken as often as under leases.
        self._lowest_rate = 1.0 / longest_lease
        self._delays_ns: deque[int] = deque(maxlen=_MOST_DELAYS)
        self._newest_ns = 0
        self._lease = (0, 0)
        self._first_skipped_ns: int | None = None

    def lease(self, skip: SkipDecision) -> None:
        """Accept a skip lease; one longer than the forced refresh is cut to it.

        However many leases follow each other, one unit is taken when the refresh is due: a
        message that is lost or wrong, or a source of leases gone wild, cannot blind the sensor.
        """
        if skip.modality != self.modality:
            return
        end_ns = min(skip.skip_until_ns, skip.issued_ns + self._longest_lease_ns)
        self._lease = (skip.issued_ns, end_ns)

    def admit(self, stamp_ns: int, available_ns: int | None = None) -> Admission:
        """Judge the unit measured at ``stamp_ns``.

        :param available_ns: when it arrived; where that is known, of the units that a rate leaves
            those are taken that arrive just before windows end
        """
        if available_ns is not None and 0 <= available_ns - stamp_ns <= _LONGEST_DELAY_NS:
            self._delays_ns.append(available_ns - stamp_ns)
        if stamp_ns < self._newest_ns - _JUMP_NS:
            self.schedule.start_over(self._newest_ns)
            self._newest_ns = 0
        self._newest_ns = max(self._newest_ns, stamp_ns)
        configuration = self.schedule.at(stamp_ns)
        rate = configuration.of(self.modality).rate
        if rate == STANDBY:
            if 0 <= stamp_ns - configuration.effective_from_ns < _LONGEST_STANDBY_NS:
                return Admission.THINNED
            rate = RATE_AFTER_STANDBY
        if rate > 0.0:
            rate = max(rate, self._lowest_rate)
        known = len(self._delays_ns) >= _LEAST_DELAYS
        lead = lead_ns(self._delays_ns) if rate > 0.0 and known else None
        if not self._rate_control.admits(stamp_ns, rate, lead):
            return Admission.THINNED
        return Admission.SKIPPED if self._skips(stamp_ns) else Admission.TAKE

    def _skips(self, stamp_ns: int) -> bool:
        """Whether the lease covers a unit and the forced refresh is not due yet."""
        begin_ns, end_ns = self._lease
        if not begin_ns <= stamp_ns < end_ns:
            self._first_skipped_ns = None
            return False
        if self._first_skipped_ns is None:
            self._first_skipped_ns = stamp_ns
        if 0 <= stamp_ns - self._first_skipped_ns < self._longest_lease_ns:
            return True
        self._first_skipped_ns = None
        return False


_T = TypeVar('_T')


class LatestQueue(Generic[_T]):
    """Keeps the newest items; when it is full the oldest is dropped and counted."""

    def __init__(self, length: int) -> None:
        self.dropped = 0
        self._items: deque[_T] = deque()
        self._length = length
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: _T) -> None:
        with self._changed:
            if len(self._items) >= self._length:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify()

    def take(self, timeout: float) -> _T | None:
        """Return the oldest item; None if none comes within ``timeout`` s, or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout)
            return self._items.popleft() if self._items else None

    def close(self) -> None:
        """Wake up a waiting `take`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

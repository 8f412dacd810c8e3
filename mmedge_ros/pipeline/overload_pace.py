"""The rate that an overloaded encoder can keep up with, found while it works."""

from __future__ import annotations

from collections import deque

from mmedge_ros.core.data_types import NS_PER_S

# An encoder is overloaded when units gave way to newer ones before so many of the last units that
# it began, so that one stall is none. Once units are spread it is when so many came too early.
_MEMORY = 6
_GAVE_WAY, _EARLY = 3, 2
# Of what was encoded the rate begins at the first share, is the second after a while and rises by
# a cubic law: it stays long where units fit, and rises fast when the processor is free again. Less
# than fits is more: where processor time is limited an encoder that always has work gets none in
# advance, and its units grow old. When units came too early again the while is longer.
_FIRST, _FITS, _WHILE, _LONGER_WHILE = 0.65, 0.78, 3.0, 6.0
# All units pass again when so many have in a row.
_ALL_PASS = 30
# A step back this long is a clock that was set.
_JUMP_NS = NS_PER_S


class OverloadPace:
    """Spreads units evenly while an encoder cannot keep up with all; its only clock is stamps.

    Where units give way again and again, the rate is set to less than what was encoded, and rises
    until all units pass or some have to wait again.
    """

    def __init__(self) -> None:
        self._newest_ns = 0
        self._begin()

    def _begin(self) -> None:
        self._encoded_hz = self._credit = 0.0
        self._set_ns, self._while = self._newest_ns, _WHILE
        self._passed = 0
        self._behind = False
        # When the encoder began its last units, and whether it was behind.
        self._begun: deque[tuple[int, bool]] = deque(maxlen=_MEMORY)

    @property
    def rate(self) -> float:
        """The highest rate of units in Hz, 0 for any."""
        since = (self._newest_ns - self._set_ns) / NS_PER_S
        return self._encoded_hz * (_FITS + (_FITS - _FIRST) * (since / self._while - 1.0) ** 3)

    def admits(self, stamp_ns: int) -> bool:
        """Say whether the unit of this stamp is to be encoded."""
        elapsed_ns = stamp_ns - self._newest_ns
        if elapsed_ns < -_JUMP_NS:
            self._newest_ns = stamp_ns
            self._begin()
        self._newest_ns = max(stamp_ns, self._newest_ns)
        if not self._encoded_hz:
            return True
        elapsed = min(max(elapsed_ns, 0), NS_PER_S) / NS_PER_S
        # Half a unit more than one: a pause is no reason for two at once.
        self._credit = min(self._credit + elapsed * self.rate, 1.5)
        if self._credit < 1.0:
            self._passed = 0
            return False
        self._credit -= 1.0
        self._passed += 1
        if self._passed >= _ALL_PASS:
            self._begin()
        return True

    def waits(self, gave_way: int) -> None:
        """Note that the encoder is busy when a unit comes, and how many give way to that unit."""
        self._behind |= bool(self._encoded_hz) or gave_way > 0

    def begins(self) -> None:
        """Note that the encoder begins a unit."""
        self._begun.append((self._newest_ns, self._behind))
        self._behind = False
        behind = sum(was_behind for _, was_behind in self._begun)
        span_ns = self._newest_ns - self._begun[0][0]
        if behind >= (_EARLY if self._encoded_hz else _GAVE_WAY) and span_ns > 0:
            encoded_hz = (len(self._begun) - 1) * NS_PER_S / span_ns
            again = self._encoded_hz > 0.0
            self._begin()
            self._encoded_hz = encoded_hz
            self._while = _LONGER_WHILE if again else _WHILE

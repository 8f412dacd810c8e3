"""A clock for tests."""

from __future__ import annotations


class VirtualClock:
    """A clock that moves only on command."""

    def __init__(self, now_ns: int = 0) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns

    def monotonic_ns(self) -> int:
        return self._now_ns

    def advance_to(self, now_ns: int) -> None:
        """Move to ``now_ns``; an instant in the past leaves the clock where it is."""
        self._now_ns = max(self._now_ns, now_ns)

"""When processes may run so that together they use a share of the processors."""

from __future__ import annotations

from typing import NamedTuple

# Time that a stop or a pause of the limiter itself may be made up for afterwards.
_MADE_UP_FOR = 0.2
# Time that is not used while running can be used for this long; covers slow waking.
_SAVED_UP = 0.02
# The number of busy processors is measured over this time.
_PACE_SPAN = 0.05
_SHORTEST_WAIT = 0.0005
_FULL = 0.9999


class RunTurn(NamedTuple):
    """Whether processes may run now, and when to call again (s)."""

    run: bool
    wait: float


class CpuBudget:
    """A bucket that processor time is earned into at a steady rate and spent from.

    With all processors busy, the processes run for the share of each period and stand still
    for the rest. Processes that use less than the share are never stopped. Overshoots are paid
    back and enforced idleness is made up for, so the average holds even where timing does not.

    The kernel books the time of a running process only at its ticks, which are as long as a
    period. So while processes run, they are taken to go on as before, and what they really
    used is settled when they stand still.

    :param cpus: processors of the machine
    :param period: s, of the alternation under full load
    """

    def __init__(self, cpus: int, period: float = 0.01) -> None:
        self._cpus = cpus
        self._period = period
        self._credit = 0.0
        self._running = True
        self._just_stopped = False
        self._now: float | None = None
        self._consumed = 0.0
        # Processors kept busy while running, and since when this is being measured.
        self._pace = 0.0
        self._begun = (0.0, 0.0)

    def update(self, now: float, consumed: float, share: float) -> RunTurn:
        """Take in what has been used; return what is allowed next.

        :param now: monotonic, s
        :param consumed: processor time used so far by all processes together, s
        :param share: of all processors together, above 0; 1 or more is no limit
        """
        rate = share * self._cpus
        burst = max(rate * (1.0 - share) * self._period, 1e-4)
        self._settle(now, consumed, rate, burst)
        if share >= _FULL:
            self._credit, self._running = burst, True
            return RunTurn(True, self._period)
        was_running = self._running
        left = self._credit - self._unbooked(now, consumed)
        self._running = left > 0.0 if was_running else left >= burst
        self._just_stopped = was_running and not self._running
        if self._running:
            if not was_running:
                self._begun = (now, consumed)
            wait = left / max(self._pace - rate, (self._cpus - rate) / 4.0)
        else:
            wait = (burst - left) / rate
        return RunTurn(self._running, min(max(wait, _SHORTEST_WAIT), self._period))

    def _settle(self, now: float, consumed: float, rate: float, burst: float) -> None:
        """Book what was earned and what the kernel counts as spent."""
        if self._now is None:
            self._now, self._consumed, self._begun = now, consumed, (now, consumed)
            self._credit = burst
        elapsed, spent = max(now - self._now, 0.0), max(consumed - self._consumed, 0.0)
        if self._just_stopped:
            # They stand still since the last time, so all of their run is booked by now.
            self._learn_pace(self._now, consumed)
            self._just_stopped = False
        elif self._running and now - self._begun[0] > _PACE_SPAN:
            self._learn_pace(now, consumed)
        self._now, self._consumed = now, consumed
        most = burst + rate * (_SAVED_UP if self._running else _MADE_UP_FOR)
        self._credit += rate * elapsed - spent
        self._credit = max(min(self._credit, most), -_MADE_UP_FOR * self._cpus)

    def _learn_pace(self, until: float, consumed: float) -> None:
        begun, before = self._begun
        seen = (consumed - before) / max(until - begun, 1e-4)
        self._pace = 0.5 * (self._pace + min(max(seen, 0.0), float(self._cpus)))
        self._begun = (until, consumed)

    def _unbooked(self, now: float, consumed: float) -> float:
        """Return what running processes have probably used beyond what is booked."""
        if not self._running:
            return 0.0
        begun, before = self._begun
        return max(self._pace * (now - begun) - (consumed - before), 0.0)

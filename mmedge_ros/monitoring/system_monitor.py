"""Reads all sources: the quick ones at once, each slow one in a thread of its own.

A thermal sensor on a bus that hangs, or a driver that waits for its firmware, holds up only
its own thread; its last reading is unknown when it is too old.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState, combined

# A machine that is busy reads late; beyond this it does not read any more.
_LATE_PERIODS = 4.0
_SHORTEST_PATIENCE = 2.0
# For all threads together, when the monitor ends.
_JOINING = 0.5


class Source(NamedTuple):
    """The reading of one probe, with its name and the part of the machine it is about."""

    name: str
    subsystem: Subsystem
    reading: Reading


class Sample(NamedTuple):
    """The system state at one instant, and where it comes from."""

    state: SystemState
    sources: tuple[Source, ...]


class BackgroundProbe:
    """Reads a slow probe again and again in its own thread, one read at a time.

    :param period: s from the end of one read to the beginning of the next
    """

    def __init__(self, probe: Probe, clock: Clock, period: float) -> None:
        self.probe = probe
        self._clock = clock
        self._period = period
        self._patience_ns = round(max(_LATE_PERIODS * period, _SHORTEST_PATIENCE) * NS_PER_S)
        self._latest: tuple[int, Reading] | None = None
        self._begin_ns = clock.monotonic_ns()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=probe.name, daemon=True)

    def start(self) -> None:
        self._begin_ns = self._clock.monotonic_ns()
        self._thread.start()

    def request_end(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._ended.set()

    def join(self, timeout: float) -> None:
        """Wait for the end; a probe that still hangs is left to the end of the process."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        if not self._thread.is_alive():
            self.probe.close()

    def read_once(self) -> None:
        """Read now, however long it takes, and keep the result."""
        reading = checked_reading(self.probe)
        self._latest = self._clock.monotonic_ns(), reading

    def latest(self) -> Reading:
        """Return the newest reading at once; unknown if it is too old."""
        latest = self._latest
        read_ns, reading = latest or (self._begin_ns, Reading(problem='not read yet'))
        age_ns = self._clock.monotonic_ns() - read_ns
        if age_ns > self._patience_ns:
            return Reading(problem=f'{self.probe.name}: no answer for {age_ns / NS_PER_S:.1f} s')
        return reading

    def _run(self) -> None:
        while not self._ended.is_set():
            self.read_once()
            self._ended.wait(self._period)


class SystemMonitor:
    """Samples the state of the system from its probes; their order is that of preference.

    :param slow_period: s between two reads of a slow probe
    """

    def __init__(self, probes: Sequence[Probe], clock: Clock, slow_period: float) -> None:
        self._probes: list[Probe | BackgroundProbe] = [
            BackgroundProbe(probe, clock, slow_period) if probe.slow else probe for probe in probes
        ]

    def start(self) -> None:
        for probe in self._slow():
            probe.start()

    def stop(self) -> None:
        """End the threads, except those that hang, and close the probes."""
        for probe in self._slow():
            probe.request_end()
        deadline = time.monotonic() + _JOINING
        for probe in self._slow():
            probe.join(max(deadline - time.monotonic(), 0.0))
        for entry in self._probes:
            if isinstance(entry, Probe):
                entry.close()

    def sample(self) -> Sample:
        """Return the present state; never waits for a slow probe."""
        sources = []
        for entry in self._probes:
            if isinstance(entry, BackgroundProbe):
                probe, reading = entry.probe, entry.latest()
            else:
                probe, reading = entry, checked_reading(entry)
            sources.append(Source(probe.name, probe.subsystem, reading))
        return Sample(combined(s.reading.state for s in sources), tuple(sources))

    def _slow(self) -> list[BackgroundProbe]:
        return [probe for probe in self._probes if isinstance(probe, BackgroundProbe)]


def checked_reading(probe: Probe) -> Reading:
    """Read a probe; one that fails is unknown, with its words."""
    try:
        return probe.read()
    except MonitoringError as error:
        return Reading(problem=str(error))


class OwnShare:
    """What this process takes of one core (%), over the time between two calls.

    :param used: CPU seconds of the process so far
    """

    def __init__(self, clock: Clock, used: Callable[[], float] = time.process_time) -> None:
        self._clock = clock
        self._used = used
        self._before = clock.monotonic_ns(), used()

    def percent(self) -> float:
        """Return the share since the last call; 0 if no time has passed."""
        before_ns, before = self._before
        now_ns, now = self._before = self._clock.monotonic_ns(), self._used()
        elapsed = (now_ns - before_ns) / NS_PER_S
        return 100.0 * (now - before) / elapsed if elapsed > 0.0 else 0.0

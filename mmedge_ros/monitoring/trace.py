"""The course of the system state over time, recorded or simulated."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import UNKNOWN, Probe, Reading, Subsystem, SystemState

# A state holds until the next one, but not for ever: then the recorder was silent.
_HOLD = 3.0


@dataclass(frozen=True)
class Trace:
    """States from the instants on at which they hold.

    ``times`` in s, ascending; 0 is the beginning of the recording, which is at ``begin_ns`` of
    its own time, None where that is not known. ``problems`` say what was left out.

    :raises MonitoringError: if it is empty
    """

    times: tuple[float, ...]
    states: tuple[SystemState, ...]
    begin_ns: int | None = None
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.times or len(self.times) != len(self.states):
            raise MonitoringError('a trace without states')

    @property
    def duration(self) -> float:
        """Seconds until the trace may begin again: as long as a step after its last state."""
        steps = len(self.times) - 1
        span = self.times[-1] - self.times[0]
        return self.times[-1] + (span / steps if steps and span > 0.0 else 1.0)

    def at(self, elapsed: float, loop: bool = False) -> SystemState:
        """Return the state after so many seconds; unknown before, after and in long gaps."""
        if loop:
            elapsed %= self.duration
        place = bisect_right(self.times, elapsed) - 1
        if place < 0 or elapsed - self.times[place] > _HOLD:
            return UNKNOWN
        return self.states[place]


class TraceTime:
    """How far a trace has been played: since the first question, or as far as a player is.

    :param clock: its instants are those of the player's stamps
    """

    def __init__(self, trace: Trace, clock: Clock) -> None:
        self._bag_begin_ns = trace.begin_ns
        self._clock = clock
        self._begin_ns: int | None = None
        self._offset_ns: int | None = None

    def follow(self, bag_begin_ns: int, offset_ns: int) -> None:
        """Take over the time of a player, if it plays the recording that the trace is of.

        :param bag_begin_ns: first instant of the player's recording, in its own time
        :param offset_ns: what the player adds to instants of its recording
        """
        if bag_begin_ns == self._bag_begin_ns:
            self._offset_ns = offset_ns

    def elapsed(self) -> float:
        if self._offset_ns is not None and self._bag_begin_ns is not None:
            return (self._clock.now_ns() - self._offset_ns - self._bag_begin_ns) / NS_PER_S
        now_ns = self._clock.monotonic_ns()
        if self._begin_ns is None:
            self._begin_ns = now_ns
        return (now_ns - self._begin_ns) / NS_PER_S


class TraceProbe(Probe):
    """A trace in place of the machine, played as far as ``time`` says."""

    def __init__(self, trace: Trace, time: TraceTime, loop: bool = False) -> None:
        super().__init__('trace', Subsystem.CPU)
        self._trace = trace
        self._time = time
        self._loop = loop

    def read(self) -> Reading:
        return Reading(self._trace.at(self._time.elapsed(), self._loop))

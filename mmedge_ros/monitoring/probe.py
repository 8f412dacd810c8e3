"""The base class of every source of system state, and sources that are functions of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum

from mmedge_ros.monitoring.system_state import Reading, SystemState


class Subsystem(Enum):
    """Parts of the machine that are reported apart."""

    BATTERY = 'battery'
    POWER = 'power'
    CPU = 'cpu'
    CLOCKS = 'clocks'
    GPU = 'gpu'
    MEMORY = 'memory'
    TEMPERATURE = 'temperature'


class Probe(ABC):
    """Reads a part of the system state.

    :param name: in words, for diagnostics
    :param slow: whether a read may take long (a bus, a firmware call); such a source gets a
        thread of its own and is read less often
    """

    def __init__(self, name: str, subsystem: Subsystem, slow: bool = False) -> None:
        self.name = name
        self.subsystem = subsystem
        self.slow = slow

    @abstractmethod
    def read(self) -> Reading:
        """Read now; what cannot be read is NaN.

        :raises MonitoringError: if nothing can be read, with the reason
        """

    def close(self) -> None:  # noqa: B027  # most have nothing to close
        """Release what is held."""


class CourseProbe(Probe):
    """A simulated source: a course of the system state over time, such as a recorded trace.

    :param course: seconds since the start -> state
    :param elapsed: seconds since the start
    """

    def __init__(
        self, name: str, course: Callable[[float], SystemState], elapsed: Callable[[], float]
    ) -> None:
        super().__init__(name, Subsystem.CPU)
        self._course = course
        self._elapsed = elapsed

    def read(self) -> Reading:
        return Reading(self._course(self._elapsed()))

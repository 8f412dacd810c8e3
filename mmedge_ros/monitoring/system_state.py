"""The state of the computer and its supply, the sources of it, and how partial readings join.

NaN stands for unknown, never zero: a dead sensor must not look like an idle computer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from types import MappingProxyType
from typing import Any

_NO_DETAILS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SystemState:
    """What is known at one instant; the units are those of SystemState.msg.

    ``voltage`` (V), ``current`` (A, positive = discharging), ``power`` (W) and ``charge``
    (0..1) are those of the flight battery. ``cpu`` (%) and ``cpu_clock`` (Hz) are per core, NaN
    for a core that is off; ``gpu`` and ``memory`` in %; ``temperature`` in degree Celsius of
    the hottest zone. ``module_power`` (W) is what the computer's own module draws. ``throttled``
    is None where nothing reports it.
    """

    voltage: float = math.nan
    current: float = math.nan
    power: float = math.nan
    charge: float = math.nan
    cpu: tuple[float, ...] = ()
    gpu: float = math.nan
    memory: float = math.nan
    temperature: float = math.nan
    cpu_clock: tuple[float, ...] = ()
    gpu_clock: float = math.nan
    throttled: bool | None = None
    module_power: float = math.nan

    @property
    def mean_cpu(self) -> float:
        """Mean load (%) of the cores that are on; NaN where none is known."""
        known = [load for load in self.cpu if math.isfinite(load)]
        return sum(known) / len(known) if known else math.nan

    @property
    def shown_power(self) -> float:
        """W as SystemState.msg has it: the module's own where there is no flight battery."""
        return self.module_power if math.isnan(self.voltage) else self.power


UNKNOWN = SystemState()

_NUMBERS = tuple(
    f.name for f in fields(SystemState) if f.type == 'float' and f.name != 'temperature'
)
_CORES = ('cpu', 'cpu_clock')


@dataclass(frozen=True, slots=True)
class Reading:
    """The report of one source: its part of the state, figures behind it, and what is wrong."""

    state: SystemState = UNKNOWN
    details: Mapping[str, float] = field(default_factory=lambda: _NO_DETAILS)
    problem: str = ''


def combined(states: Iterable[SystemState]) -> SystemState:
    """Join partial states: the first that knows a field gives it.

    The temperature is the hottest of all, and one source that sees throttling is enough.
    """
    listed = list(states)
    joined: dict[str, Any] = {}
    for name in _NUMBERS:
        values = (float(getattr(state, name)) for state in listed)
        joined[name] = next((v for v in values if math.isfinite(v)), math.nan)
    for name in _CORES:
        joined[name] = next((getattr(s, name) for s in listed if getattr(s, name)), ())
    known = [state.throttled for state in listed if state.throttled is not None]
    hot = (s.temperature for s in listed if math.isfinite(s.temperature))
    joined['temperature'] = max(hot, default=math.nan)
    joined['throttled'] = any(known) if known else None
    return SystemState(**joined)


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

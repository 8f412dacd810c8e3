"""The state of the computer and its supply, and how partial readings of it join.

NaN stands for unknown, never zero: a dead sensor must not look like an idle computer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
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
    is None where nothing tells.
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
    """What one source tells: its part of the state, figures behind it, and what is wrong."""

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
    told = [state.throttled for state in listed if state.throttled is not None]
    hot = (s.temperature for s in listed if math.isfinite(s.temperature))
    joined['temperature'] = max(hot, default=math.nan)
    joined['throttled'] = any(told) if told else None
    return SystemState(**joined)

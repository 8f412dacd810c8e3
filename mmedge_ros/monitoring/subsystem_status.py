"""One status per part of the machine: how it is, since it was last known, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_ros.core.parameter import parameter
from mmedge_ros.monitoring.hysteresis import Hysteresis, Level, Limits
from mmedge_ros.monitoring.system_monitor import Sample, Source
from mmedge_ros.monitoring.system_state import Subsystem, SystemState


@dataclass(frozen=True)
class StatusParameters:
    """Limits for /diagnostics; what the pipeline does about them has limits of its own."""

    voltage_warning: float = parameter(
        0.0, 'battery voltage to warn below; 0 as it depends on the cells', 'V', 0.0, 1000.0
    )
    voltage_error: float = parameter(
        0.0, 'battery voltage that is an error below; 0 for none', 'V', 0.0, 1000.0
    )
    charge_warning: float = parameter(0.25, 'charge of the battery to warn below', '', 0.0, 1.0)
    charge_error: float = parameter(
        0.12, 'charge of the battery that is an error below', '', 0.0, 1.0
    )
    # Loads in %, of the mean of the cores and of the GPU: a full one delays what is decided, but
    # is no error.
    cpu_warning: float = 95.0
    gpu_warning: float = 98.0
    # %, in use. Without memory the kernel ends processes.
    memory_warning: float = 85.0
    memory_error: float = 95.0
    # C, of the hottest zone. Jetsons throttle at 95 to 99.
    temperature_warning: float = 80.0
    temperature_error: float = 92.0
    # A load counts once it has lasted ``lasting`` s. A value is good again once it was back for
    # ``release`` s behind its limit by ``margin``, a share of it, so that it does not flicker.
    lasting: float = 5.0
    margin: float = 0.03
    release: float = 2.0


# Kernels have many zones and rails, but a message must not grow without bounds.
_MOST_DETAILS = 100


class Quantity(NamedTuple):
    """A figure of a part: its name, unit and value, and the limits it is judged by, if any."""

    name: str
    unit: str
    value: Callable[[SystemState], float]
    limits: Limits | None = None


class Status(NamedTuple):
    """State of one part: ``values`` are figures by name."""

    subsystem: Subsystem
    level: Level
    message: str
    values: Mapping[str, str]


class SubsystemStatuses:
    """Judges samples; remembers what was once known, so that its loss is reported."""

    def __init__(self, parameters: StatusParameters) -> None:
        self._quantities = quantities(parameters)
        self._judges = {
            quantity.name: Hysteresis(quantity.limits)
            for listed in self._quantities.values()
            for quantity in listed
            if quantity.limits is not None
        }
        self._known: set[str] = set()

    def update(self, sample: Sample, now: float) -> list[Status]:
        """Judge a sample at ``now`` (s, monotonic); one status for every part of the machine."""
        return [
            self._status(subsystem, sample, now, listed)
            for subsystem, listed in self._quantities.items()
        ]

    def _status(
        self, subsystem: Subsystem, sample: Sample, now: float, listed: tuple[Quantity, ...]
    ) -> Status:
        levels = {Level.OK}
        words, values, unknown, lost = [], {}, [], []
        for quantity in listed:
            name, value = quantity.name, quantity.value(sample.state)
            judge = self._judges.get(name)
            level = judge.update(value, now) if judge is not None else Level.OK
            levels.add(level)
            if math.isfinite(value):
                self._known.add(name)
                values[name] = shown_figure(value, quantity.unit)
                if level > Level.OK:
                    words.append(f'{name} {values[name]}')
                continue
            values[name] = 'unknown'
            unknown.append(name)
            if name in self._known:
                lost.append(name)
        sources = [source for source in sample.sources if source.subsystem is subsystem]
        values |= _details(sources)
        if lost:
            levels.add(Level.WARN)
            words.append(f'{" and ".join(lost)} lost{_reasons(sources)}')
        elif len(unknown) == len(listed):
            words.append(f'unknown on this machine{_reasons(sources)}')
        return Status(subsystem, max(levels), '; '.join(words) or 'good', values)


def quantities(p: StatusParameters) -> dict[Subsystem, tuple[Quantity, ...]]:
    """Return what every part of the machine is judged by."""

    def above(warning: float, error: float = math.nan, rise: float = 0.0) -> Limits:
        return Limits(warning, error, False, rise, p.margin, p.release)

    def below(warning: float, error: float) -> Limits:
        return Limits(warning, error, True, 0.0, p.margin, p.release)

    return {
        Subsystem.BATTERY: (
            Quantity('voltage', 'V', lambda s: s.voltage, below(*_given(p))),
            Quantity('charge', '', lambda s: s.charge, below(p.charge_warning, p.charge_error)),
            Quantity('current', 'A', lambda s: s.current),
        ),
        Subsystem.POWER: (Quantity('module power', 'W', lambda s: s.module_power),),
        Subsystem.CPU: (
            Quantity('cpu', '%', lambda s: s.mean_cpu, above(p.cpu_warning, rise=p.lasting)),
        ),
        Subsystem.CLOCKS: (
            # No limit lies between 0 and 1 but the firmware's own.
            Quantity('throttled', '', _throttled, above(0.5)),
            Quantity('slowest core', 'MHz', lambda s: _slowest(s.cpu_clock)),
        ),
        Subsystem.GPU: (
            Quantity('gpu', '%', lambda s: s.gpu, above(p.gpu_warning, rise=p.lasting)),
            Quantity('gpu clock', 'MHz', lambda s: s.gpu_clock / 1e6),
        ),
        Subsystem.MEMORY: (
            Quantity('memory', '%', lambda s: s.memory, above(p.memory_warning, p.memory_error)),
        ),
        Subsystem.TEMPERATURE: (
            Quantity(
                'temperature',
                'C',
                lambda s: s.temperature,
                above(p.temperature_warning, p.temperature_error),
            ),
        ),
    }


def shown_figure(value: float, unit: str) -> str:
    """Show a figure with four digits and its unit."""
    return f'{value:.4g} {unit}'.strip()


def _given(p: StatusParameters) -> tuple[float, float]:
    """Return the limits of the voltage, NaN for those not given."""
    return p.voltage_warning or math.nan, p.voltage_error or math.nan


def _throttled(state: SystemState) -> float:
    return math.nan if state.throttled is None else float(state.throttled)


def _slowest(clocks: tuple[float, ...]) -> float:
    return min((hertz for hertz in clocks if math.isfinite(hertz)), default=math.nan) / 1e6


def _details(sources: list[Source]) -> dict[str, str]:
    details: dict[str, str] = {}
    for source in sources:
        for name, value in source.reading.details.items():
            if len(details) < _MOST_DETAILS:
                details[name] = shown_figure(value, '') if math.isfinite(value) else 'unknown'
    return details


def _reasons(sources: list[Source]) -> str:
    problems = [source.reading.problem for source in sources if source.reading.problem]
    return f': {", ".join(problems)}' if problems else ''

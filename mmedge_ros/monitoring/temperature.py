"""How hot the computer is, and whether its firmware limits the clocks.

Temperatures: thermal zones, and sensors of hwmon beside them. Throttling: on Jetson cooling
devices named throttle-alert and counters of over-current events in hwmon, on Intel counters per
core, on a Raspberry Pi get_throttled, elsewhere the kernel's cooling devices of processors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_files import Discovered, SystemFiles
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState

# An event says that it happened, not how long it lasts.
_EVENT_LASTS = 2.0
_COUNTERS = (
    'sys/class/hwmon/hwmon*/oc[0-9]*_event_cnt',
    'sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count',
    'sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/package_throttle_count',
)
_PI = 'sys/devices/platform/soc/soc:firmware/get_throttled'
# Under-voltage, frequency capped, throttled, soft temperature limit: all at present. The same
# bits shifted by 16 say that it happened since the start.
_PI_NOW = 0xF


class _Sources(NamedTuple):
    states: list[str]
    counters: list[str]


class Throttling(Probe):
    """All sources of throttling joined: one that limits is enough."""

    def __init__(self, files: SystemFiles, clock: Clock) -> None:
        super().__init__('throttling', Subsystem.CLOCKS, slow=True)
        self._files = files
        self._clock = clock
        self._sources: Discovered[_Sources] = Discovered(self._look)
        self._counts: dict[str, float] = {}
        self._event_ns: int | None = None

    def read(self) -> Reading:
        sources = self._sources.get()
        states = [self._files.number(path) for path in sources.states]
        states = [value for value in (*states, self._pi()) if not math.isnan(value)]
        counts = {path: self._files.number(path) for path in sources.counters}
        counts = {path: value for path, value in counts.items() if not math.isnan(value)}
        if not states and not counts:
            self._sources.forget()
            raise MonitoringError(f'nothing below {self._files.prefix}sys reports throttling')
        if any(value > self._counts.get(path, value) for path, value in counts.items()):
            self._event_ns = self._clock.monotonic_ns()
        self._counts.update(counts)
        limited = any(value > 0.0 for value in states) or self._recent()
        return Reading(SystemState(throttled=limited))

    def _recent(self) -> bool:
        if self._event_ns is None:
            return False
        return self._clock.monotonic_ns() - self._event_ns < _EVENT_LASTS * NS_PER_S

    def _pi(self) -> float:
        text = self._files.text(_PI)
        try:
            return float(int(text, 16) & _PI_NOW)
        except ValueError:
            return math.nan

    def _look(self) -> _Sources:
        devices = self._files.matching('sys/class/thermal/cooling_device*')
        states = [
            f'{device}/cur_state'
            for device in devices
            if _limits_clocks(self._files.text(f'{device}/type').lower())
        ]
        return _Sources(states, self._files.matching(*_COUNTERS))


def _limits_clocks(kind: str) -> bool:
    """Whether a cooling device works by lower clocks, not by a fan."""
    return kind.startswith(('processor', 'cpufreq', 'devfreq', 'thermal-cpufreq')) or any(
        word in kind for word in ('throttle-alert', 'throttle_alert')
    )


_MILLI = 1e-3
# Outside no silicon works: zones of parts that are off read -256 or 0 K.
_COLDEST, _HOTTEST = -50.0, 150.0
# The power management chip of Jetson always reads 50 or 100: no measurement.
_FICTITIOUS = ('pmic',)
# Chips of hwmon that measure the processor where no thermal zone does.
_PROCESSOR_CHIPS = ('coretemp', 'k10temp', 'zenpower', 'amdgpu', 'cpu_thermal')


class Temperatures(Probe):
    """Zones of /sys/class/thermal and processor sensors of /sys/class/hwmon."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('thermal zones', Subsystem.TEMPERATURE, slow=True)
        self._files = files
        self._paths: Discovered[dict[str, str]] = Discovered(self._look)

    def read(self) -> Reading:
        measured = {
            name: self._files.number(path, _MILLI) for name, path in self._paths.get().items()
        }
        known = {name: v for name, v in measured.items() if _COLDEST < v < _HOTTEST}
        if not known:
            self._paths.forget()
            raise MonitoringError(f'no temperature below {self._files.prefix}sys/class/thermal')
        details = {f'{name} (C)': value for name, value in known.items()}
        return Reading(SystemState(temperature=max(known.values())), details)

    def _look(self) -> dict[str, str]:
        paths: dict[str, str] = {}
        for zone in self._files.matching('sys/class/thermal/thermal_zone*'):
            place = zone.rpartition('/')[2]
            name = self._files.text(f'{zone}/type') or place
            if not any(word in name.lower() for word in _FICTITIOUS):
                paths[_unused(name, place, paths)] = f'{zone}/temp'
        for chip in self._files.matching('sys/class/hwmon/hwmon*'):
            name = self._files.text(f'{chip}/name')
            if name in _PROCESSOR_CHIPS:
                for path in self._files.matching(f'{chip}/temp[0-9]*_input'):
                    label = self._files.text(path.replace('_input', '_label'))
                    place = path.rpartition('/')[2].removesuffix('_input')
                    paths[_unused(f'{name} {label or place}', place, paths)] = path
        return paths


def _unused(name: str, place: str, taken: dict[str, str]) -> str:
    """Tell two zones of the same type apart."""
    if name not in taken:
        return name
    named = f'{name} {place}'
    return named if named not in taken else f'{named} {len(taken)}'


def plausible_temperature(celsius: float) -> float:
    """Return a temperature, NaN where it cannot be one."""
    return celsius if _COLDEST < celsius < _HOTTEST else math.nan

"""The hottest place of the computer: thermal zones, and sensors of hwmon beside them."""

from __future__ import annotations

import math

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.probe import Probe, Subsystem
from mmedge_ros.monitoring.system_files import Discovered, SystemFiles
from mmedge_ros.monitoring.system_state import Reading, SystemState

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
        found: dict[str, str] = {}
        for zone in self._files.matching('sys/class/thermal/thermal_zone*'):
            place = zone.rpartition('/')[2]
            name = self._files.text(f'{zone}/type') or place
            if not any(word in name.lower() for word in _FICTITIOUS):
                found[_unused(name, place, found)] = f'{zone}/temp'
        for chip in self._files.matching('sys/class/hwmon/hwmon*'):
            name = self._files.text(f'{chip}/name')
            if name in _PROCESSOR_CHIPS:
                for path in self._files.matching(f'{chip}/temp[0-9]*_input'):
                    label = self._files.text(path.replace('_input', '_label'))
                    place = path.rpartition('/')[2].removesuffix('_input')
                    found[_unused(f'{name} {label or place}', place, found)] = path
        return found


def _unused(name: str, place: str, taken: dict[str, str]) -> str:
    """Tell two zones of the same type apart."""
    if name not in taken:
        return name
    named = f'{name} {place}'
    return named if named not in taken else f'{named} {len(taken)}'


def plausible_temperature(celsius: float) -> float:
    """Return a temperature, NaN where it cannot be one."""
    return celsius if _COLDEST < celsius < _HOTTEST else math.nan

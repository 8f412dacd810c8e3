"""Power of a Jetson module, measured by its INA3221 chips. Not the flight battery's.

Rails by module (Jetson Linux developer guide, "Software-Based Power Consumption Modeling"):
Nano-sized modules measure the whole on VDD_IN (5V_IN before), AGX ones only the parts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_files import Discovered, SystemFiles
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState

_MILLI = 1e-3
_CHANNELS = (1, 2, 3)
_TOTALS = ('VDD_IN', 'POM_5V_IN', '5V_IN', 'VDD_5V_IN')
# AGX Orin's parts, which together are the module but for what its memory draws.
_PARTS = ('VDD_GPU_SOC', 'VDD_CPU_CV', 'VIN_SYS_5V0')
_UNUSED = 'NC'


class Rail(NamedTuple):
    """A measured line: files of millivolts and milliamperes, or one of milliwatts."""

    name: str
    volts: str
    amperes: str
    watts: str = ''


class PowerRails(Probe):
    """Rails found by hwmon, or by the driver that Jetsons had before it."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('INA3221', Subsystem.POWER, slow=True)
        self._files = files
        self._rails: Discovered[list[Rail]] = Discovered(self._look)

    def read(self) -> Reading:
        watts = {rail.name: self._power(rail) for rail in self._rails.get()}
        if not any(math.isfinite(value) for value in watts.values()):
            self._rails.forget()
            raise MonitoringError(f'no rail of an INA3221 below {self._files.prefix}sys')
        total = module_power(watts)
        if math.isnan(total):
            self._rails.forget()
        details = {f'{name} (W)': value for name, value in watts.items()}
        return Reading(SystemState(module_power=total), details)

    def _power(self, rail: Rail) -> float:
        if rail.watts:
            return self._files.number(rail.watts, _MILLI)
        volts = self._files.number(rail.volts, _MILLI)
        return volts * self._files.number(rail.amperes, _MILLI)

    def _look(self) -> list[Rail]:
        rails: list[Rail] = []
        for chip in self._files.matching('sys/class/hwmon/hwmon*'):
            if self._files.text(f'{chip}/name') == 'ina3221':
                for n in _CHANNELS:
                    label = self._files.text(f'{chip}/in{n}_label')
                    place = f'{chip.rpartition("/")[2]} channel {n}'
                    volts, amperes = f'{chip}/in{n}_input', f'{chip}/curr{n}_input'
                    rails.append(Rail(label or place, volts, amperes))
        for path in self._files.matching('sys/bus/i2c/drivers/ina3221x/*/iio:device*/rail_name_*'):
            folder, _, name = path.rpartition('/')
            watts = f'{folder}/in_power{name.removeprefix("rail_name_")}_input'
            rails.append(Rail(self._files.text(path) or name, '', '', watts))
        return [rail for rail in rails if rail.name != _UNUSED]


def module_power(watts: dict[str, float]) -> float:
    """Return what the module draws (W); NaN where its rails do not say.

    Rails without their labels cannot be added: one of them may be the sum of the others.
    """
    for name in _TOTALS:
        if name in watts:
            return watts[name]
    if all(name in watts for name in _PARTS):
        return sum(watts[name] for name in _PARTS)
    return math.nan

"""Load and clock of the GPU: sysfs on Jetson and AMD, NVML for other NVIDIA cards."""

from __future__ import annotations

import importlib
import math
from typing import Any

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_files import Discovered, SystemFiles
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState
from mmedge_ros.monitoring.temperature import plausible_temperature

_PER_TENTH = 0.1
_HZ_PER_MHZ = 1e6
_MILLI = 1e-3
# gpu on JetPack 6, gv11b on Xavier, ga10b on Orin before, gp10b on TX2, 57000000.gpu on Nano.
_NAMES = ('*gpu*', '*.gv11b', '*.ga10b', '*.gp10b')
_JETSON_LOADS = (
    *(f'sys/class/devfreq/{name}/device/load' for name in _NAMES),
    'sys/devices/platform/bus@0/*.gpu/load',
    'sys/devices/platform/gpu.0/load',
    'sys/devices/gpu.0/load',
)
_JETSON_CLOCKS = tuple(f'sys/class/devfreq/{name}/cur_freq' for name in _NAMES)
_AMD_LOADS = 'sys/class/drm/card[0-9]*/device/gpu_busy_percent'
_NVML_UTILISATION_LIMIT = 100.0
# Clock limits that come from heat or supply, not from idling or a user's wish (nvml.h,
# nvmlClocksEventReasons): software power cap, HW slowdown, SW thermal, HW thermal, HW brake.
_NVML_THROTTLED = 0x04 | 0x08 | 0x20 | 0x40 | 0x80


class SysfsGpu(Probe):
    """Jetson reports tenths of a percent, amdgpu percent."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('GPU of the kernel', Subsystem.GPU, slow=True)
        self._files = files
        self._paths: Discovered[list[tuple[str, float]]] = Discovered(self._look)
        self._clocks: Discovered[list[str]] = Discovered(
            lambda: self._files.matching(*_JETSON_CLOCKS)
        )

    def read(self) -> Reading:
        loads = (self._files.number(path, scale) for path, scale in self._paths.get())
        load = next((v for v in loads if 0.0 <= v <= 100.0), math.nan)
        hertz = next((v for v in map(self._files.number, self._clocks.get()) if v > 0), math.nan)
        if math.isnan(load):
            self._paths.forget()
            self._clocks.forget()
            if math.isnan(hertz):
                raise MonitoringError(f'no load of a GPU below {self._files.prefix}sys')
        return Reading(SystemState(gpu=load, gpu_clock=hertz))

    def _look(self) -> list[tuple[str, float]]:
        jetson = [(path, _PER_TENTH) for path in self._files.matching(*_JETSON_LOADS)]
        return jetson + [(path, 1.0) for path in self._files.matching(_AMD_LOADS)]


class NvmlGpu(Probe):
    """The first NVIDIA card by NVML, where the package nvidia-ml-py is installed.

    On Jetson NVML starts but reports nothing, so each figure may be missing.

    :param library: stands for the module pynvml
    :raises MonitoringError: where there is no NVML or no card
    """

    def __init__(self, library: Any = None) -> None:
        super().__init__('NVML', Subsystem.GPU, slow=True)
        try:
            self._nvml = library or importlib.import_module('pynvml')
        except ImportError as error:
            raise MonitoringError('NVML: the package nvidia-ml-py is not installed') from error
        try:
            self._nvml.nvmlInit()
            self._card = self._nvml.nvmlDeviceGetHandleByIndex(0)
        except self._nvml.NVMLError as error:
            raise MonitoringError(f'NVML: no card: {error}') from error

    def read(self) -> Reading:
        n = self._nvml
        load = self._query(lambda: n.nvmlDeviceGetUtilizationRates(self._card).gpu)
        clock = self._query(lambda: n.nvmlDeviceGetClockInfo(self._card, n.NVML_CLOCK_GRAPHICS))
        celsius = self._query(
            lambda: n.nvmlDeviceGetTemperature(self._card, n.NVML_TEMPERATURE_GPU)
        )
        reasons = self._query(lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(self._card))
        power = self._query(lambda: n.nvmlDeviceGetPowerUsage(self._card)) * _MILLI
        if all(math.isnan(value) for value in (load, clock, celsius)):
            raise MonitoringError('NVML: the card reports nothing')
        state = SystemState(
            gpu=load if 0.0 <= load <= _NVML_UTILISATION_LIMIT else math.nan,
            gpu_clock=clock * _HZ_PER_MHZ,
            temperature=plausible_temperature(celsius),
            throttled=None if math.isnan(reasons) else bool(int(reasons) & _NVML_THROTTLED),
        )
        return Reading(state, {} if math.isnan(power) else {'card (W)': power})

    def close(self) -> None:
        try:
            self._nvml.nvmlShutdown()
        except self._nvml.NVMLError:
            self._card = None  # it was lost before; there is nothing to release

    def _query(self, function: Any) -> float:
        try:
            return float(function())
        except (self._nvml.NVMLError, AttributeError, TypeError, ValueError):
            return math.nan

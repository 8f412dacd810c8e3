"""How much of the memory is in use."""

from __future__ import annotations

import math
import re

import psutil

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.probe import Probe, Subsystem
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_state import Reading, SystemState

_LINE = re.compile(r'^(\w+):\s+(\d{1,15}) kB$', re.MULTILINE)
_BYTES_PER_KB = 1024.0
_MEGABYTE = 1e6


class MemoryInfo(Probe):
    """What programs cannot have any more, from /proc/meminfo: all but MemAvailable."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('/proc/meminfo', Subsystem.MEMORY)
        self._files = files

    def read(self) -> Reading:
        values = {name: float(kb) for name, kb in _LINE.findall(self._files.text('proc/meminfo'))}
        total = values.get('MemTotal', 0.0)
        available = values.get('MemAvailable')
        if available is None and 'MemFree' in values:  # kernels before 3.14
            parts = ('MemFree', 'Buffers', 'Cached')
            available = sum(values.get(part, 0.0) for part in parts)
        if total <= 0.0 or available is None:
            raise MonitoringError(
                f'{self._files.prefix}proc/meminfo has no MemTotal or MemAvailable'
            )
        used = 100.0 * (1.0 - min(available, total) / total)
        details = {'total (MB)': total * _BYTES_PER_KB / _MEGABYTE}
        swap = values.get('SwapTotal', 0.0)
        if swap > 0.0:
            details['swap used (%)'] = 100.0 * (1.0 - values.get('SwapFree', math.nan) / swap)
        return Reading(SystemState(memory=used), details)


class GenericMemory(Probe):
    """The same through psutil, where there is no /proc."""

    def __init__(self) -> None:
        super().__init__('psutil', Subsystem.MEMORY)

    def read(self) -> Reading:
        try:
            return Reading(SystemState(memory=float(psutil.virtual_memory().percent)))
        except (OSError, RuntimeError) as error:
            raise MonitoringError(f'psutil cannot tell the memory: {error}') from error

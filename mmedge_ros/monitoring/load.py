"""Load and clock of every core, and how much of the memory is in use."""

from __future__ import annotations

import math
import re

import psutil

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_files import Discovered, SystemFiles
from mmedge_ros.monitoring.system_state import Probe, Reading, Subsystem, SystemState

# No machine that flies has more; a damaged file must not make a list of a billion cores.
_MOST_CORES = 1024
_FEWEST_COLUMNS = 4
# user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user already.
_COLUMNS = 8
_IDLE, _IO_WAIT = 3, 4
_CORE = re.compile(r'cpu(\d{1,4})')
_CLOCK = re.compile(r'cpu/cpu(\d{1,4})/')
_HZ_PER_KHZ = 1e3
_HZ_PER_MHZ = 1e6


class CoreLoads(Probe):
    """Load from /proc/stat between two readings; the first reading is unknown."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('/proc/stat', Subsystem.CPU)
        self._files = files
        self._before: dict[int, tuple[float, float]] = {}
        self._loads: dict[int, float] = {}

    def read(self) -> Reading:
        counters = core_counters(self._files.text('proc/stat'))
        if not counters:
            self._before, self._loads = {}, {}
            raise MonitoringError(f'{self._files.prefix}proc/stat says nothing about the cores')
        # A core that was seen once keeps its place in the list while it is off.
        size = max(*counters, *self._loads, 0) + 1
        self._loads = {core: self._load(core, counters.get(core)) for core in range(size)}
        self._before = counters
        return Reading(SystemState(cpu=tuple(self._loads.values())))

    def _load(self, core: int, counter: tuple[float, float] | None) -> float:
        before = self._before.get(core)
        if counter is None or before is None:
            return math.nan
        busy, total = counter[0] - before[0], counter[1] - before[1]
        if total == 0.0:  # read again within one tick of the kernel's clock
            return self._loads.get(core, math.nan)
        if total < 0.0 or not 0.0 <= busy <= total:
            # iowait may run backwards a little; a counter that starts over says nothing.
            return min(max(100.0 * busy / total, 0.0), 100.0) if total > 0.0 else math.nan
        return 100.0 * busy / total


def core_counters(text: str) -> dict[int, tuple[float, float]]:
    """Return (busy, total) ticks of every core in /proc/stat; damaged lines are left out."""
    counters: dict[int, tuple[float, float]] = {}
    for line in text.splitlines():
        if not line.startswith('cpu'):
            break  # the cores come first, and what follows is long
        words = line.split()
        core = _CORE.fullmatch(words[0])
        ticks = words[1 : 1 + _COLUMNS]
        if core is None or int(core[1]) >= _MOST_CORES or len(ticks) < _FEWEST_COLUMNS:
            continue
        if all(word.isdecimal() for word in ticks):
            values = [float(word) for word in ticks]
            idle = values[_IDLE] + (values[_IO_WAIT] if len(values) > _IO_WAIT else 0.0)
            counters[int(core[1])] = sum(values) - idle, sum(values)
    return counters


class CoreClocks(Probe):
    """Clocks from cpufreq; asking for one may go as far as the firmware."""

    def __init__(self, files: SystemFiles) -> None:
        super().__init__('cpufreq', Subsystem.CLOCKS, slow=True)
        self._files = files
        self._paths: Discovered[dict[int, str]] = Discovered(self._look)

    def read(self) -> Reading:
        paths = self._paths.get()
        clocks = {core: self._files.number(path, _HZ_PER_KHZ) for core, path in paths.items()}
        known = {core: hz for core, hz in clocks.items() if hz > 0.0}
        if not known:
            self._paths.forget()
            raise MonitoringError(
                f'no clock in {self._files.prefix}sys/devices/system/cpu/cpu*/cpufreq'
            )
        listed = tuple(known.get(core, math.nan) for core in range(max(clocks) + 1))
        return Reading(SystemState(cpu_clock=listed))

    def _look(self) -> dict[int, str]:
        paths = self._files.matching('sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_cur_freq')
        cores = ((_CLOCK.search(path), path) for path in paths)
        counters = {int(core[1]): path for core, path in cores if core is not None}
        return {core: path for core, path in sorted(counters.items()) if core < _MOST_CORES}


class GenericCores(Probe):
    """Loads and clocks through psutil, where there is no /proc."""

    def __init__(self) -> None:
        super().__init__('psutil', Subsystem.CPU)
        self._begun = False

    def read(self) -> Reading:
        try:
            loads = psutil.cpu_percent(percpu=True)
            clocks = psutil.cpu_freq(percpu=True) or []
        except (OSError, RuntimeError, NotImplementedError) as error:
            raise MonitoringError(f'psutil cannot read the load of the cores: {error}') from error
        # The first call has nothing to compare with and says 0.
        cpu = tuple(float(load) if self._begun else math.nan for load in loads)
        self._begun = True
        hertz = tuple(float(c.current) * _HZ_PER_MHZ or math.nan for c in clocks)
        return Reading(SystemState(cpu=cpu, cpu_clock=hertz))


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
            raise MonitoringError(f'psutil cannot read the memory: {error}') from error

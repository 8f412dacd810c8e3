"""The probes that suit the machine, and which machine it is, in words."""

from __future__ import annotations

import platform

import psutil

from mmedge_ros.core.clock import Clock
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.graphics import NvmlGpu, SysfsGpu
from mmedge_ros.monitoring.load import (
    CoreClocks,
    CoreLoads,
    GenericCores,
    GenericMemory,
    MemoryInfo,
)
from mmedge_ros.monitoring.power_rails import PowerRails
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_state import Probe
from mmedge_ros.monitoring.temperature import Temperatures, Throttling


def machine_probes(files: SystemFiles, clock: Clock, nvml: bool = True) -> list[Probe]:
    """Return the probes of a machine: those of Linux, or through psutil where it is another.

    What the machine does not have stays among them: it is unknown, and may come later.

    :param nvml: whether an NVIDIA card is read through its library, if that is installed
    """
    if not files.text('proc/stat'):
        return [GenericCores(), GenericMemory()]
    probes: list[Probe] = [
        CoreLoads(files),
        MemoryInfo(files),
        CoreClocks(files),
        SysfsGpu(files),
        Temperatures(files),
        PowerRails(files),
        Throttling(files, clock),
    ]
    if nvml:
        try:
            probes.append(NvmlGpu())
        except MonitoringError:
            return probes  # most machines have none
    return probes


_MODEL = 'proc/device-tree/model'


def machine_description(files: SystemFiles | None = None) -> dict[str, str | int]:
    """Return processor, cores, memory (GB) and system; '' for what is not known."""
    files = files or SystemFiles('/')
    return {
        'model': files.text(_MODEL).strip('\0 \n'),
        'processor': _processor(files.text('proc/cpuinfo')) or platform.machine(),
        'cores': psutil.cpu_count() or 0,
        'memory_gb': round(psutil.virtual_memory().total / 1e9),
        'system': f'{platform.system()} {platform.release()}',
        'python': platform.python_version(),
    }


def _processor(text: str) -> str:
    for line in text.splitlines():
        name, _, value = line.partition(':')
        if name.strip() == 'model name':
            return value.strip()
    return ''

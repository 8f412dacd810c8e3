"""The probes that suit the machine."""

from __future__ import annotations

from mmedge_ros.clock import Clock
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.graphics import NvmlGpu, SysfsGpu
from mmedge_ros.monitoring.memory import GenericMemory, MemoryInfo
from mmedge_ros.monitoring.power_rails import PowerRails
from mmedge_ros.monitoring.probe import Probe
from mmedge_ros.monitoring.processor import CoreClocks, CoreLoads, GenericCores
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.temperature import Temperatures
from mmedge_ros.monitoring.throttling import Throttling


def machine_probes(files: SystemFiles, clock: Clock, nvml: bool = True) -> list[Probe]:
    """Return the probes of a machine: those of Linux, or through psutil where it is another.

    What the machine does not have stays among them: it is unknown, and may come later.

    :param nvml: whether an NVIDIA card is asked by its library, if that is installed
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

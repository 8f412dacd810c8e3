"""The computer before a flight: memory, disks, clocks, heat. What it does not have is no fault."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator

from mmedge_ros.core.clock import Clock
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.monitoring.subsystem_status import StatusParameters
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.temperature import Temperatures, Throttling
from mmedge_ros.preflight.finding import Finding, note, ok, wrong

_MB = 1e6
_AVAILABLE = re.compile(r'^MemAvailable:\s*(\d{1,15}) kB', re.MULTILINE)
# MB. The graph of `up --optimise` takes about 900, and 140 of shared memory: 17 for each process.
_MEMORY_WANTED, _MEMORY_NEEDED = 1200.0, 500.0
_SHARED_NEEDED, _SHARED_FREE = 160.0, 32.0
# MB. A recorder stops at the first; below the second not even logs can be written.
_DISK_WANTED, _DISK_NEEDED = 500.0, 50.0
_GOVERNORS = 'sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor'
_LONGEST_NAME = 40
# With these drivers powersave is the ordinary governor, which follows the load.
_OWN_GOVERNORS = ('intel_pstate', 'amd-pstate', 'amd-pstate-epp')

# Size and free space of the disk of a folder, in bytes.
DiskUsage = Callable[[str], tuple[float, float]]


def disk_usage(folder: str) -> tuple[float, float]:
    """Return size and free space of the disk of a folder, bytes.

    :raises OSError: if there is no such folder
    """
    usage = shutil.disk_usage(folder)
    return usage.total, usage.free


def check_machine(
    files: SystemFiles, clock: Clock, folder: str = '.', usage: DiskUsage = disk_usage
) -> list[Finding]:
    """Judge the computer.

    :param folder: where logs and recordings go
    """
    return [
        *_computer(files),
        *_memory(files),
        *_shared_memory(files, usage),
        *_disk(folder, usage),
        *_governor(files),
        *_heat(files, clock),
    ]


def _computer(files: SystemFiles) -> Iterator[Finding]:
    machine = machine_description(files)
    words = (
        f'{machine["model"] or machine["processor"]}, {machine["cores"]} cores, '
        f'{machine["memory_gb"]} GB, {machine["system"]}'
    )
    if machine['cores'] == 1:
        yield note('computer', words, 'with one core encoders wait for each other: take two')
    else:
        yield ok('computer', words)


def _memory(files: SystemFiles) -> Iterator[Finding]:
    match = _AVAILABLE.search(files.text('proc/meminfo'))
    if match is None:
        return
    available = float(match[1]) * 1024 / _MB
    words = f'{available:.0f} MB available'
    remedy = 'the graph takes about 900 MB: end other programs'
    if available < _MEMORY_NEEDED:
        yield wrong('memory', words, remedy)
    elif available < _MEMORY_WANTED:
        yield note('memory', words, remedy)
    else:
        yield ok('memory', words)


def _shared_memory(files: SystemFiles, usage: DiskUsage) -> Iterator[Finding]:
    try:
        total, free = (value / _MB for value in usage(f'{files.prefix}dev/shm'))
    except OSError:
        return
    words = f'/dev/shm has {total:.0f} MB, {free:.0f} MB of them free'
    if total < _SHARED_NEEDED or free < _SHARED_FREE:
        yield wrong(
            'shared memory',
            f'{words}: pictures between nodes go through it, {_SHARED_NEEDED:.0f} MB are needed',
            '`sudo mount -o remount,size=512M /dev/shm`; in Docker start with --shm-size=512m',
        )
    else:
        yield ok('shared memory', words)


def _disk(folder: str, usage: DiskUsage) -> Iterator[Finding]:
    try:
        free = usage(folder)[1] / _MB
    except OSError as error:
        yield note('disk', f'{folder}: {error.strerror or error}')
        return
    words = f'{free / 1000:.1f} GB free where logs and recordings go'
    if free < _DISK_NEEDED:
        yield wrong('disk', words, 'make room: logs cannot be written')
    elif free < _DISK_WANTED:
        yield note('disk', words, f'recordings stop below {_DISK_WANTED:.0f} MB: make room')
    else:
        yield ok('disk', words)


def _governor(files: SystemFiles) -> Iterator[Finding]:
    paths = files.matching(_GOVERNORS)
    if not paths:
        return
    names = sorted({files.text(path)[:_LONGEST_NAME] for path in paths} - {''})
    driver = files.text(paths[0].replace('_governor', '_driver'))
    words = f'{", ".join(names) or "unreadable"} on {len(paths)} cores'
    if 'powersave' in names and driver not in _OWN_GOVERNORS:
        remedy = '`sudo cpupower frequency-set -g schedutil` (Jetson: `sudo jetson_clocks`)'
        yield note('governor', f'{words}: the clock stays at its lowest', remedy)
    else:
        yield ok('governor', words)


def _heat(files: SystemFiles, clock: Clock) -> Iterator[Finding]:
    """Judge what the machine tells; most virtual ones tell neither."""
    limits = StatusParameters()
    try:
        celsius = Temperatures(files).read().state.temperature
    except MonitoringError:
        pass
    else:
        words = f'{celsius:.0f} degrees C in the hottest zone'
        remedy = 'let it cool; look at fan, heat sink and airflow'
        if celsius >= limits.temperature_error:
            yield wrong('temperature', words, remedy)
        elif celsius >= limits.temperature_warning:
            yield note('temperature', words, remedy)
        else:
            yield ok('temperature', words)
    try:
        throttled = Throttling(files, clock).read().state.throttled
    except MonitoringError:
        return
    if throttled:
        yield note(
            'throttling',
            'the firmware limits the clocks now',
            'look at temperature and supply (under-voltage); encoders are slower meanwhile',
        )
    else:
        yield ok('throttling', 'none')

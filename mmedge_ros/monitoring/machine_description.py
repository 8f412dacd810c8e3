"""Which machine a figure was measured on, in words."""

from __future__ import annotations

import platform

import psutil

from mmedge_ros.monitoring.system_files import SystemFiles

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

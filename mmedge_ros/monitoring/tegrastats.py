"""Traces that NVIDIA's tegrastats wrote on a Jetson.

Format: Jetson Linux developer guide, "tegrastats utility". Versions differ, so each figure is
looked for by its own words, and one that is not there is unknown.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.power_rails import module_power
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.monitoring.temperature import plausible_temperature
from mmedge_ros.monitoring.trace import Trace

_MOST_BYTES = 50_000_000
_LONGEST_LINE = 4096
_HZ_PER_MHZ = 1e6
_MILLI = 1e-3
_DAY = 86400.0
# Without times of day a line came every second, as tegrastats does by default.
_PERIOD = 1.0

# Which of day and month comes first depends on the version; the time of day is enough.
_TIME = re.compile(r'^\d{1,4}-\d{1,2}-\d{1,4} (\d{1,2}):(\d{2}):(\d{2})\b')
_MEMORY = re.compile(r'\bRAM (\d{1,9})/(\d{1,9})MB')
_CPU = re.compile(r'\bCPU \[([^\]]*)\](?:@(\d{1,6}))?')
_CORE = re.compile(r'(\d{1,3})%(?:@(\d{1,6}))?')
_GPU = re.compile(r'\bGR3D(?:_FREQ)? (\d{1,3})%(?:@\[?(\d{1,6}))?')
_ZONE = re.compile(r'\b(\w+)@(-?\d{1,4}(?:\.\d{1,4})?)C\b')
_RAIL = re.compile(r'\b(\w+) (\d{1,9})(?:mW)?/\d{1,9}(mW)?(?=\s|$)')
# Always reads the same.
_NO_ZONE = 'PMIC'


def state_from_line(line: str) -> SystemState | None:
    """Return the state in a line, None for a line of something else."""
    line = line[:_LONGEST_LINE]
    memory, cpu = _MEMORY.search(line), _CPU.search(line)
    if memory is None and cpu is None:
        return None
    used, total = (float(memory[1]), float(memory[2])) if memory else (math.nan, math.nan)
    loads, clocks = _cores(cpu)
    gpu = _GPU.search(line)
    zones = [
        plausible_temperature(float(c)) for name, c in _ZONE.findall(line) if name != _NO_ZONE
    ]
    watts = {name: float(milli) * _MILLI for name, milli, _ in _RAIL.findall(line)}
    return SystemState(
        cpu=loads,
        cpu_clock=clocks,
        memory=100.0 * used / total if 0.0 <= used <= total and total > 0.0 else math.nan,
        gpu=_percent(gpu[1]) if gpu else math.nan,
        gpu_clock=float(gpu[2]) * _HZ_PER_MHZ if gpu and gpu[2] else math.nan,
        temperature=max((z for z in zones if math.isfinite(z)), default=math.nan),
        module_power=module_power(watts),
    )


def read_tegrastats(path: Path) -> Trace:
    """Read a trace; lines of something else are left out, and ``problems`` counts them.

    :raises MonitoringError: if the file cannot be read or holds no line of tegrastats
    """
    times: list[float] = []
    states: list[SystemState] = []
    begin = days = 0.0
    strange = 0
    for line in _text(path).splitlines():
        state = state_from_line(line)
        if state is None:
            strange += bool(line.strip())
            continue
        seconds = _time_of_day(line)
        if seconds is None:
            seconds = begin + times[-1] + _PERIOD - days if times else 0.0
        if not times:
            begin = seconds
        if times and seconds + days - begin < times[-1] - _DAY / 2:
            days += _DAY  # past midnight
        # A clock that was set back a little must not turn the trace around.
        times.append(max(seconds + days - begin, times[-1] if times else 0.0))
        states.append(state)
    if not states:
        raise MonitoringError(
            f'{path} holds no line of tegrastats; record one with: tegrastats --logfile FILE'
        )
    problems = (f'{path}: {strange} lines are not of tegrastats',) if strange else ()
    return Trace(tuple(times), tuple(states), None, problems)


def _text(path: Path) -> str:
    return read_bounded(path, _MOST_BYTES, MonitoringError).decode('utf-8', 'replace')


def _time_of_day(line: str) -> float | None:
    match = _TIME.match(line)
    if match is None:
        return None
    hours, minutes, seconds = (int(text) for text in match.groups())
    return 3600.0 * hours + 60.0 * minutes + seconds


def _cores(match: re.Match[str] | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return loads (%) and clocks (Hz); NaN for a core that is off."""
    loads: list[float] = []
    clocks: list[float] = []
    for text in match[1].split(',') if match else ():
        core = _CORE.fullmatch(text.strip())
        megahertz = (core[2] or (match[2] if match else None)) if core else None
        loads.append(_percent(core[1]) if core else math.nan)
        clocks.append(float(megahertz) * _HZ_PER_MHZ if megahertz else math.nan)
    return tuple(loads), tuple(clocks)


def _percent(text: str) -> float:
    value = float(text)
    return value if value <= 100.0 else math.nan

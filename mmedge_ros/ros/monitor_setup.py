"""Parameters of the monitor, its sources, and its messages."""

from __future__ import annotations

import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from mmedge_ros import msg
from mmedge_ros.clock import Clock
from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.monitoring.battery import Battery
from mmedge_ros.monitoring.machine import machine_probes
from mmedge_ros.monitoring.subsystem_status import Status, StatusParameters
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_state import Probe, SystemState
from mmedge_ros.monitoring.trace import TraceProbe, TraceTime
from mmedge_ros.parameter import group, parameter
from mmedge_ros.ros.diagnostics import level_of
from mmedge_ros.ros.messages.conversions import header

_PERIOD = 1.0


@dataclass(frozen=True)
class MonitorParameters:
    """What the monitor reads, and how often."""

    REMOVED: ClassVar[dict[str, str]] = {
        'simulated': 'let trace play a flight of `mmedge simulate`, and set loop',
        'seed': 'it belonged to simulated',
    }

    rate: float = parameter(4.0, 'how often the state is published', 'Hz', 0.1, 50.0)
    slow_period: float = parameter(
        0.5,
        'pause between two readings of a sensor on a bus or behind a firmware: temperatures, '
        'rails, clocks, GPU',
        's',
        0.05,
        60.0,
    )
    battery: bool = parameter(
        True, 'a flight battery is expected on battery_state; its absence is reported'
    )
    battery_age: float = parameter(
        3.0, 'age from which on a message of the battery says nothing any more', 's', 0.1, 600.0
    )
    root: str = parameter('/', 'folder in which proc and sys are')
    trace: str = parameter(
        '',
        'plays the state recorded here in place of that of the machine: a recorded or simulated '
        'flight, or a text of tegrastats; follows the bag player if it plays the same flight',
    )
    loop: bool = parameter(False, 'start a trace over at its end')
    status: StatusParameters = group(StatusParameters)


class Sources(NamedTuple):
    """Where the state comes from: the machine and its battery, or a trace."""

    probes: list[Probe]
    battery: Battery | None = None
    trace_time: TraceTime | None = None
    problems: tuple[str, ...] = ()


def monitor_sources(p: MonitorParameters, clock: Clock) -> Sources:
    """Return the sources that the parameters ask for.

    :raises MmedgeError: if the trace cannot be played
    """
    if not p.trace:
        battery = Battery(clock, p.battery_age)
        return Sources([battery, *machine_probes(SystemFiles(p.root), clock)], battery)
    # Readers of bags are large, and a drone that watches itself needs none.
    from mmedge_ros.replay.recorded_trace import read_trace_file

    trace = read_trace_file(p.trace)
    time = TraceTime(trace, clock)
    return Sources([TraceProbe(trace, time, p.loop)], trace_time=time, problems=trace.problems)


def to_system_state(state: SystemState, stamp_ns: int) -> msg.SystemState:
    """Make the message; unknown throttling becomes false, as the field has no third value."""
    return msg.SystemState(
        header=header(stamp_ns),
        voltage=state.voltage,
        current=state.current,
        power=state.shown_power,
        charge=state.charge,
        cpu=array.array('f', state.cpu),
        gpu=state.gpu,
        memory=state.memory,
        temperature=state.temperature,
        cpu_clock=array.array('f', state.cpu_clock),
        gpu_clock=state.gpu_clock,
        throttled=bool(state.throttled),
    )


class StatusArray:
    """Decides when the statuses are to be published, and makes their message.

    :param name: of the node's status, which those of the parts begin with
    :param missing: says in words what the node itself is missing
    :param figures: the node's own figures
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        missing: Callable[[], list[str]],
        figures: Callable[[], Mapping[str, object]],
    ) -> None:
        self._name = name
        self._clock = clock
        self._missing = missing
        self._figures = figures
        self._told: tuple[object, ...] = ()
        self._told_ns = 0

    def message(self, statuses: Sequence[Status]) -> DiagnosticArray | None:
        """Return a message once a second, and at once when a level has changed."""
        missing = self._missing()
        levels = (level_of(missing), *(status.level for status in statuses))
        now_ns = self._clock.monotonic_ns()
        if levels == self._told and now_ns - self._told_ns < _PERIOD * NS_PER_S:
            return None
        self._told, self._told_ns = levels, now_ns
        own = DiagnosticStatus(
            level=level_of(missing),
            name=self._name,
            message='; '.join(missing) or 'running',
            values=_key_values(self._figures()),
        )
        array_of_all = DiagnosticArray(status=[own, *(self._to_status(s) for s in statuses)])
        array_of_all.header = header(self._clock.now_ns())
        return array_of_all

    def _to_status(self, status: Status) -> DiagnosticStatus:
        return DiagnosticStatus(
            level=bytes([status.level]),
            name=f'{self._name}: {status.subsystem.value}',
            message=status.message,
            values=_key_values(status.values),
        )


def _key_values(values: Mapping[str, object]) -> list[KeyValue]:
    return [KeyValue(key=key, value=str(value)) for key, value in values.items()]

"""Publishes the state of the computer and its supply, and a status of each of its parts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from sensor_msgs.msg import BatteryState

from mmedge_ros import msg
from mmedge_ros.core.clock import Clock
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.monitoring.battery import Battery
from mmedge_ros.monitoring.machine import machine_probes
from mmedge_ros.monitoring.subsystem_status import Status, StatusParameters, SubsystemStatuses
from mmedge_ros.monitoring.system_files import SystemFiles
from mmedge_ros.monitoring.system_monitor import OwnShare, SystemMonitor
from mmedge_ros.monitoring.system_state import Probe
from mmedge_ros.monitoring.trace import TraceProbe, TraceTime
from mmedge_ros.ros.diagnostics import Diagnostics, key_values, node_name, status_name
from mmedge_ros.ros.input_watch import Fault, InputWatch
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time, to_system_state
from mmedge_ros.ros.node_main import program
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock
from mmedge_ros.ros.waited_entities import defer

# s. Nodes publish their status every second.
NODE_SILENCE = 3.0
_JOINING = 0.5


@dataclass(frozen=True)
class MonitorParameters:
    """What the monitor reads, and how often."""

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


class NodeWatch:
    """Listens to the statuses of other nodes, which they publish in the thread that may hang.

    A node that has left the graph is silent by right. One that hangs leaves it too, when the
    middleware takes it for dead; it is named until it is heard again.

    :param monotonic: seconds
    """

    def __init__(self, node: Node, monotonic: Callable[[], float]) -> None:
        self._node = node
        self._own = node.get_fully_qualified_name().lstrip('/')
        self._monotonic = monotonic
        self._heard: dict[str, float] = {}
        self._silent: set[str] = set()
        # It wakes nothing: the watch of the inputs looks every second.
        defer(node.create_subscription(DiagnosticArray, names.DIAGNOSTICS, self._on_statuses, 100))

    def _on_statuses(self, message: DiagnosticArray) -> None:
        for status in message.status:
            name = node_name(status)
            if name and not name.startswith(self._own):
                self._heard[name] = self._monotonic()
                self._silent.discard(name)

    def missing(self) -> list[str]:
        """Name the nodes that are silent and should not be."""
        now = self._monotonic()
        late = {name for name, heard in dict(self._heard).items() if now - heard >= NODE_SILENCE}
        nodes = self._node.get_node_names_and_namespaces() if late else []
        present = {f'{namespace}/{name}'.lstrip('/') for name, namespace in nodes}
        for name in late - self._silent:
            if name in present:
                self._silent.add(name)
            else:
                del self._heard[name]
        return [
            Fault(
                f'{name} gives no sign of life for {now - self._heard[name]:.0f} s: it hangs '
                'or was stopped; start it again'
            )
            for name in sorted(self._silent)
        ]


class MonitorNode(Node):
    """Samples at its rate; sensors that are slow to answer are read beside it."""

    def __init__(self, **node_options: Any) -> None:
        super().__init__('monitor', **node_options)
        self._options = p = declare(self, MonitorParameters)
        self._ros_clock = RosClock(self)
        self._sources = monitor_sources(p, self._ros_clock)
        self._monitor = SystemMonitor(self._sources.probes, self._ros_clock, p.slow_period)
        self._statuses = SubsystemStatuses(p.status)
        self._own_share = OwnShare(self._ros_clock)
        self._published = 0
        self._watch = InputWatch(self, time.monotonic)
        self._nodes = NodeWatch(self, time.monotonic)
        self._diagnostics = Diagnostics(self, self, self._figures, has_timer=False)
        self._states = self.create_publisher(msg.SystemState, names.SYSTEM_STATE, qos.RESULT)
        self._listen()
        self._monitor.start()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name='publisher', daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all threads."""
        self._ended.set()
        self._thread.join(_JOINING)
        self._monitor.stop()

    def _listen(self) -> None:
        for problem in self._sources.problems:
            self.get_logger().warning(problem)
        if self._sources.trace_time is not None:
            self.create_subscription(
                msg.PlaybackState, names.PLAYBACK, self._on_playback, qos.LATCHED
            )
        if self._sources.battery is not None:
            self.create_subscription(
                BatteryState,
                names.BATTERY_STATE,
                self._on_battery,
                **qos.overridable(qos.SENSOR),
            )
            if self._options.battery:
                self._watch.expect('battery', names.BATTERY_STATE, qos.SENSOR, is_optional=True)

    def _on_battery(self, message: BatteryState) -> None:
        if self._sources.battery is not None and self._sources.battery.take(message):
            self._watch.heard('battery')

    def _on_playback(self, message: msg.PlaybackState) -> None:
        if self._sources.trace_time is not None:
            self._sources.trace_time.follow(from_time(message.begin), int(message.offset))

    def _run(self) -> None:
        """Publish at the rate; in a thread, as a timer would wake the executor, at some cost."""
        period = 1.0 / self._options.rate
        due = time.monotonic()
        while not self._ended.is_set() and self.context.ok():
            self._publish()
            # What was missed while the machine stood still is not made up for.
            due = max(due + period, time.monotonic())
            self._ended.wait(due - time.monotonic())

    def _publish(self) -> None:
        sample = self._monitor.sample()
        self._states.publish(to_system_state(sample.state, self._ros_clock.now_ns()))
        self._published += 1
        statuses = self._statuses.update(sample, time.monotonic())
        self._diagnostics.look([self._to_status(status) for status in statuses])

    def _to_status(self, status: Status) -> DiagnosticStatus:
        return DiagnosticStatus(
            level=bytes([status.level]),
            name=f'{status_name(self)}: {status.subsystem.value}',
            message=status.message,
            values=key_values(status.values),
        )

    def missing(self) -> list[str]:
        """Say in words which input or node is missing."""
        return [*self._watch.missing(), *self._nodes.missing()]

    def _figures(self) -> dict[str, object]:
        return {
            'states': self._published,
            'own cpu (% of a core)': f'{self._own_share.percent():.2f}',
        }


main = program(MonitorNode)


if __name__ == '__main__':
    main()

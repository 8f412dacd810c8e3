"""Publishes the state of the computer and its supply, and a status of each of its parts."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import BatteryState

from mmedge_ros import msg
from mmedge_ros.monitoring.subsystem_status import SubsystemStatuses
from mmedge_ros.monitoring.system_monitor import OwnShare, SystemMonitor
from mmedge_ros.ros.diagnostics import status_name
from mmedge_ros.ros.input_watch import InputWatch
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.messages.conversions import from_time
from mmedge_ros.ros.monitor_setup import (
    MonitorParameters,
    StatusArray,
    monitor_sources,
    to_system_state,
)
from mmedge_ros.ros.node_main import run_nodes
from mmedge_ros.ros.node_watch import NodeWatch
from mmedge_ros.ros.parameters import declare
from mmedge_ros.ros.ros_clock import RosClock

_JOINING = 0.5


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
        self._diagnostics = StatusArray(
            status_name(self), self._ros_clock, self._missing, self._figures
        )
        self._states = self.create_publisher(msg.SystemState, names.SYSTEM_STATE, qos.RESULT)
        self._status_output = self.create_publisher(DiagnosticArray, names.DIAGNOSTICS, 10)
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
        diagnostics = self._diagnostics.message(statuses)
        if diagnostics is not None:
            self._status_output.publish(diagnostics)

    def _missing(self) -> list[str]:
        return [*self._watch.missing(), *self._nodes.missing()]

    def _figures(self) -> dict[str, object]:
        return {
            'states': self._published,
            'own cpu (% of a core)': f'{self._own_share.percent():.2f}',
        }


def main(args: list[str] | None = None) -> None:
    """Run the node."""
    sys.exit(run_nodes([MonitorNode], args))


if __name__ == '__main__':
    main()

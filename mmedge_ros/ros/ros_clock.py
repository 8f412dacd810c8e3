"""The clock protocol on a ROS node."""

from __future__ import annotations

import time

from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined]  # here in all versions
from rclpy.node import Node

# Simulated time moves with /clock, not by itself: a wait must look again this often.
_SIMULATED_WAIT = 0.005
_SYSTEM_WAIT = 1.0


def steady_clock() -> Clock:
    """Return a clock for timers that must go on where simulated time stands still."""
    return Clock(clock_type=ClockType.STEADY_TIME)


class RosClock:
    """Instants from the node's clock (system or simulated), durations from the monotonic one."""

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self.simulated = bool(node.get_parameter('use_sim_time').value)

    def now_ns(self) -> int:
        return int(self._clock.now().nanoseconds)

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    @property
    def longest_wait(self) -> float:
        """Seconds after which a wait for an instant must look again."""
        return _SIMULATED_WAIT if self.simulated else _SYSTEM_WAIT

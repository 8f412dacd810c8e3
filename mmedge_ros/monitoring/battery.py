"""The flight battery, from the autopilot's sensor_msgs/BatteryState.

The message counts charging as positive and leaves NaN what is not measured; autopilots also
send 0 V and -0.01 for that. A bridge that lost its autopilot may repeat the last message.
"""

from __future__ import annotations

import math
from typing import Any

from mmedge_ros.core.clock import Clock
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import UNKNOWN, Probe, Reading, Subsystem, SystemState

_MOST_VOLTS = 1000.0
_MOST_AMPERES = 2000.0
_MOST_CELLS = 1000
# float32 and rounding of autopilots.
_ROUNDING = 1e-3


class Battery(Probe):
    """Keeps the newest message until it is too old.

    :param longest_age: s after which a message says nothing any more
    """

    def __init__(self, clock: Clock, longest_age: float) -> None:
        super().__init__('battery_state', Subsystem.BATTERY)
        self._clock = clock
        self._longest_ns = round(longest_age * NS_PER_S)
        self._reading = Reading()
        self._stamp: tuple[int, int] | None = None
        self._received_ns: int | None = None

    def take(self, message: Any) -> bool:
        """Take a message; False for one that repeats the last and so is no news."""
        stamp = int(message.header.stamp.sec), int(message.header.stamp.nanosec)
        if stamp != (0, 0) and stamp == self._stamp:
            return False
        self._stamp = stamp
        self._received_ns = self._clock.monotonic_ns()
        self._reading = battery_reading(message)
        return True

    def read(self) -> Reading:
        if self._received_ns is None:
            raise MonitoringError('no message of the battery yet')
        age_ns = self._clock.monotonic_ns() - self._received_ns
        details = {**self._reading.details, 'age (s)': age_ns / NS_PER_S}
        if age_ns > self._longest_ns:
            words = f'no new message of the battery for {age_ns / NS_PER_S:.1f} s'
            return Reading(UNKNOWN, {'age (s)': age_ns / NS_PER_S}, words)
        return Reading(self._reading.state, details, self._reading.problem)


def battery_reading(message: Any) -> Reading:
    """Return the reading of a BatteryState message; impossible figures are unknown, and named.

    ``present`` is not used: many publishers leave it false beside good figures.
    """
    voltage = _within(message.voltage, _MOST_VOLTS)
    if voltage <= 0.0:
        voltage = math.nan
    # Plus zero, so that a battery at rest has no current of -0.
    current = 0.0 - _within(message.current, _MOST_AMPERES)
    charge = _charge(message)
    unknown = [
        name for name, value in (('voltage', voltage), ('charge', charge)) if math.isnan(value)
    ]
    state = SystemState(voltage=voltage, current=current, power=voltage * current, charge=charge)
    problem = f'the battery does not report its {" and ".join(unknown)}' if unknown else ''
    return Reading(state, _details(message), problem)


def _charge(message: Any) -> float:
    """Return 0..1; from ampere hours where there is no percentage."""
    charge = _within(message.percentage, 1.0 + _ROUNDING)
    if charge >= -_ROUNDING:
        return min(max(charge, 0.0), 1.0)
    left = _within(message.charge, math.inf)
    for whole in (message.capacity, message.design_capacity):
        size = _within(whole, math.inf)
        if size > 0.0 and 0.0 <= left <= size * (1.0 + _ROUNDING):
            return min(left / size, 1.0)
    return math.nan


def _details(message: Any) -> dict[str, float]:
    celsius = _within(message.temperature, 200.0)
    details = {} if math.isnan(celsius) else {'temperature (C)': celsius}
    cells = [_within(volts, _MOST_VOLTS) for volts in list(message.cell_voltage)[:_MOST_CELLS]]
    known = [volts for volts in cells if volts > 0.0]
    if known:
        details |= {'cells': float(len(cells)), 'lowest cell (V)': min(known)}
    return details


def _within(value: Any, most: float) -> float:
    number = float(value)
    return number if math.isfinite(number) and abs(number) <= most else math.nan

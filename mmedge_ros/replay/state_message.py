"""From a SystemState message, received or recorded, to the core's record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.monitoring.temperature import plausible_temperature

MESSAGE_TYPE = 'mmedge_ros/msg/SystemState'

_MOST_CORES = 1024
_FASTEST_HZ = 1e11
_MOST_VOLTS, _MOST_AMPERES, _MOST_WATTS = 1e3, 2e3, 1e6


def state_from_message(message: Any) -> SystemState:
    """Return what a message tells; what cannot be is unknown.

    :raises AttributeError, TypeError, ValueError: for another message
    """
    voltage = _within(message.voltage, 0.0, _MOST_VOLTS)
    power = _within(message.power, -_MOST_WATTS, _MOST_WATTS)
    without_battery = math.isnan(voltage)
    return SystemState(
        voltage=voltage,
        current=_within(message.current, -_MOST_AMPERES, _MOST_AMPERES),
        power=math.nan if without_battery else power,
        charge=_within(message.charge, 0.0, 1.0),
        cpu=_each(message.cpu, 100.0),
        gpu=_within(message.gpu, 0.0, 100.0),
        memory=_within(message.memory, 0.0, 100.0),
        temperature=plausible_temperature(float(message.temperature)),
        cpu_clock=_each(message.cpu_clock, _FASTEST_HZ),
        gpu_clock=_within(message.gpu_clock, 0.0, _FASTEST_HZ),
        throttled=bool(message.throttled),
        module_power=power if without_battery else math.nan,
    )


def _each(values: Sequence[Any], most: float) -> tuple[float, ...]:
    return tuple(_within(value, 0.0, most) for value in list(values)[:_MOST_CORES])


def _within(value: Any, least: float, most: float) -> float:
    number = float(value)
    return number if least <= number <= most else math.nan

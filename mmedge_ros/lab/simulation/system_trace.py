"""The system state of a simulated flight, without its pictures."""

from __future__ import annotations

from mmedge_ros.lab.simulation import SimulationError
from mmedge_ros.lab.simulation.build import build_world
from mmedge_ros.lab.simulation.system_dynamics import SystemDynamics, SystemReading
from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.monitoring.trace import Trace

# As often as a computer looks at itself.
_PERIOD = 0.2


def simulated_trace(scenario: str, seed: int, seconds: float) -> Trace:
    """Return the course of battery and computer over a flight.

    :raises MonitoringError: for an unknown scenario, or an impossible seed or duration
    """
    try:
        dynamics = SystemDynamics(build_world(scenario, seed, seconds))
    except SimulationError as error:
        raise MonitoringError(str(error)) from error
    times = tuple(_PERIOD * n for n in range(int(seconds / _PERIOD) + 1))
    return Trace(times, tuple(state_of(dynamics.system(t)) for t in times))


def state_of(reading: SystemReading) -> SystemState:
    """Return what a simulated computer reads as the record of a real one."""
    return SystemState(
        voltage=reading.battery.voltage,
        current=reading.battery.current,
        power=reading.power,
        charge=reading.battery.charge,
        cpu=tuple(float(load) for load in reading.cpu),
        gpu=reading.gpu,
        memory=reading.memory,
        temperature=reading.temperature,
        cpu_clock=tuple(float(hertz) for hertz in reading.cpu_clock),
        gpu_clock=reading.gpu_clock,
        throttled=reading.throttled,
    )

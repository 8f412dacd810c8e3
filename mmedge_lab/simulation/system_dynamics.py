"""What flying does to battery and computer: sag, load, heat and throttling over a flight.

Supply: an open-circuit voltage that falls with the charge, less the current times the internal
resistance, less a slower loss that builds up under load (a Thevenin model with one RC pair).
Current: the power of a rotor grows with thrust to the power 1.5 and with the climb rate
(momentum theory). Heat: one thermal mass between the load and the air.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.monitoring.system_state import SystemState

STEP = 0.05  # s of the grid that everything is computed on
CORES = 6

_CELLS = 4
# Open-circuit volts of a lithium polymer cell at charges of 0, 10, 20 ... 100 %.
_CELL_VOLTS = (3.3, 3.65, 3.71, 3.75, 3.78, 3.81, 3.86, 3.93, 4.0, 4.08, 4.18)
_GRAVITY = np.array([0.0, 0.0, -9.81])
_INDUCED_SPEED = 5.5  # m/s of air through the rotors in hover
_ELECTRONICS_AMPERES = 1.6
_POLARISATION_SECONDS = 6.0
# Below this the radar's 5 V regulator, fed from the battery, begins to drop out; at
# ``_DROP_OUT_DEPTH`` V below it no scan is left.
RADAR_MIN_VOLTS = 13.6
_DROP_OUT_DEPTH = 0.8
_RADAR_SLOT = 0.05  # s
# The firmware limits the clocks from the first temperature on, until the second.
_HOT, _COOL = 86.0, 83.0  # degree Celsius
_THERMAL_SECONDS = 25.0
_AIR = {'day': 26.0, 'dusk': 18.0, 'night': 10.0, 'lamps': 11.0, 'fog': 8.0}
_CPU_HZ, _CPU_THROTTLED_HZ = 1.51e9, 0.83e9
_GPU_HZ, _GPU_THROTTLED_HZ = 6.25e8, 3.06e8


@dataclass(frozen=True)
class BatteryReading:
    """The flight battery: V, A (positive = discharging), charge 0..1, degree Celsius."""

    voltage: float
    current: float
    charge: float
    temperature: float


class SystemDynamics:
    """The course of battery and computer over one flight, drawn from the world's seed."""

    def __init__(self, world: World) -> None:
        random = generator(world.seed, SeedStream.SYSTEM)
        self._times = np.arange(0.0, world.seconds + STEP, STEP)
        self._current = _current(world, self._times, random)
        self._charge, self._voltage = _voltage(self._current, random)
        self._battery_temperature = random.uniform(24.0, 34.0)
        self._radar_draws = random.uniform(size=int(world.seconds / _RADAR_SLOT) + 2)
        self._load = _draw_load(len(self._times), _AIR[world.scenario.light], random)

    def battery(self, t: float) -> BatteryReading:
        """Return what the battery's monitor reads at an instant."""
        return BatteryReading(
            self._at(self._voltage, t),
            self._at(self._current, t),
            self._at(self._charge, t),
            self._battery_temperature,
        )

    def system(self, t: float) -> SystemState:
        """Return what the computer's monitor reads at an instant."""
        load, battery = self._load, self.battery(t)
        throttled = bool(load.throttled[min(max(int(t / STEP), 0), len(self._times) - 1)])
        return SystemState(
            voltage=battery.voltage,
            current=battery.current,
            power=battery.voltage * battery.current,
            charge=battery.charge,
            cpu=tuple(self._at(core, t) for core in load.cpu),
            gpu=self._at(load.gpu, t),
            memory=self._at(load.memory, t),
            temperature=self._at(load.temperature, t),
            cpu_clock=(_CPU_THROTTLED_HZ if throttled else _CPU_HZ,) * CORES,
            gpu_clock=_GPU_THROTTLED_HZ if throttled else _GPU_HZ,
            throttled=throttled,
        )

    def radar_stutters(self, t: float) -> bool:
        """Return whether the radar's supply fails at an instant, so that a scan is lost.

        The deeper the voltage sags below ``RADAR_MIN_VOLTS``, the more often it does.
        """
        missing = (RADAR_MIN_VOLTS - self._at(self._voltage, t)) / _DROP_OUT_DEPTH
        slot = min(max(int(t / _RADAR_SLOT), 0), len(self._radar_draws) - 1)
        return bool(self._radar_draws[slot] < missing)

    def _at(self, values: FloatArray, t: float) -> float:
        return float(np.interp(t, self._times, values))


def _current(world: World, times: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return the battery's current, (K,) A."""
    states = [world.path.state(float(t)) for t in times]
    velocity = gaussian_filter1d(np.array([s.velocity for s in states]), 0.1 / STEP, axis=0)
    acceleration = np.gradient(velocity, STEP, axis=0)
    thrust = np.linalg.norm(acceleration - _GRAVITY, axis=1) / np.linalg.norm(_GRAVITY)
    climb = np.clip(1.0 + velocity[:, 2] / _INDUCED_SPEED, 0.6, None)
    drag = 1.0 + 0.02 * np.hypot(velocity[:, 0], velocity[:, 1]) ** 2
    power = thrust**1.5 * climb * drag
    on_ground = np.array([s.pose.translation[2] < 0.5 for s in states])
    power[on_ground] *= 0.3
    gusts = 1.0 + 0.05 * _noise(len(times), 0.4, random)
    hover = random.uniform(14.0, 19.0)
    drawn = gaussian_filter1d(hover * power * gusts, 0.06 / STEP, mode='nearest')
    return np.asarray(drawn + _ELECTRONICS_AMPERES, np.float64)


def _voltage(current: FloatArray, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return charge (K,) 0..1 and terminal voltage (K,) V."""
    capacity = 3600.0 * random.uniform(4.0, 5.5)  # ampere seconds
    begin = random.uniform(0.3, 1.0)
    used = np.concatenate([[0.0], np.cumsum(current[:-1])]) * STEP / capacity
    charge = np.clip(begin - used, 0.0, 1.0)
    volts = _CELLS * np.interp(charge, np.linspace(0.0, 1.0, len(_CELL_VOLTS)), _CELL_VOLTS)
    resistance = random.uniform(0.03, 0.062)  # ohm, more in an old or cold battery
    slow = np.empty_like(current)
    state = current[0]
    decay = math.exp(-STEP / _POLARISATION_SECONDS)
    for k, amperes in enumerate(current):
        slow[k] = state
        state = decay * state + (1.0 - decay) * amperes
    ripple = 0.015 * _noise(len(current), 0.1, random)
    return charge, volts - resistance * current - 0.4 * resistance * slow + ripple


@dataclass(frozen=True, eq=False)
class _Load:
    cpu: FloatArray  # (cores, K) %
    gpu: FloatArray
    memory: FloatArray
    temperature: FloatArray
    throttled: NDArray[np.bool_]


def _draw_load(count: int, air: float, random: np.random.Generator) -> _Load:
    level = random.uniform(30.0, 65.0)
    shared = _noise(count, 1.0, random)
    cpu = np.array(
        [
            level + random.normal(0.0, 8.0) + 7.0 * shared + 6.0 * _noise(count, 0.5, random)
            for _ in range(CORES)
        ]
    )
    gpu = random.uniform(25.0, 70.0) + 6.0 * shared + 8.0 * _noise(count, 0.7, random)
    busy = _bursts(count, random)
    cpu = np.clip(cpu + 28.0 * busy, 1.0, 100.0)
    gpu = np.clip(gpu + 22.0 * busy, 0.0, 100.0)
    begin_memory = random.uniform(38.0, 70.0)
    leak = 0.02 * STEP * np.arange(count)  # logs and caches fill up
    memory = np.minimum(begin_memory + leak + 0.6 * _noise(count, 3.0, random), 100.0)
    heat = 0.35 * cpu.mean(axis=0) + 0.3 * gpu
    begin = air + random.uniform(15.0, 64.0)
    temperature, throttled = _heated(air + random.uniform(12.0, 26.0) + heat, begin)
    return _Load(cpu, gpu, memory, temperature, throttled)


def _heated(settles: FloatArray, begin: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return temperature (K,) that follows what it ``settles`` at, and where it throttles."""
    temperature = np.empty_like(settles)
    throttled = np.zeros(len(settles), np.bool_)
    decay = math.exp(-STEP / _THERMAL_SECONDS)
    now, limited = begin, begin > _HOT
    for k, end in enumerate(settles):
        temperature[k], throttled[k] = now, limited
        now = decay * now + (1.0 - decay) * (end - 12.0 * limited)
        limited = now > (_COOL if limited else _HOT)
    return temperature, throttled


def _bursts(count: int, random: np.random.Generator) -> FloatArray:
    """Return 0..1 (K,): now and then another program takes the processor for a while."""
    busy = np.zeros(count)
    at = random.exponential(12.0)
    while at < count * STEP:
        length = random.uniform(1.0, 4.0)
        busy[int(at / STEP) : int((at + length) / STEP)] = 1.0
        at += length + random.exponential(12.0)
    return np.asarray(gaussian_filter1d(busy, 0.15 / STEP, mode='nearest'), np.float64)


def _noise(count: int, seconds: float, random: np.random.Generator) -> FloatArray:
    """Return noise (K,) of unit deviation that changes within ``seconds``."""
    sigma = seconds / STEP
    pad = math.ceil(4.0 * sigma)
    smooth = gaussian_filter1d(random.normal(size=count + 2 * pad), sigma)[pad : pad + count]
    return np.asarray(smooth * math.sqrt(2.0 * math.sqrt(math.pi) * max(sigma, 0.3)), np.float64)

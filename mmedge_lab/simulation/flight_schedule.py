"""When the sensors of a flight measure, and when that is received."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.world import Timing, World
from mmedge_ros.core.data_types import NS_PER_S, FloatArray

# The flight's begin; a multiple of every window grid.
BEGIN_NS = 1_700_000_000 * NS_PER_S

_CAMERA_STREAM, _RADAR_STREAM, _LOSS_STREAM = 33, 34, 35
# Messages of the flight controller: a short serial line to the computer.
_BUS_DELAY, _BUS_DELAY_JITTER = 0.002, 0.0005
# Share of scans that are lost on the radar's serial line.
_LOST_SCANS = 0.003


class Report(NamedTuple):
    """What is reported over a serial line every ``period`` s; ``stream`` draws its delays."""

    period: float
    stream: int


ODOMETRY_REPORT, BATTERY_REPORT, SYSTEM_REPORT = Report(0.01, 36), Report(0.1, 37), Report(0.2, 38)
INERTIAL_REPORT, RANGE_REPORT = Report(0.005, 41), Report(0.05, 42)  # of hard flights


class Instants(NamedTuple):
    """When a sensor measures, (N,) s into the flight, and when that is received, (N,) ns."""

    times: FloatArray
    log_ns: NDArray[np.int64]


def stamp_ns(t: float) -> int:
    """Return the stamp of an instant ``t`` s into the flight."""
    return BEGIN_NS + round(t * NS_PER_S)


def camera_instants(world: World) -> Instants:
    """Return when pictures are taken (mid-exposure) and received."""
    return _instants(world, _CAMERA_STREAM, world.rig.camera_timing)


def radar_instants(world: World) -> Instants:
    """Return when scans are measured (mid-frame) and received."""
    return _instants(world, _RADAR_STREAM, world.rig.radar_timing)


def scans_lost(world: World, count: int) -> NDArray[np.bool_]:
    """Return which of ``count`` scans are lost on their way to the computer."""
    draws = np.random.default_rng((world.seed, _LOSS_STREAM)).random(count)
    return np.asarray(draws < _LOST_SCANS, bool)


def report_instants(world: World, report: Report) -> Instants:
    """Return when something is measured and its report received."""
    timing = Timing(0.0, report.period, 0.0, _BUS_DELAY, _BUS_DELAY_JITTER)
    return _instants(world, report.stream, timing)


def _instants(world: World, stream: int, timing: Timing) -> Instants:
    """Draw when a sensor fires and when its data arrive."""
    random = np.random.default_rng((world.seed, stream))
    count = math.floor((world.seconds - timing.phase) / timing.period) + 1
    fired = timing.phase + timing.period * np.arange(count)
    fired = fired + timing.jitter * random.normal(size=count)
    times = np.asarray(np.clip(fired, 0.0, world.seconds), np.float64)
    arrival = times + timing.delay + random.exponential(1.0, count) * timing.delay_jitter
    # A wire keeps order: what is held up holds up what follows.
    received = BEGIN_NS + np.rint(arrival * NS_PER_S).astype(np.int64)
    return Instants(times, np.maximum.accumulate(received))

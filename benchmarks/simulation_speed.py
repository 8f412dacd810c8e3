"""How fast flights are simulated on one core.

    .venv/bin/python benchmarks/simulation_speed.py [SECONDS]

Prints, for scenarios from empty to crowded, the processor time of one picture, one scan and
everything per second of flight, and the real-time factor: seconds of flight per second of one
core. The target is at least 1. Processor time is counted, so other work on the machine does
not matter much; building the world and the sensors counts as well.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2

from mmedge_ros.lab.simulation.build import build_world
from mmedge_ros.lab.simulation.flight import Sensors, record_flight, standard_sensors

SCENARIOS = (
    'meadow_day_far',
    'park_day_middle',
    'yard_fog_far',
    'street_day_middle',
    'street_lamps_near',
)


class Timed:
    """A method of a sensor, with the processor time it takes."""

    def __init__(self, call: Any) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        begun = time.process_time()
        result = self._call(*arguments)
        self.seconds += time.process_time() - begun
        self.calls += 1
        return result

    @property
    def milliseconds(self) -> float:
        """Mean of a call."""
        return 1e3 * self.seconds / max(self.calls, 1)


def measure(scenario: str, seconds: float, folder: Path) -> tuple[float, float, float, float]:
    """Return milliseconds of a picture, of a scan and of the set-up, and the real-time factor."""
    begun = time.process_time()
    world = build_world(scenario, 3, seconds)
    sensors: Sensors = standard_sensors(world)
    built = time.process_time() - begun
    picture, scan = Timed(sensors.camera.picture), Timed(sensors.radar.scan)
    sensors.camera.picture, sensors.radar.scan = picture, scan  # type: ignore[method-assign]
    record_flight(folder / scenario, world, sensors)
    factor = seconds / (time.process_time() - begun)
    return picture.milliseconds, scan.milliseconds, 1e3 * built, factor


if __name__ == '__main__':
    cv2.setNumThreads(1)
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with TemporaryDirectory() as name:
        for scenario in SCENARIOS:
            image, radar, setup, factor = measure(scenario, length, Path(name))
            print(
                f'{scenario:<20} picture {image:5.1f} ms, scan {radar:4.1f} ms, '
                f'set-up {setup:5.0f} ms, real-time factor {factor:4.2f}'
            )

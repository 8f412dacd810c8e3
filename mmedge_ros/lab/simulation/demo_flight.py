"""The flight that shows what the package does, on any machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mmedge_ros.lab.simulation.flight_folder import FlightDescription, read_description

# Two sidewalks' worth of people, a cyclist and a car, with and without trees in the way.
DEMO_FLIGHT = FlightDescription('street_day_middle', seed=7, seconds=20.0)


def kept_flight(
    folder: Path,
    wanted: FlightDescription,
    on_progress: Callable[[float], None],
    workers: int | None = None,
) -> Path:
    """Return ``folder`` with the wanted flight in it; it is simulated if it is not there yet.

    :param on_progress: told the share done, 0..1, while the flight is simulated
    :param workers: processes that take the pictures; None for as many as are of use
    :raises SimulationError: if it cannot be simulated there
    """
    if read_description(folder) != wanted:
        # The simulator draws with OpenCV and what else; a kept flight needs none of it.
        from mmedge_ros.lab.simulation.flight import simulate_flight, useful_workers

        count = useful_workers(wanted.seconds) if workers is None else workers
        simulate_flight(folder, wanted.scenario, wanted.seed, wanted.seconds, on_progress, count)
    return folder


def cached_demo_flight(on_progress: Callable[[float], None]) -> Path:
    """Return the demo's flight in the user's cache folder.

    :raises SimulationError: if it cannot be simulated there
    """
    cache = os.environ.get('XDG_CACHE_HOME', '')
    folder = Path(cache) if Path(cache).is_absolute() else Path.home() / '.cache'
    # It may be a launch file that asks, and its program need not be one that a process of ours
    # could import.
    return kept_flight(folder / 'mmedge_ros' / 'demo_flight', DEMO_FLIGHT, on_progress, 1)

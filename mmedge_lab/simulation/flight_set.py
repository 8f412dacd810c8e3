"""Many flights at once: those that are already whole are kept, the rest is simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.flight_workers import OnProgress, do_flight_works
from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight import simulate_flight
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description


class PlannedFlight(NamedTuple):
    """A flight to simulate: the name of its folder, and what it is made from."""

    name: str
    scenario: str
    seed: int
    seconds: float
    patrol: bool = False
    condition: str = ''

    @property
    def description(self) -> FlightDescription:
        """What the whole flight is described as."""
        return FlightDescription(
            self.scenario,
            self.seed,
            self.seconds,
            patrol=self.patrol,
            condition=self.condition,
        )


def simulate_set(
    folder: Path,
    flights: Sequence[PlannedFlight],
    jobs: int = 1,
    on_progress: OnProgress | None = None,
) -> list[Path]:
    """Simulate flights into folders below ``folder`` and return these, in the given order.

    A whole flight of the same description is kept, so a stopped run goes on where it was.

    :param jobs: processes to use; 0 for one per processor
    :param on_progress: called with the share done (0..1) and the number of whole flights
    :raises SimulationError: if a flight cannot be simulated; the others' processes are ended
    """
    works = {
        flight.name: partial(_simulated, flight, folder)
        for flight in flights
        if read_description(folder / flight.name) != flight.description
    }
    do_flight_works(works, jobs, on_progress, SimulationError, len(flights) - len(works))
    return [folder / flight.name for flight in flights]


def _simulated(
    flight: PlannedFlight, folder: Path, on_progress: Callable[[float], None] | None = None
) -> None:
    simulate_flight(
        folder / flight.name,
        flight.scenario,
        flight.seed,
        flight.seconds,
        on_progress,
        patrol=flight.patrol,
        condition=flight.condition,
    )

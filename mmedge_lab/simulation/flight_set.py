"""Many flights at once: those that are already whole are kept, the rest is simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.flight import simulate_flight
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description
from mmedge_lab.worker_processes import WorkError, do_works


class PlannedFlight(NamedTuple):
    """A flight to simulate: the name of its folder, and what it is made from."""

    name: str
    scenario: str
    seed: int
    seconds: float
    patrol: bool = False

    @property
    def description(self) -> FlightDescription:
        """What the whole flight is described as."""
        return FlightDescription(self.scenario, self.seed, self.seconds, patrol=self.patrol)


class SetProgress(NamedTuple):
    """How far a set is: share of its seconds 0..1, flights that are whole, and of how many."""

    share: float
    whole: int
    flights: int


def simulate_set(
    folder: Path,
    flights: Sequence[PlannedFlight],
    jobs: int = 1,
    on_progress: Callable[[SetProgress], None] | None = None,
) -> list[Path]:
    """Simulate flights into folders below ``folder`` and return these, in the given order.

    A whole flight of the same description is kept, so a stopped run goes on where it was.

    :param jobs: processes to use; 0 for one per processor
    :raises SimulationError: if a flight cannot be simulated; the others' processes are ended
    """
    shares: dict[str, float] = {}
    for flight in flights:
        name = flight.name
        if name in shares:
            raise SimulationError(f'the set has two flights named {name!r}; rename one')
        shares[name] = float(read_description(folder / name) == flight.description)
    todo = [flight for flight in flights if shares[flight.name] < 1.0]

    def update(name: str = '', share: float = 0.0) -> None:
        if name:
            shares[name] = share
        if on_progress is not None:
            done = sum(shares[flight.name] * flight.seconds for flight in flights)
            total = sum(flight.seconds for flight in flights) or 1.0
            whole = sum(share >= 1.0 for share in shares.values())
            on_progress(SetProgress(done / total, whole, len(shares)))

    update()
    try:
        works = {flight.name: partial(_simulated, flight, folder) for flight in todo}
        do_works(works, jobs, (SimulationError,), update)
    except WorkError as err:
        raise SimulationError(f'flight {err.name}: {err}') from err
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
    )

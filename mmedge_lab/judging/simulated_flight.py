"""Flights that can be judged: what they show is known, because they were simulated."""

from __future__ import annotations

from pathlib import Path

from mmedge_lab.judging import EvaluationError
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description


def simulated_flight(flight: Path) -> FlightDescription:
    """Return what a flight was made from.

    :raises EvaluationError: if it is no flight of `mmedge simulate` with pictures
    """
    made = read_description(flight)
    if made is None or made.trace_only:
        raise EvaluationError(
            f'{flight} is no flight of `mmedge simulate`, so what it shows is not known; name a '
            'set of those'
        )
    return made

"""What `mmedge demo` does: fly, perceive and report, on any machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mmedge_ros.display import StatusLine
from mmedge_ros.replay_command import ReplayRequest, run_replay
from mmedge_ros.simulation.demo_flight import DEMO_FLIGHT, kept_flight
from mmedge_ros.simulation.flight_folder import FlightDescription


def run_demo(
    out: Path, bag: Path | None, scenario: str, seconds: float | None, seed: int | None
) -> None:
    """Play a recording through the live graph and report; without one, simulate a flight first.

    '' and None mean the demo's own scenario, length (s) and seed.
    """
    if bag is None:
        wanted = replace(
            DEMO_FLIGHT,
            scenario=scenario or DEMO_FLIGHT.scenario,
            seconds=DEMO_FLIGHT.seconds if seconds is None else seconds,
            seed=DEMO_FLIGHT.seed if seed is None else seed,
        )
        bag = _simulated(out / 'flight', wanted)
    run_replay(ReplayRequest(bag, out, live=True))


def _simulated(folder: Path, wanted: FlightDescription) -> Path:
    with StatusLine(f'simulating {wanted.seconds:g} s of {wanted.scenario}') as line:
        return kept_flight(folder, wanted, line.advance)

"""What `mmedge simulate` does: list, simulate one flight, or a standard set of them."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from mmedge_lab.simulation.flight import simulate_flight, useful_workers
from mmedge_lab.simulation.flight_folder import add_preview
from mmedge_lab.simulation.flight_set import SetProgress, simulate_set
from mmedge_lab.simulation.scenario import Scenario, scenarios
from mmedge_lab.simulation.standard_sets import SCENES, standard_set
from mmedge_ros.commands.display import StatusLine, console, say
from mmedge_ros.records.ground_truth import PERSON

_PLACES = {
    'meadow': 'a meadow',
    'park': 'a park',
    'street': 'a street',
    'yard': 'a yard between buildings',
}
_LIGHTS = {
    'day': 'by day',
    'dusk': 'at dusk',
    'night': 'at night',
    'lamps': 'at night under lamps',
    'fog': 'in fog',
}


def list_scenarios() -> None:
    """Print every scenario's name and what it is in words."""
    known = scenarios()
    width = max(len(scenario.name) for scenario in known)
    for scenario in known:
        typer.echo(f'{scenario.name:<{width}}  {described(scenario)}')


def described(scenario: Scenario) -> str:
    """Describe a scenario in words."""
    place = _PLACES.get(scenario.surroundings, scenario.surroundings)
    light = _LIGHTS.get(scenario.light, scenario.light)
    band = scenario.band
    return f'{place} {light}, people {band.nearest:g} to {band.farthest:g} m away'


def run_simulate(
    out: Path,
    scenario: str,
    seed: int,
    seconds: float,
    preview: bool = False,
    trace_only: bool = False,
    patrol: bool = False,
) -> None:
    """Simulate one flight and print where it is, and its contact sheet where wanted.

    :raises SimulationError: if it cannot be simulated or written
    """
    with StatusLine(f'flight {out.name}') as line:
        simulate_flight(
            out,
            scenario,
            seed,
            seconds,
            lambda share: line.advance(share, f'{share * seconds:.1f} s'),
            useful_workers(seconds),
            trace_only,
            patrol,
        )
    use = f'to see what is made of it: {shlex.join(["mmedge", "replay", str(out)])}'
    if trace_only:
        use = f'the monitor plays its states with {shlex.quote(f"trace:={out}")}'
    say(f'{seconds:g} s of {scenario}, seed {seed}; {use}')
    typer.echo(out)
    if preview:
        # matplotlib takes a second to import.
        from mmedge_lab.simulation.build import build_world
        from mmedge_lab.simulation.contact_sheet import contact_sheet

        with console.status('drawing the contact sheet'):
            path = add_preview(out, contact_sheet(build_world(scenario, seed, seconds, patrol)))
        typer.echo(path)


def run_simulate_set(out: Path, name: str, jobs: int) -> None:
    """Simulate a standard set, each flight a folder below ``out``, and print the folders.

    :raises SimulationError: if one cannot be simulated or written
    """
    flights = standard_set(name)
    with StatusLine(f'{name} set') as line:
        folders = simulate_set(
            out, flights, jobs, lambda done: line.advance(done.share, _words(done))
        )
    for folder in folders:
        typer.echo(folder)


def run_simulate_scenes(out: Path, jobs: int) -> None:
    """Write the pictures of the standard scenes into ``out``, and print the folder.

    :raises TrainingError: if they cannot be written
    """
    from mmedge_lab.training.scene_pictures import write_scene_pictures

    with StatusLine('scenes') as line:
        pictures = write_scene_pictures(out, SCENES, jobs, line.advance)
    people = pictures.objects[PERSON]
    say(f'{len(pictures)} pictures with {people} people; next: mmedge lab train detector')
    typer.echo(out)


def _words(progress: SetProgress) -> str:
    return f'{progress.whole} of {progress.flights} flights'

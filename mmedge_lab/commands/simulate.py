"""What `mmedge simulate` does: list, simulate one flight, or a standard set of them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, flag, option

if TYPE_CHECKING:
    from mmedge_lab.simulation.scenario import Scenario

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


def simulate(
    out: Annotated[
        Path | None,
        argument('[OUT]', 'folder of the flight, or of the flights of a set'),
    ] = None,
    scenario: Annotated[
        str, option('--scenario', 'NAME', 'what is flown over, see --list \\[park_day_middle]')
    ] = '',
    seconds: Annotated[
        float | None, option('--seconds', 'S', 'length of the flight, s \\[20]')
    ] = None,
    seed: Annotated[
        int | None, option('--seed', 'N', 'the same one gives the same flight \\[1]')
    ] = None,
    trace_only: Annotated[
        bool, flag('--trace-only', 'only battery and computer states, for the monitor')
    ] = False,
    patrol: Annotated[
        bool,
        flag('--patrol', 'fly from station to station, while people leave and come back'),
    ] = False,
    condition: Annotated[
        str, option('--condition', 'NAME', 'what makes it hard, see --list \\[nothing]')
    ] = '',
    which: Annotated[
        bool, flag('--list', 'show the scenarios and conditions in words and end')
    ] = False,
    standard_set: Annotated[
        str,
        option(
            '--set',
            'NAME',
            'a whole set: train, validation, calibration, test, final, long, hard_PART or '
            'patrol_PART; scenes, hard_scenes: the pictures that detectors learn from',
        ),
    ] = '',
    first: Annotated[
        int, option('--first', 'N', 'only the first so many of a set; 0: all', min=0)
    ] = 0,
    jobs: Annotated[
        int, option('--jobs', 'N', 'flights of a set at once; 0: one per processor', min=0)
    ] = 1,
) -> None:
    """Simulate a flight with ground truth, or a standard set of them, as recordings."""
    if which:
        _list_scenarios()
        return
    if out is None:
        raise typer.BadParameter('name the folder to write, or ask for --list')
    chosen = scenario or seconds is not None or seed is not None
    if standard_set and (chosen or trace_only or patrol or condition):
        raise typer.BadParameter(
            '--set decides on scenarios, seconds and seeds, and writes whole flights'
        )
    if (jobs != 1 or first) and not standard_set:
        raise typer.BadParameter(
            '--jobs and --first belong to --set; one flight uses every processor'
        )
    with plain_errors():
        if standard_set.endswith('scenes'):
            _simulate_scenes(out, standard_set, first, jobs)
        elif standard_set:
            _simulate_set(out, standard_set, first, jobs)
        else:
            _simulate_one(
                out,
                scenario or 'park_day_middle',
                1 if seed is None else seed,
                20.0 if seconds is None else seconds,
                trace_only,
                patrol,
                condition,
            )


def _list_scenarios() -> None:
    from mmedge_lab.simulation.hardships import CONDITIONS
    from mmedge_lab.simulation.scenario import scenarios

    known = scenarios()
    width = max(len(scenario.name) for scenario in known)
    for scenario in known:
        typer.echo(f'{scenario.name:<{width}}  {_described(scenario)}')
    for name, words in CONDITIONS.items():
        typer.echo(f'{"--condition " + name:<{width}}  {words}')


def _described(scenario: Scenario) -> str:
    place = _PLACES.get(scenario.surroundings, scenario.surroundings)
    light = _LIGHTS.get(scenario.light, scenario.light)
    band = scenario.band
    return f'{place} {light}, people {band.nearest:g} to {band.farthest:g} m away'


def _simulate_one(
    out: Path,
    scenario: str,
    seed: int,
    seconds: float,
    trace_only: bool,
    patrol: bool,
    condition: str,
) -> None:
    from mmedge_lab.simulation.flight import simulate_flight, useful_workers

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
            condition,
        )
    use = f'to see what is made of it: {shlex.join(["mmedge", "replay", str(out)])}'
    if trace_only:
        use = f'the monitor plays its states with {shlex.quote(f"trace:={out}")}'
    say(f'{seconds:g} s of {scenario}, seed {seed}; {use}')
    typer.echo(out)


def _simulate_set(out: Path, name: str, first: int, jobs: int) -> None:
    from mmedge_lab.simulation.flight_set import simulate_set
    from mmedge_lab.simulation.standard_sets import standard_set

    flights = standard_set(name)[: first or None]
    with StatusLine(f'{name} set') as line:
        folders = simulate_set(
            out,
            flights,
            jobs,
            lambda share, whole: line.advance(share, f'{whole} of {len(flights)} flights'),
        )
    for folder in folders:
        typer.echo(folder)


def _simulate_scenes(out: Path, name: str, first: int, jobs: int) -> None:
    from mmedge_lab.simulation import SimulationError
    from mmedge_lab.simulation.standard_sets import SCENES, hard_scene_set, scene_set
    from mmedge_lab.training.scene_pictures import write_scene_pictures
    from mmedge_ros.replay.ground_truth import PERSON

    sets = {'scenes': scene_set, 'hard_scenes': hard_scene_set}
    if name not in sets:
        raise SimulationError(f'unknown set {name!r}; of scenes there are {" and ".join(sets)}')
    with StatusLine(name) as line:
        planned = sets[name](first or SCENES)
        pictures = write_scene_pictures(out, planned, jobs, line.advance)
    people = pictures.objects[PERSON]
    say(f'{len(pictures)} pictures with {people} people; next: mmedge lab train detector')
    typer.echo(out)

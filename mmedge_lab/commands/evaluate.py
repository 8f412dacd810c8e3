"""What `mmedge lab evaluate` does: how memories of flights are judged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import JobsOption, argument, flag, option

_BUNDLE = 'flight_people'


def evaluate(
    sets: Annotated[
        list[Path],
        argument('SET...', 'folders with one folder per flight', exists=True, file_okay=False),
    ],
    bundle: Annotated[
        str, option('--bundle', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = _BUNDLE,
    most: Annotated[
        int, option('--flights', 'N', 'only so many, spread over the sets; 0: all', min=0)
    ] = 0,
    jobs: JobsOption = 2,
    memory: Annotated[
        bool,
        flag('--memory', 'how well flight memories find what flights saw, into FOLDER/memory'),
    ] = False,
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path('out/evaluate'),
) -> None:
    """Judge how well flight memories find what flights saw."""
    if not memory:
        raise typer.BadParameter('name --memory, which is all there is to judge so')
    with plain_errors():
        from mmedge_lab.commands.evaluate_memory import judge_memory

        report = judge_memory(bundle, _flights(sets, most), out / 'memory', jobs)
    typer.echo(report)


def _flights(sets: Sequence[Path], most: int) -> tuple[tuple[str, Path], ...]:
    from mmedge_lab.judging.bundle_evaluation import flights_of
    from mmedge_lab.training.flight_pictures import flights_in

    return flights_of(named_flights([(folder.name, flights_in(folder)) for folder in sets]), most)


def named_flights(sets: Sequence[tuple[str, Sequence[Path]]]) -> tuple[tuple[str, Path], ...]:
    """Give flights unique names: with that of their set where there are several sets.

    :raises EvaluationError: if two are named the same
    """
    from mmedge_lab.judging import EvaluationError

    named = [
        (flight.name if len(sets) == 1 else f'{name}/{flight.name}', flight)
        for name, flights in sets
        for flight in flights
    ]
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise EvaluationError(f'the sets have two flights named {twice[0]!r}; name each set once')
    return tuple(named)

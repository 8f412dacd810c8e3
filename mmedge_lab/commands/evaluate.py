"""What `mmedge lab evaluate` does: how memories of flights and answers about them are judged."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import JobsOption, argument, existing_file, flag, option

_BUNDLE = 'flight_people'


def evaluate(
    sets: Annotated[
        list[Path],
        argument('SET...', 'folders with one folder per flight', exists=True, file_okay=False),
    ],
    bundle: Annotated[
        str, option('--bundle', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = _BUNDLE,
    profile: Annotated[
        Path | None, existing_file('--profile', 'service times from a device profile')
    ] = None,
    most: Annotated[
        int, option('--flights', 'N', 'only so many, spread over the sets; 0: all', min=0)
    ] = 0,
    jobs: JobsOption = 2,
    memory: Annotated[
        bool,
        flag('--memory', 'how well flight memories find what flights saw, into FOLDER/memory'),
    ] = False,
    questions: Annotated[
        bool,
        flag('--questions', 'how many questions are answered rightly, into FOLDER/questions'),
    ] = False,
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path('out/evaluate'),
) -> None:
    """Judge what flights are remembered by: either --memory or --questions."""
    if memory == questions:
        raise typer.BadParameter('name either --memory or --questions')
    if memory and profile is not None:
        raise typer.BadParameter('memory is judged without service times', param_hint='--profile')
    with plain_errors():
        flights = _flights(sets, most)
        if memory:
            from mmedge_lab.commands.evaluate_memory import judge_memory

            report = judge_memory(bundle, flights, out / 'memory', jobs)
        else:
            from mmedge_lab.commands.evaluate_questions import judge_questions

            own = ('--bundle', bundle) if bundle != _BUNDLE else ()
            command = shlex.join(['mmedge', 'lab', 'evaluate', *map(str, sets), *own])
            report = judge_questions(
                *(bundle, tuple(sets), flights, out / 'questions', profile, jobs),
                f'{command} --questions',
            )
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

"""`mmedge ask`: questions about a flight, answered from what was perceived."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.options import argument, flag, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts
from mmedge_ros.ros.graph.options import UP

if TYPE_CHECKING:
    from mmedge_ros.questions.answer import Answer
    from mmedge_ros.questions.language_model import LanguageModel
    from mmedge_ros.questions.selection import KnownFlight

_MOST_SHOWN = 12
# Nobody waits longer for a model, s.
_LONGEST = 600.0


@takes(UP, only=('model', 'projector'))
def ask(
    flight: Annotated[
        Path,
        option('--flight', 'RECORDING', 'rosbag2 folder, a single .mcap, or a video', exists=True),
    ],
    questions: Annotated[
        list[str] | None,
        argument(
            '[QUESTION]...',
            'such as "how many people within 20 m in the last minute?"; none: one a line of '
            'standard input',
        ),
    ] = None,
    detector: Annotated[
        str, option('--detector', 'BUNDLE', 'what detects \\[what suits the recording]')
    ] = '',
    as_json: Annotated[bool, flag('--json', 'answers as JSON on standard output')] = False,
    within: Annotated[
        float,
        option('--within', 'S', 'a model answers each question in this time, or not at all'),
    ] = 30.0,
    **shared: Any,
) -> None:
    """Answer questions about a recording: how many, was there, which, how fast, which of two.

    It is replayed once for all questions. Looks are those of its memory (mmedge memory build).
    """
    model, projector = shared['model'], shared['projector']
    if not 0.0 < within <= _LONGEST:
        raise typer.BadParameter(f'name 0 to {_LONGEST:.0f} s', param_hint='--within')
    with plain_errors():
        from mmedge_ros.memory.store import memory_folder
        from mmedge_ros.questions.answering import ask as answer_to
        from mmedge_ros.questions.language_model import language_model
        from mmedge_ros.questions.looks import with_looks
        from mmedge_ros.questions.model_client import is_endpoint
        from mmedge_ros.questions.observed_flight import observe_flight

        if projector and (not model or is_endpoint(model)):
            raise typer.BadParameter('goes with --model GGUF', param_hint='--mmproj')
        opened = language_model(model, Path(projector) if projector else None) if model else None
        with StatusLine(f'watching {flight.name}') as line:
            known = observe_flight(str(flight), detector, line.advance)
        memory = memory_folder(flight)
        if memory.exists():
            known = with_looks(known, memory, detector)
        for problem in known.problems:
            say(f'note: {problem}')
    content = []
    for question in questions or _typed():
        one = answer_to(question, known)
        facts = {'question': question, **_facts(one)}
        if not as_json:
            _print(question if len(questions or ()) > 1 else '', one)
        if opened is not None:
            said = _said(opened, question, one, known, flight, within)
            facts.update(said)
            if not as_json:
                words = f'says: {said["model"]}' if said['model'] else ''
                print_parts(f'the model {words or "says nothing: " + said["model_refused"]}')
        content.append(facts)
    if as_json:
        typer.echo(json.dumps(content, indent=2, allow_nan=False))
    if content and opened is None and all(facts['refused'] for facts in content):
        raise typer.Exit(1)


def _typed() -> Iterator[str]:
    """Yield the lines of standard input that say something."""
    if sys.stdin.isatty():
        say('one question a line; Ctrl-D ends')
    yield from filter(None, map(str.strip, sys.stdin))


def _said(
    model: LanguageModel,
    question: str,
    one: Answer,
    known: KnownFlight,
    flight: Path,
    within: float,
) -> dict[str, Any]:
    """Ask the model after the structured answer; say what it said, or why it said nothing."""
    from mmedge_ros.memory.store import memory_folder
    from mmedge_ros.questions.language_model import ModelAnswer, explain
    from mmedge_ros.questions.looks import pictures_of_views
    from mmedge_ros.questions.model_prompt import flight_facts

    with StatusLine('asking the model') as line:
        said = explain(
            question,
            flight_facts(one, known.observations),
            pictures_of_views(memory_folder(flight), one),
            time.monotonic() + within,
            model,
            lambda phase: line.advance(None, phase.value),
        )
    if isinstance(said, ModelAnswer):
        return {'model': said.text, 'model_tracks': list(said.tracks), 'model_refused': None}
    return {'model': None, 'model_tracks': [], 'model_refused': said.reason}


def _facts(one: Answer) -> dict[str, Any]:
    """Return an answer for other programs; null where something is not known."""
    facts = asdict(one)
    facts['evidence'] = [_known(evidence._asdict()) for evidence in one.evidence]
    facts['refused'] = one.refused or None
    return _known(facts)


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts without what is no number, which JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }


def _print(question: str, one: Answer) -> None:
    rows = one.evidence[:_MOST_SHOWN]
    if question:
        print_parts(f'\n{question}')
    if one.refused:
        print_parts(f'not answered: {one.refused}')
        return
    print_parts(one.text)
    if one.watched is not None and one.watched < 1.0:
        print_parts(f'The camera saw {one.watched:.0%} of that time.')
    if not rows:
        return
    table = new_table('', 'track', 'what', 'when, s', 'closest, m', 'at, s', 'views')
    for row in rows:
        away = None if row.distance is None else f'{row.distance:.1f} +- {row.deviation:.1f}'
        at = None if row.at is None else f'{row.at:.1f}'
        views = ', '.join(map(str, row.views)) or None
        add_row(table, row.track, row.label, f'{row.begin:.1f} to {row.end:.1f}', away, at, views)
    print_parts(table)
    if len(one.evidence) > len(rows):
        say(f'{len(one.evidence) - len(rows)} more tracks; --json has all')

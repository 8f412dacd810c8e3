"""Replays a recording as `mmedge replay` does, and holds what came of it against the promises.

Whatever the input: a sentence and exit code 1, or a report; never a traceback, never a
warning of the libraries, and nothing in the report that is not a number.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.replay_run import ReplayRequest, run_replay

Message = tuple[str, int, Any]


@dataclass(frozen=True)
class Outcome:
    """How a replay ended: its exit code, what it said to the terminal, and its report."""

    code: int
    said: str
    folder: Path

    @property
    def report(self) -> dict[str, Any]:
        text = (self.folder / 'report.json').read_text()
        found: dict[str, Any] = json.loads(text, parse_constant=_refuse)
        return found

    @property
    def decisions(self) -> list[str]:
        """The lines of the decision log."""
        return (self.folder / 'decisions.jsonl').read_text().splitlines()

    @property
    def problems(self) -> str:
        return '\n'.join(self.report['problems'])

    def units(self, modality: str, count: str) -> int:
        number: int = self.report['units'][modality][count]
        return number

    @property
    def sentence(self) -> str:
        """What was said when the replay failed."""
        (found,) = re.findall(r'mmedge: (.*)', self.said)
        return str(found)


def replay(bag: Path, out: Path, *, drawn: bool = False, **options: Any) -> Outcome:
    """Replay in this process, without what the report draws unless that is asked for.

    :param options: those of `ReplayRequest`
    """
    said, printed, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(printed),
        warnings.catch_warnings(),
        pytest.MonkeyPatch.context() as patch,
    ):
        if not drawn:
            patch.setattr('mmedge_ros.report.figures.draw_figures', lambda *_: [])
        warnings.simplefilter('error', RuntimeWarning)
        try:
            with plain_errors():
                run_replay(ReplayRequest(bag=str(bag), out=out, show_pictures=drawn, **options))
        except typer.Exit as end:
            code = end.exit_code
    assert all(c.isprintable() or c == '\n' for c in said.getvalue())
    return Outcome(code, said.getvalue(), out)


def reported(outcome: Outcome, *patterns: str) -> Outcome:
    """Check a run that went on: its report is sound, and tells of every pattern."""
    assert outcome.code == 0, outcome.said
    _check_report(outcome)
    told(outcome, *patterns)
    return outcome


def told(outcome: Outcome, *patterns: str) -> None:
    """Check that report.json and report.html tell of every pattern."""
    page = html.unescape((outcome.folder / 'report.html').read_bytes().decode())
    problems = outcome.report['problems']
    for pattern in patterns:
        found = [problem for problem in problems if re.search(pattern, problem)]
        assert found, f'no problem tells of {pattern!r}, only {problems}'
        assert found[0][:300] in page


def refused(outcome: Outcome, pattern: str) -> None:
    """Check a run that could not be made: one sentence, and no report."""
    assert outcome.code == 1
    assert re.search(pattern, outcome.sentence), outcome.sentence
    assert not (outcome.folder / 'report.json').exists()


def each(messages: list[Message], topic: str, change: Callable[[int, Any], Any]) -> list[Message]:
    """Replace the messages of a topic by ``change(number, message)``."""
    changed, number = [], 0
    for name, log_ns, message in messages:
        if name == topic:
            message = change(number, message)
            number += 1
        changed.append((name, log_ns, message))
    return changed


def _check_report(outcome: Outcome) -> None:
    report = outcome.report
    assert report['decisions'] == len(outcome.decisions) > 0
    for counts in report['units'].values():
        settled = [counts[n] for n in ('encoded', 'failed', 'dropped', 'skipped', 'thinned')]
        assert counts['received'] == sum(settled)
    for line in outcome.decisions:
        for track in json.loads(line, parse_constant=_refuse)['tracks']:
            assert None not in [*track['position'], *track['velocity'], *(track['box'] or [])]


def _refuse(name: str) -> None:
    raise AssertionError(f'{name} is not JSON')

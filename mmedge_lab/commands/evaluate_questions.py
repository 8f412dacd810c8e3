"""What `mmedge lab evaluate --questions` does: how often questions are answered rightly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmedge_lab.commands.evaluate_memory import estimate_words
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = 'questions'
# Of one processor for each flight of ten seconds, s: it is replayed once.
SECONDS_EACH = 10.0


def judge_questions(
    bundle: str,
    sets: tuple[Path, ...],
    flights: tuple[tuple[str, Path], ...],
    out: Path,
    profile: Path | None,
    jobs: int,
    command: str,
) -> Path:
    """Ask about flights, print tables, and return where the report is."""
    from mmedge_lab.judging.question_accuracy import QuestionRequest, evaluate_questions
    from mmedge_ros.encoding.bundle.default_model import default_detector
    from mmedge_ros.report.report_files import REPORT, require_writable

    require_writable(out)
    request = QuestionRequest(
        bundle=default_detector(bundle),
        sets=tuple(path.name for path in sets),
        flights=flights,
        out=out,
        profile=str(profile or ''),
        jobs=jobs,
        command=command,
    )
    with StatusLine(f'watching with {request.bundle.name}') as line:
        report = evaluate_questions(
            request, lambda share, whole: line.advance(share, f'{whole} of {len(flights)}')
        )
    print_parts(*_tables(report))
    for sentence in _sentences(report):
        say(sentence)
    return out / REPORT


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    columns = ('', 'questions', 'right (95 %)', 'true tracks', 'usual answer', 'gain (95 %)')
    table = new_table('questions answered rightly', *columns)
    for name, row in {**report['kinds'], 'all': report['all']}.items():
        estimates = (row[key] for key in ('ours', 'true', 'usual', 'ours_minus_usual'))
        add_row(table, name, row['questions'], *map(estimate_words, estimates))
    yield table
    table = new_table('\nby form', '', 'questions', 'right', 'true tracks', 'usual answer')
    for name, row in report['all']['forms'].items():
        cells = (f'{row[key]:.2f}' for key in ('ours', 'true', 'usual'))
        add_row(table, name, row['questions'], *cells)
    yield table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    yield f'refused: {estimate_words(report["all"]["refused"])}'
    for problem in report['problems']:
        yield f'note: {problem}'
    for verdict in report['verdicts']:
        found = verdict['found']
        words = estimate_words(found) if 'low' in found else f'{found["value"]}'
        yield f'{verdict["verdict"]}: {verdict["target"]}: {words}'

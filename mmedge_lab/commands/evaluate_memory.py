"""What `mmedge lab evaluate --memory` does: how well flight memories find what flights saw."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = 'memory'
# Of one processor for each flight, s.
SECONDS_EACH = 10.0


def judge_memory(bundle: str, flights: tuple[tuple[str, Path], ...], out: Path, jobs: int) -> Path:
    """Judge the memories of flights, print tables, and return where the report is."""
    from mmedge_lab.judging.memory_rows import evaluate_memory
    from mmedge_ros.encoding.bundle.default_model import default_detector
    from mmedge_ros.report.report_files import REPORT, require_writable

    require_writable(out)
    folder = default_detector(bundle)
    with StatusLine(f'remembering with {folder.name}') as line:
        report = evaluate_memory(
            folder,
            flights,
            out,
            jobs,
            lambda share, whole: line.advance(share, f'{whole} of {len(flights)}'),
        )
    print_parts(*_tables(report))
    for sentence in _sentences(report):
        say(sentence)
    return out / REPORT


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    parts = (('words', 'in words'), ('by_light', 'in words, by light'), ('examples', 'by example'))
    for part, title in parts:
        heads = ('questions', 'hit@10 (95 %)', 'hit@1', f'{report["own"]} finds more')
        table = new_table(f'\n{title}', '', *heads)
        for name, row in report[part].items():
            figures = (row[figure] for figure in ('hit_10', 'hit_1', 'memory_more'))
            cells = (f'{row["questions"]:.0f}', *map(estimate_words, figures))
            add_row(table, name.replace('_', ' '), *cells)
        yield table
    table = new_table('\nembedding a view', '', 'ms')
    for name, milliseconds in report['costs']['embedding_ms'].items():
        add_row(table, name.replace('_', ' '), f'{milliseconds:.2f}')
    yield table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    costs, scrubbing = report['costs'], report['scrubbing']
    if scrubbing is not None:
        asking, pictures = scrubbing['asking'], scrubbing['scrubbing']
        yield (
            f'{scrubbing["questions"]} questions to one flight each: looked at until found, '
            f'thumbnails of the answer {asking["median"]:.0f} (mean {asking["mean"]:.1f}), '
            f'pictures at one a second {pictures["median"]:.0f} (mean {pictures["mean"]:.1f})'
        )
    yield (
        f'{costs["bytes_per_item"]:.0f} bytes a view; a second of flight takes '
        f'{costs["build_s_per_s"]:.2f} s of a processor to build, at most {costs["peak_mb"]:.0f} '
        f'MB; a question to {costs["views"]} views takes {costs["question_ms"]:.0f} ms'
    )
    if not sum(row['questions'] for row in report['examples'].values()):
        yield (
            'note: no two flights show the same people in another light, so nothing is asked by '
            'example'
        )


def estimate_words(values: dict[str, float | None]) -> str:
    """Say a figure and its interval."""
    if values['value'] is None:
        return '-'
    if values['low'] is None:
        return f'{values["value"]:.3f}'
    return f'{values["value"]:.3f} ({values["low"]:.3f} to {values["high"]:.3f})'

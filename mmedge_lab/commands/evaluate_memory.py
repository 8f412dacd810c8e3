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
# Of one processor for each flight, s: it is replayed twice.
SECONDS_EACH = 20.0


def judge_memory(
    bundle: str,
    sets: tuple[Path, ...],
    flights: tuple[tuple[str, Path], ...],
    out: Path,
    crops: Path | None,
    jobs: int,
    command: str,
) -> Path:
    """Judge the memories of flights, print tables, and return where the report is."""
    from mmedge_lab.judging.memory_report import MemoryRequest, evaluate_memory
    from mmedge_lab.training.colour_ridge import colour_ridge
    from mmedge_ros.encoding.bundle.default_model import default_detector
    from mmedge_ros.report.energy import EnergyModel
    from mmedge_ros.report.report_files import REPORT, require_writable

    require_writable(out)
    request = MemoryRequest(
        bundle=default_detector(bundle),
        sets=tuple(path.name for path in sets),
        flights=flights,
        out=out,
        watts=EnergyModel().busy,
        jobs=jobs,
        ridge=None if crops is None else colour_ridge(crops),
        command=command,
    )
    with StatusLine(f'remembering with {request.bundle.name}') as line:
        report = evaluate_memory(
            request, lambda share, whole: line.advance(share, f'{whole} of {2 * len(flights)}')
        )
    print_parts(*_tables(report))
    for sentence in _sentences(report):
        say(sentence)
    return out / REPORT


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    words = report['words']
    yield _rows(f'in words: {words["questions"]:.0f} questions', words['rows'])
    for factor, strata in words['strata'].items():
        table = new_table(f'\nin words, by {factor}', '', 'questions', 'hit@10 (95 %)', 'hit@1')
        for name, row in strata.items():
            count = f'{row["questions"]:.0f}'
            add_row(table, name, count, estimate_words(row['hit_10']), _value(row['hit_1']))
        yield table
    refining = report['refining']
    table = new_table(
        f'\n{refining["from"]}, refined to {refining["to"]}', 'refined', 'hit@10 (95 %)', 'hit@1'
    )
    for count, row in refining['rows'].items():
        add_row(table, count, estimate_words(row['hit_10']), _value(row['hit_1']))
    yield table
    examples = report['examples']
    if examples is not None:
        yield _rows(f'\nby example: {examples["questions"]} questions', examples['rows'])
    costs = report['costs']
    table = new_table(
        '\nembedding', '', 'objects/s', 'ms an object', f'mJ (model: {costs["watts"]:g} W)'
    )
    for name, row in costs['embedding'].items():
        cells = (row['objects_per_s'], row['ms_per_object'], row['mj_per_object'])
        add_row(table, name, *(f'{cell:.3g}' for cell in cells))
    yield table


def _rows(title: str, rows: dict[str, Any]) -> Table:
    table = new_table(title, '', 'hit@10 (95 %)', 'hit@1 (95 %)', 'memory - this, hit@10')
    for row in rows.values():
        lost = estimate_words(row['hit_10_of_memory_minus_this'])
        add_row(
            table, row['words'], estimate_words(row['hit_10']), estimate_words(row['hit_1']), lost
        )
    return table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    costs = report['costs']
    build, stored, query = costs['build'], costs['bytes'], costs['query']
    causes = ', '.join(f'{name} {share:.1%}' for name, share in report['words']['causes'].items())
    scrubbing = report['scrubbing']
    by_asking, by_scrubbing = scrubbing['asking'], scrubbing['scrubbing']
    yield (
        f'{scrubbing["questions"]} questions to one flight each: looked at until found, '
        f'thumbnails of the answer {by_asking["median"]:.0f} (mean {by_asking["mean"]:.1f}), '
        f'pictures at one a second {by_scrubbing["median"]:.0f} (mean {by_scrubbing["mean"]:.1f})'
    )
    yield f'of all questions in words, not answered for: {causes}'
    yield (
        f'{stored["per_item"]:.0f} bytes an item; {build["flight_s"]:.0f} s of flight took '
        f'{build["cpu_s"]:.0f} s of a processor to build, at most {build["peak_rss_mb"]:.0f} MB '
        f'each; a question to {query["items"]} items {query["first_ms"]:.0f} ms at first, '
        f'{query["words_ms"]:.0f} ms then, an example {query["example_ms"]:.0f} ms'
    )
    for problem in report['problems']:
        yield f'note: {problem}'
    for verdict in report['verdicts']:
        yield f'{verdict["verdict"]}: {verdict["target"]}: {estimate_words(verdict["found"])}'


def estimate_words(values: dict[str, float | None]) -> str:
    """Say a figure and its interval."""
    if values['low'] is None:
        return _value(values)
    return f'{_value(values)} ({values["low"]:.3f} to {values["high"]:.3f})'


def _value(values: dict[str, float | None]) -> str:
    return '-' if values['value'] is None else f'{values["value"]:.3f}'

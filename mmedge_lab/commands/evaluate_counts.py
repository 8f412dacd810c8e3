"""What `mmedge lab evaluate --counts` does: how well stated ranges hold the number of people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

FOLDER = 'counts'
# Of one processor for each flight, s.
SECONDS_EACH = 10.0
_FIGURES = {
    'coverage': 'holds (95 %)',
    'width': 'width',
    'score': 'interval score',
    'error': 'error of the best',
}


def judge_counts(
    bundle: str,
    sets: tuple[Path, ...],
    flights: tuple[tuple[str, Path], ...],
    out: Path,
    profile: Path | None,
    jobs: int,
    command: str,
) -> Path:
    """Judge counts of people in flights, print tables, and return where the report is."""
    from mmedge_lab.judging.count_report import CountRequest, evaluate_counts
    from mmedge_ros.encoding.bundle.default_model import default_detector
    from mmedge_ros.report.report_files import REPORT, require_writable

    require_writable(out)
    request = CountRequest(
        bundle=default_detector(bundle),
        sets=tuple(path.name for path in sets),
        flights=flights,
        out=out,
        profile=str(profile or ''),
        jobs=jobs,
        command=command,
    )
    with StatusLine(f'observing with {request.bundle.name}') as line:
        report = evaluate_counts(
            request, lambda share, whole: line.advance(share, f'{whole} of {len(flights)}')
        )
    print_parts(*_tables(report))
    for problem in report['problems']:
        say(f'note: {problem}')
    for verdict in report['verdicts']:
        say(f'{verdict["verdict"]}: {verdict["target"]}: {_estimate(verdict["found"])}')
    return out / REPORT


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    people = report['people']
    titles = {
        'rows': f'{report["windows"]} windows with {people["mean"]:.1f} people each',
        'with_true_tracks': '\nwith true tracks in place of ours',
        'with_broken_tracks': '\nwith tracks that are broken off every 4 s',
    }
    for kind, title in titles.items():
        table = new_table(title, '', *_FIGURES.values(), 'best is right')
        for row in report[kind].values():
            add_row(table, row['words'], *_cells(row), _value(row['exact']))
        yield table
    for factor, strata in report['strata'].items():
        table = new_table(f'\nstated ranges by {factor}', '', 'windows', *_FIGURES.values())
        for name, row in strata.items():
            add_row(table, name, str(row['windows']), *_cells(row))
        yield table


def _cells(row: dict[str, Any]) -> list[str]:
    first, *others = (row[figure] for figure in _FIGURES)
    return [_estimate(first), *map(_value, others)]


def _estimate(values: dict[str, float | None]) -> str:
    if values['low'] is None:
        return _value(values)
    return f'{_value(values)} ({values["low"]:.3f} to {values["high"]:.3f})'


def _value(values: dict[str, float | None]) -> str:
    return '-' if values['value'] is None else f'{values["value"]:.3f}'

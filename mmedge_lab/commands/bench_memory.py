"""What `mmedge lab bench memory` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, flag, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

REPORT = 'memory.json'
_FIGURES = ('words', 'examples')


def memory(
    crops: Annotated[
        Path,
        option(
            '--crops',
            'FOLDER',
            'crops that `train recogniser --crops` keeps',
            exists=True,
            file_okay=False,
        ),
    ],
    bundle: Annotated[
        str,
        argument('BUNDLE', 'bundle with a recogniser that embeds, or its name'),
    ] = 'flight_people',
    large: Annotated[
        str,
        option(
            '--large', 'BUNDLE', 'whose largest camera level is loaded stage by stage; "": none'
        ),
    ] = 'fused_people',
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}')] = Path(
        'out/bench-memory'
    ),
    watts: Annotated[
        float,
        option('--watts', 'W', 'of a busy core, for joules: a model', min=0.01, max=1000.0),
    ] = 3.0,
    quick: Annotated[
        bool,
        flag('--quick', 'few galleries, crops and rounds: shows that it runs'),
    ] = False,
) -> None:
    """Compare the parts of Reminisce with their controls: what is found, time and memory."""
    with plain_errors():
        from mmedge_lab.rivals.reminisce.bench import QUICK, Scale, run_parts_bench
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import require_writable, write_files

        folder = default_detector(bundle)
        loaded = default_detector(large) if large else None
        require_writable(out)
        with StatusLine(f'benching {folder.name}') as line:
            scale = QUICK if quick else Scale()
            report = {
                'bundle': folder.name,
                'quick': quick,
                **run_parts_bench(folder, crops, loaded, scale, watts, line.advance),
            }
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    print_parts(*_tables(report))
    for sentence in _sentences(report):
        say(sentence)
    typer.echo(out / REPORT)


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    table = new_table('\nhit@10 by words and by example (95 %)', 'row', *_FIGURES, 'ms', 'bytes')
    for name, row in report['rows'].items():
        more = [row[fact] and f'{row[fact]:.3g}' for fact in ('ms', 'bytes') if fact in row]
        add_row(table, name, *(_interval(row[figure], 1.0, 3) for figure in _FIGURES), *more)
    yield table
    table = new_table('\npoints more than the control (95 %)', 'row', *_FIGURES, 'control')
    for one in report['comparisons']:
        figures = (_interval(one[figure], 100.0, 1) for figure in _FIGURES)
        add_row(table, one['row'], *figures, one['control'])
    yield table
    heads = ('exit', 'order', 'batch', 'items/s', 'mJ (model)', 'times the end', 'as they come')
    table = new_table('\ntime (least to greatest of the rounds)', *heads)
    for row in report['throughput']:
        ratios = (_interval(row[name], 1.0, 2) for name in ('faster', 'gain'))
        speed = (f'{row["per_s"]:.0f}', f'{row["mj"]:.2f}')
        add_row(table, row['way'], row['order'], row['batch'], *speed, *ratios)
    yield table
    title = '\na large encoder (medians of the rounds)'
    table = new_table(title, 'pictures', 'way', 'pictures/s', 'processor ms', 'peak MB')
    for row in report['loading']:
        cells = [f'{row[name]:.1f}' for name in ('per_s', 'processor_ms', 'peak_mb')]
        add_row(table, row['pictures'], row['way'], *cells)
    if report['loading']:
        yield table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    crops = report['crops']
    yield (
        f'{crops["judged"]} crops of {report["objects"]} objects in {report["scenes"]} scenes '
        f'judge; {crops["learned"]} are fitted on, {crops["held"]} choose margins'
    )
    yield (
        f'the predictor is right in {100 * report["predictor_right"]:.0f} % of the items, and the '
        f'exit that most need in {100 * report["most_frequent_right"]:.0f} %'
    )
    kept = ', '.join(f'{words} {count}' for words, count in report['healed_groups_kept'].items())
    yield f'groups of exits that healing keeps: {kept}'
    if report['quick']:
        yield 'note: this was quick, its figures say nothing'


def _interval(estimate: dict[str, float | None], factor: float, digits: int) -> str | None:
    value, low, high = (estimate[name] for name in ('value', 'low', 'high'))
    if value is None:
        return None
    words = f'{factor * value:.{digits}f}'
    if low is None or high is None:
        return words
    return f'{words} ({factor * low:.{digits}f} to {factor * high:.{digits}f})'

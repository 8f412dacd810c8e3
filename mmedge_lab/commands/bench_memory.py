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
_FIGURES = ('words', 'examples', 'siblings')


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
        from mmedge_lab.rivals.reminisce.parts_bench import QUICK, Scale, run_parts_bench
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
    print_parts(_rows(report), _comparisons(report), _times(report))
    if report['loading']:
        print_parts(_loading(report))
    for sentence in _sentences(report):
        say(sentence)
    typer.echo(out / REPORT)


def _rows(report: dict[str, Any]) -> Table:
    table = new_table(
        '\nwhat is found: hit@10 by words and by example, hit@1 among the objects of a scene',
        'row',
        *_FIGURES,
        'ms',
        'bytes',
    )
    for name, row in report['rows'].items():
        figures = [_number(row[figure]['value'], 3) for figure in _FIGURES]
        more = (_number(row.get('ms'), 2), _number(row.get('bytes'), 0))
        add_row(table, f'{row["part"]} {name}', *figures, *more)
    return table


def _comparisons(report: dict[str, Any]) -> Table:
    table = new_table(
        '\npoints more than the control (95 %)', 'row', *_FIGURES, 'verdict', 'control'
    )
    for one in report['comparisons']:
        figures = [_points(one[figure]) for figure in _FIGURES]
        add_row(table, f'{one["part"]} {one["row"]}', *figures, one['verdict'], one['control'])
    return table


def _times(report: dict[str, Any]) -> Table:
    table = new_table(
        '\ntime (least to greatest of the rounds)',
        'exit',
        'order',
        'batch',
        'items/s',
        'mJ (model)',
        'times as fast as the end',
        'as they come',
    )
    for row in report['throughput']:
        add_row(
            table,
            row['way'],
            row['order'],
            row['batch'],
            f'{row["per_s"]:.0f}',
            f'{row["mj"]:.2f}',
            _span(row['faster']),
            _span(row['gain']),
        )
    return table


def _loading(report: dict[str, Any]) -> Table:
    table = new_table(
        '\na large encoder (medians of the rounds)',
        'pictures',
        'way',
        'pictures/s',
        'processor ms',
        'peak MB',
    )
    for row in report['loading']:
        figures = [f'{row[name]:.1f}' for name in ('per_s', 'processor_ms', 'peak_mb')]
        add_row(table, row['pictures'], row['way'], *figures)
    return table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    yield (
        f'{report["judged"]} crops of {report["objects"]} objects in {report["scenes"]} scenes '
        f'judge, in {report["galleries"]} galleries of {report["gallery"]}; {report["learned"]} '
        f'are fitted on, {report["held"]} choose margins; energy is {report["watts"]:g} W times '
        'processor time'
    )
    found = report['predictor']
    yield (
        f'the predictor is right in {100 * found["right"]:.0f} % of the items, and the exit that '
        f'most need in {100 * found["most_frequent_right"]:.0f} %'
    )
    named = ', '.join(report['worth_flying']) or 'nothing'
    yield f'better than every control: {named}'
    if report['quick']:
        yield 'note: this was quick, its figures say nothing'


def _number(value: float | None, digits: int) -> str | None:
    return None if value is None else f'{value:.{digits}f}'


def _points(estimate: dict[str, float | None]) -> str | None:
    if estimate['value'] is None:
        return None
    value, low, high = (_number(100.0 * (estimate[n] or 0.0), 1) for n in ('value', 'low', 'high'))
    return f'{value} ({low} to {high})'


def _span(ratio: dict[str, float]) -> str:
    return f'{ratio["value"]:.2f} ({ratio["low"]:.2f} to {ratio["high"]:.2f})'

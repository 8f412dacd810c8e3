"""What `mmedge lab bench bricks` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import BundleArgument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'bricks.json'


def bricks(
    bundle: BundleArgument,
    out: Annotated[
        Path, option('--out', 'FOLDER', f'folder of {REPORT} and of the figure')
    ] = Path('out/bench-bricks'),
    events: Annotated[
        int, option('--events', 'N', 'events that pass through all bricks', min=1, max=100)
    ] = 5,
) -> None:
    """Measure what networks take to load, run and release, and what loading on demand costs."""
    with plain_errors():
        from mmedge_lab.rivals.nanomind.brick_bench import run_brick_bench
        from mmedge_lab.rivals.nanomind.brick_figure import draw_bricks
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import require_writable, write_files

        model = default_detector(bundle)
        require_writable(out)
        with StatusLine('measuring bricks') as line:
            report = run_brick_bench(model, events, line.advance)
        figure = draw_bricks(report['ways'], report['runs'])
        text = json.dumps(report, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode(), figure.name: figure.png})
    for problem in report['problems']:
        say(f'not measured: {problem}')
    _print(report)
    typer.echo(out / REPORT)


def _print(report: dict[str, Any]) -> None:
    costs = new_table(
        f'bricks of {report["bundle"]}',
        *('brick', 'device', 'load ms', 'run ms', 'memory MB'),
        'left',
    )
    for cost in report['bricks']:
        add_row(
            costs,
            cost['brick'],
            cost['device'],
            f'{cost["load_ms"]:.0f}',
            f'{cost["run_ms"]:.2f}',
            f'{cost["memory_mb"]:.0f}',
            f'{cost["left_mb"]:.0f}',
        )
    ways = new_table(
        f'\nevents of {report["runs"]} runs of each brick of a decision',
        *('bricks', 'peak MB', 'between events MB', 'processor ms an event', 'time ms'),
    )
    for way in report['ways']:
        add_row(
            ways,
            way['way'],
            f'{way["peak_mb"]:.0f}',
            f'{way["between_mb"]:.0f}',
            f'{1e3 * way["processor_s"]:.0f}',
            f'{1e3 * way["wall_s"]:.0f}',
        )
    print_parts(costs, ways)

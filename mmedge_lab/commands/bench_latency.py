"""What `mmedge lab bench latency` does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine
from mmedge_ros.commands.errors import plain_errors, require_ros
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT, TABLE = 'latency.json', 'latency.md'


def latency(
    flight: Annotated[Path, argument('FLIGHT', 'recording')],
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}, {TABLE} and figure')] = (
        Path('out/bench-latency')
    ),
    detector: Annotated[
        str, option('--detector', 'DETECTOR', 'weights, bundle folder, or the name of a bundle')
    ] = '',
    repeats: Annotated[
        int, option('--repeats', 'N', 'times the flight is played by each graph', min=1, max=100)
    ] = 3,
) -> None:
    """Play a flight live by this graph and by graphs that wait for the end of each window."""
    with plain_errors():
        from mmedge_lab.rivals.mmedge.latency_bench import LatencyPlan, run_latency_bench
        from mmedge_lab.rivals.mmedge.latency_table import (
            HEAD,
            below_words,
            draw_latency,
            latency_markdown,
            stage_head,
            stage_rows,
            table_rows,
        )
        from mmedge_ros.report.report_files import require_writable, write_files

        require_ros()
        require_writable(out)
        words = ['mmedge', 'bench', 'latency', flight.name, '--repeats', str(repeats)]
        command = shlex.join([*words, *(['--detector', detector] if detector else [])])
        with StatusLine('latency') as line:
            report = run_latency_bench(flight, LatencyPlan(detector, repeats), line.advance)
        report['command'] = command
        figure = draw_latency(report)
        text = json.dumps(report, indent=2, allow_nan=False)
        files = {
            figure.name: figure.png,
            TABLE: latency_markdown(report, command).encode(),
            REPORT: f'{text}\n'.encode(),
        }
        write_files(out, files)
    table = new_table(f'live, {flight.name}, {repeats} times each', *HEAD)
    for row in table_rows(report):
        add_row(table, *row)
    parts = new_table('\nparts of the mean latency after the end, ms', *stage_head(report))
    for row in stage_rows(report):
        add_row(parts, *row)
    print_parts(table, parts, f'\n{below_words(report)}')
    typer.echo(out / REPORT)

"""What `mmedge lab bench overload` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine
from mmedge_ros.commands.errors import plain_errors, require_ros
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'overload.json'


def overload(
    flights: Annotated[list[Path], argument('FLIGHT...', 'recordings')],
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}')] = Path(
        'out/bench-overload'
    ),
    detector: Annotated[
        str, option('--detector', 'DETECTOR', 'weights, bundle folder, or the name of a bundle')
    ] = '',
    factor: Annotated[
        float,
        option('--factor', 'N', 'pictures for each that can be encoded', min=1.0, max=20.0),
    ] = 3.0,
    rounds: Annotated[
        int, option('--rounds', 'N', 'times each flight is played each way', min=1, max=100)
    ] = 1,
    busy: Annotated[
        int,
        option('--busy', 'N', 'foreign busy processes of the last way; 0: without', max=64, min=0),
    ] = 4,
) -> None:
    """Play flights live with more pictures than can be encoded, and on a busy machine."""
    with plain_errors():
        from mmedge_lab.rivals.mmedge.overload_bench import OverloadPlan, run_overload_bench
        from mmedge_ros.report.report_files import require_writable, write_files

        require_ros()
        require_writable(out)
        plan = OverloadPlan(detector, factor, rounds, busy)
        with StatusLine('overload') as line:
            report = run_overload_bench(flights, plan, line.advance)
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    _print(report)
    typer.echo(out / REPORT)


def _print(report: dict[str, Any]) -> None:
    table = new_table(
        f'live, {report["factor"]:g} pictures for each that can be encoded; fixed rate: '
        f'{report["fixed_hz"]:.1f} Hz; busy machine: beside {report["busy_processes"]} busy '
        'processes, nothing limited',
        'run',
        'windows',
        f'on time (deadline + {report["grace_ms"]:g} ms), %',
        f'of these with a picture below {report["fresh_s"]:g} s, %',
        'worst p95, ms',
        'pictures per encoded',
        'dropped',
        'streaming IoU',
    )
    for row in report['rows']:
        ratio, iou = row['pictures_per_encoded'], row['streaming_mean_iou']
        add_row(
            table,
            row['run'],
            row['windows'],
            f'{100.0 * row["on_time"]:.1f}',
            f'{100.0 * row["fresh"]:.1f}',
            f'{row["latency_p95_ms"]:.1f}',
            '-' if ratio is None else f'{ratio:.2f}',
            row['dropped'],
            '-' if iou is None else f'{iou:.3f}',
        )
    print_parts(table)

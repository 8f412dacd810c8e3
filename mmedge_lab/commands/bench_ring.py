"""What `mmedge lab bench ring` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine
from mmedge_ros.commands.errors import plain_errors, require_ros
from mmedge_ros.commands.options import option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'ring.json'


def ring(
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}')] = Path(
        'out/bench-ring'
    ),
    rounds: Annotated[
        int, option('--rounds', 'N', 'measurements of each way, in turn', min=1, max=100)
    ] = 3,
    seconds: Annotated[
        float, option('--seconds', 'S', 'length of each measurement', min=1.0, max=600.0)
    ] = 8.0,
    rate: Annotated[
        float, option('--rate', 'HZ', 'pictures per second', min=1.0, max=200.0)
    ] = 30.0,
) -> None:
    """Measure what a raw picture costs from camera to encoder: through the ring, and as Image."""
    with plain_errors():
        from mmedge_lab.rivals.nanomind.ring_bench import run_ring_bench
        from mmedge_ros.report.report_files import require_writable, write_files

        require_ros()
        require_writable(out)
        with StatusLine('measuring pictures') as line:
            report = run_ring_bench(rounds, seconds, rate, line.advance)
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    _print(report)
    typer.echo(out / REPORT)


def _print(report: dict[str, Any]) -> None:
    table = new_table(
        f'a raw picture at {report["rate"]:g} Hz, medians of {report["rounds"]} rounds; '
        'processor time in ms per picture',
        'size',
        'way',
        'camera',
        'encoder',
        'both (least to most)',
        'latency p50 (p95), ms',
        'lost',
    )
    for row in report['rows']:
        add_row(
            table,
            row['size'],
            row['way'],
            f'{row["camera_ms"]:.2f}',
            f'{row["encoder_ms"]:.2f}',
            f'{row["both_ms"]:.2f} ({row["both_least_ms"]:.2f} to {row["both_most_ms"]:.2f})',
            f'{row["latency_p50_ms"]:.2f} ({row["latency_p95_ms"]:.2f})',
            row['lost'],
        )
    print_parts(table)

"""What `mmedge lab bench reuse` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import SetArgument, existing_file, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

REPORT = 'reuse.json'
# Titles and digits of the figures.
_COLUMNS = {
    'streaming_mean_iou': ('streaming IoU', 3),
    'mean_iou': ('mean IoU', 3),
    'precision': ('precision', 3),
    'recall': ('recall', 3),
    'idf1': ('IDF1', 3),
    'mota': ('MOTA', 3),
    'nees': ('NEES (of 4)', 2),
}


def reuse(
    flights: SetArgument,
    out: Annotated[
        Path, option('--out', 'FOLDER', f'folder of {REPORT}, and of what was judged before')
    ] = Path('out/bench-reuse'),
    bundle: Annotated[
        str, option('--detector', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile \\[nominal ones, every level alike]'
        ),
    ] = None,
    only: Annotated[
        str, option('--only', 'NAME,...', 'only these rows \\[all], e.g. "medium n=2,10 Hz"')
    ] = '',
    timed: Annotated[
        int,
        option('--timed', 'N', 'flights on which processor time is measured; 0: none', min=0),
    ] = 4,
) -> None:
    """Compare object memory with its rivals: accuracy, and the time of the camera's encoder."""
    with plain_errors():
        from mmedge_lab.judging.bundle_evaluation import NOMINAL, flights_of
        from mmedge_lab.judging.bundle_under_test import open_bundle
        from mmedge_lab.judging.flight_bootstrap import Drawings, flight_seeds
        from mmedge_lab.judging.flight_sums import SummedFlights
        from mmedge_lab.judging.judged_rows import FIGURES, RowBench, accuracy_report
        from mmedge_lab.rivals.smtm.reuse_bench import known_rows, replay_row
        from mmedge_lab.rivals.smtm.reuse_times import time_report, timed_flight
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.records.device_profile import read_profile
        from mmedge_ros.report.report_files import require_writable, write_files

        folders, folder = flights_in(flights), default_detector(bundle)
        require_writable(out)
        rows = known_rows([name.strip() for name in only.split(',') if name.strip()], folder)
        service_times = NOMINAL if profile is None else read_profile(profile)
        bench = RowBench(open_bundle(folder, service_times), rows, out / 'flights', replay_row)
        sums, times = [], []
        measured = flights_of(folders, timed) if timed else ()
        with StatusLine(f'judging {flights.name}') as line:
            for number, flight in enumerate(folders):

                def advance(share: float, number: int = number) -> None:
                    line.advance(
                        (number + share) / len(folders), f'{number} of {len(folders)} flights'
                    )

                sums.append(bench.sums(flight, advance))
                if flight in measured:
                    times.append(timed_flight(flight, folder, rows))
                advance(1.0)
        summed = SummedFlights(
            {row.name: [of_flight[row.name] for of_flight in sums] for row in rows},
            Drawings.of(flight_seeds(folders)),
            FIGURES,
        )
        report = {
            'set': flights.name,
            'flights': len(folders),
            'seeds': summed.seeds,
            'bundle': folder.name,
            'profile': service_times.description,
            'words': {row.name: row.words for row in rows},
            'accuracy': accuracy_report(summed, rows[0].name),
            'timed': [flight.name for flight in measured],
            'times': time_report(times),
        }
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    say(f'{len(folders)} flights of {summed.seeds} seeds, {folder.name}')
    print_parts(*_tables(report))
    typer.echo(out / REPORT)


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    rows = report['accuracy']
    yield _table('95 % intervals drawn by seed', rows)
    first, *others = rows
    differences = {
        name: {figure: value['difference'] for figure, value in rows[name].items()}
        for name in others
    }
    yield _table(f'minus {first}', differences)
    if report['times']:
        yield _time_table(report)


def _table(title: str, rows: dict[str, Any]) -> Table:
    table = new_table(title, 'row', *(words for words, _ in _COLUMNS.values()))
    for name, values in rows.items():
        cells = [_shown(values[figure], digits) for figure, (_, digits) in _COLUMNS.items()]
        add_row(table, name, *cells)
    return table


def _shown(estimate: dict[str, Any], digits: int) -> str:
    value, low, high = (
        '-' if estimate[name] is None else f'{estimate[name]:.{digits}f}'
        for name in ('value', 'low', 'high')
    )
    return f'{value} ({low} to {high})'


def _time_table(report: dict[str, Any]) -> Table:
    table = new_table(
        f"the camera's encoder on {len(report['timed'])} flights, processor time",
        'row',
        'ms per second',
        'share (least to most)',
        'encoded per second',
        'what is done',
    )
    for name, of in report['times'].items():
        share = f'{of["share"]:.3f} ({of["least"]:.3f} to {of["most"]:.3f})'
        words = report['words'][name]
        add_row(table, name, f'{of["ms_per_second"]:.0f}', share, f'{of["encoded"]:.1f}', words)
    return table

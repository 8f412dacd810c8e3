"""What `mmedge lab bench trackers` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import SetArgument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

REPORT = 'trackers.json'
# Titles and digits of the figures.
_COLUMNS = {
    'mota': ('MOTA', 3),
    'idf1': ('IDF1', 3),
    'switches_per_minute': ('switches / minute', 2),
    'ids_per_person': ('ids per person', 2),
}


def trackers(
    flights: SetArgument,
    out: Annotated[
        Path,
        option('--out', 'FOLDER', f'folder of {REPORT} and of the detections, which are kept'),
    ] = Path('out/bench-trackers'),
    bundle: Annotated[
        str, option('--detector', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    level: Annotated[str, option('--level', 'NAME', 'level that detects')] = 'large',
    only: Annotated[
        str, option('--only', 'NAME,...', 'only these trackers \\[all], e.g. SORT,mmedge')
    ] = '',
) -> None:
    """Compare this tracker with SORT, ByteTrack and norfair on one level's detections."""
    with plain_errors():
        from mmedge_lab.judging.flight_bootstrap import Drawings, flight_seeds
        from mmedge_lab.judging.kept_detections import DetectionLevel, detected_flight
        from mmedge_lab.rivals.trackers.tracker_bench import (
            Comparison,
            compare_on_flight,
            known_trackers,
        )
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.unit_encoder import CameraEncoder
        from mmedge_ros.report.report_files import require_writable, write_files

        chosen = known_trackers([name.strip() for name in only.split(',') if name.strip()])
        folders = flights_in(flights)
        require_writable(out)
        folder = default_detector(bundle)
        kept = DetectionLevel(folder, level, out / 'detections')
        camera = CameraEncoder.from_path(folder)
        sums = []
        with StatusLine(f'tracking {flights.name}') as line:
            for number, flight in enumerate(folders):

                def advance(share: float, number: int = number) -> None:
                    line.advance(
                        (number + share) / len(folders), f'{number} of {len(folders)} flights'
                    )

                detected = detected_flight(flight, kept, camera, advance)
                sums.append(compare_on_flight(detected, chosen))
                advance(1.0)
        comparison = Comparison(
            {name: [of_flight[name] for of_flight in sums] for name in chosen},
            Drawings.of(flight_seeds(folders)),
        )
        report = {
            'set': flights.name,
            'flights': len(folders),
            'seeds': comparison.seeds,
            'bundle': folder.name,
            'level': level,
            **comparison.report(),
        }
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    say(f'{len(folders)} flights of {comparison.seeds} seeds, level {level} of {folder.name}')
    print_parts(*_tables(report))
    typer.echo(out / REPORT)


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    yield _table('95 % intervals drawn by seed', 'tracker', report['trackers'])
    for ours, differences in report['differences'].items():
        yield _table(f'{ours} minus the rival', 'rival', differences)


def _table(title: str, subject: str, rows: dict[str, Any]) -> Table:
    table = new_table(title, subject, *(words for words, _ in _COLUMNS.values()))
    for name, values in rows.items():
        cells = [_shown(values[figure], digits) for figure, (_, digits) in _COLUMNS.items()]
        add_row(table, name, *cells)
    return table


def _shown(estimate: dict[str, float | None], digits: int) -> str:
    value, low, high = (
        '-' if number is None else f'{number:.{digits}f}' for number in estimate.values()
    )
    return f'{value} ({low} to {high})'

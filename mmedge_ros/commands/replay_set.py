"""What `mmedge replay-set` does: replay every flight of a set, and put the figures in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    DetectorOption,
    NoPicturesOption,
    ParamsOption,
    SetArgument,
    existing_file,
    option,
)


def replay_set(
    flights: SetArgument,
    out: Annotated[
        Path, option('--out', 'FOLDER', 'folder of the table and of the reports')
    ] = Path('out/replay-set'),
    detector: DetectorOption = None,
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile: the same result every time'
        ),
    ] = None,
    params: ParamsOption = None,
    no_pictures: NoPicturesOption = False,
) -> None:
    """Replay each flight of a set offline, with a report each, and one table of all scenarios."""
    from mmedge_ros.commands.replay_run import ReplayRequest, offline_record, report_pictures

    with plain_errors():
        from mmedge_ros.lab.evaluation.accuracy_table import (
            accuracy_table,
            table_markdown,
            write_table,
        )
        from mmedge_ros.lab.evaluation.report import write_report
        from mmedge_ros.lab.evaluation.set_page import write_set_page
        from mmedge_ros.lab.reporting.report_files import require_writable
        from mmedge_ros.lab.training.flight_pictures import flights_in

        folders = flights_in(flights)
        require_writable(out)
        reports = {}
        with StatusLine(f'replaying {flights.name}') as line:
            for number, flight in enumerate(folders):
                line.advance(number / len(folders), flight.name)
                request = ReplayRequest(
                    flight,
                    out,
                    detector=detector,
                    profile=profile,
                    params=params,
                    show_pictures=not no_pictures,
                )
                record = offline_record(request)
                pictures = report_pictures(record, request)
                reports[flight.name] = write_report(record, out / flight.name, pictures=pictures)
        rows = accuracy_table(list(reports.values()))
        write_set_page(flights.name, reports, rows, out)
        say(f'{len(folders)} flights, each with its own report: {out / "report.html"}')
        if not rows:
            say(f'note: no flight below {flights} carries ground truth; there is no table')
            return
        write_table(rows, out)
        typer.echo(table_markdown(rows))

"""What `mmedge lab replay-set` does: replay every flight of a set, and tabulate the figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    DetectorOption,
    JobsOption,
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
    jobs: JobsOption = 1,
) -> None:
    """Replay each flight of a set offline, with a report each, and one table of all scenarios."""
    from mmedge_ros.commands.replay_run import ReplayRequest, report_offline, reported

    with plain_errors():
        from mmedge_lab.judging import EvaluationError
        from mmedge_lab.judging.accuracy_table import (
            accuracy_table,
            table_markdown,
            update_gain,
            write_table,
        )
        from mmedge_lab.judging.flight_bootstrap import flight_seeds
        from mmedge_lab.judging.flight_workers import do_flight_works
        from mmedge_lab.judging.set_page import write_set_page
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.report.report_files import require_writable

        folders = flights_in(flights)
        require_writable(out)
        requests = {
            flight.name: ReplayRequest(
                bag=str(flight.absolute()),
                out=out / flight.name,
                # A bundle may also be given by its name.
                detector=str(detector.absolute() if detector.exists() else detector)
                if detector
                else '',
                profile=str(profile.absolute()) if profile else '',
                params=str(params.absolute()) if params else '',
                show_pictures=not no_pictures,
            )
            for flight in folders
        }
        with StatusLine(f'replaying {flights.name}') as line:

            def advance(share: float, whole: int) -> None:
                line.advance(share, f'{whole} of {len(folders)} flights')

            works = {n: partial(report_offline, r, r.out) for n, r in requests.items()}
            do_flight_works(works, jobs, advance, EvaluationError)
        reports = {name: reported(out / name) for name in requests}
        rows = accuracy_table(list(reports.values()))
        write_set_page(flights.name, reports, rows, out)
        say(f'{len(folders)} flights, each with its own report: {out / "report.html"}')
        if not rows:
            say(f'note: no flight below {flights} carries ground truth; there is no table')
            return
        write_table(rows, out)
        if any(report['updates'] for report in reports.values()):
            gain = update_gain(list(reports.values()), flight_seeds(folders))
            say(
                f'updates between decisions change streaming IoU by {gain.value:+.3f} '
                f'({gain.low:.3f} to {gain.high:.3f}, drawn by seed)'
            )
        typer.echo(table_markdown(rows))

"""What `mmedge lab replay-set` does: replay every flight of a set, and tabulate the figures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.options import (
    JobsOption,
    NoPicturesOption,
    SetArgument,
    existing_file,
    option,
)
from mmedge_ros.ros.graph.options import REPLAY


@takes(REPLAY, only=('detector', 'params'))
def replay_set(
    flights: SetArgument,
    out: Annotated[
        Path, option('--out', 'FOLDER', 'folder of the table and of the reports')
    ] = Path('out/replay-set'),
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile: the same result every time'
        ),
    ] = None,
    no_pictures: NoPicturesOption = False,
    jobs: JobsOption = 1,
    **shared: Any,
) -> None:
    """Replay each flight of a set offline, with a report each, and one table of all scenarios."""
    from mmedge_ros.commands.replay_run import ReplayRequest, report_offline, reported

    with plain_errors():
        from mmedge_lab.flight_workers import do_flight_works
        from mmedge_lab.judging import EvaluationError
        from mmedge_lab.judging.bench_table import table_markdown, write_table
        from mmedge_lab.judging.replayed_set import NAME, scenario_of, set_table
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_ros.report.report_files import require_writable

        folders = flights_in(flights)
        require_writable(out)
        requests = {
            flight.name: ReplayRequest(
                bag=str(flight),
                out=out / flight.name,
                profile=str(profile or ''),
                **shared,
                show_pictures=not no_pictures,
            )
            for flight in folders
        }
        with StatusLine(f'replaying {flights.name}') as line:
            do_flight_works(
                {name: partial(report_offline, r, r.out) for name, r in requests.items()},
                jobs,
                lambda share, whole: line.advance(share, f'{whole} of {len(folders)} flights'),
                EvaluationError,
            )
        reports = [reported(out / name) for name in requests]
        say(f'{len(folders)} flights, each with its own report.html in a folder of {out}')
        if not any(map(scenario_of, reports)):
            say(f'note: no flight below {flights} carries ground truth; there is no table')
            return
        content = set_table(folders, reports)
        write_table(content, out)
        typer.echo(table_markdown(content))
        typer.echo(out / f'{NAME}.html')

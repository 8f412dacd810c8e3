"""`mmedge lab train counts`: how the number of people follows from what was perceived."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_lab.commands.train_replayed import ServiceTimesOption, TrainSetsOption
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    BundleArgument,
    JobsOption,
    option,
)


def train_counts(
    bundle: BundleArgument,
    train: TrainSetsOption,
    profile: ServiceTimesOption = None,
    jobs: JobsOption = 2,
    out: Annotated[
        Path, option('--out', 'FOLDER', 'keeps what was perceived, for another fit')
    ] = Path('out/train-counts'),
) -> None:
    """Fit when tracks are of one person, and the ranges in which the number of people lies.

    Prints the constants MERGE and COUNT of `mmedge_ros.questions`.
    """
    with plain_errors():
        from mmedge_lab.judging.count_report import CountRequest, observed_flights
        from mmedge_lab.rivals.comparison.run import named_flights
        from mmedge_lab.training.count_fit import as_code, fit_counts
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import require_writable

        require_writable(out)
        flights = named_flights([(folder.name, flights_in(folder)) for folder in train])
        names = tuple(folder.name for folder in train)
        request = CountRequest(
            default_detector(bundle), names, flights, out, str(profile or ''), jobs
        )
        with StatusLine(f'observing with {request.bundle.name}') as line:
            seen = observed_flights(
                request, lambda share, whole: line.advance(share, f'{whole} of {len(flights)}')
            )
        fit = fit_counts(seen)
    say(
        f'{fit.pairs} pairs of tracks, {fit.same} of one person; {fit.windows} windows; on seeds '
        f'left out ranges hold in {fit.left_out:.1%}'
    )
    typer.echo(as_code(fit))

"""What `mmedge lab evaluate-bundle` does: judge a bundle on flights."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    DetectorArgument,
    JobsOption,
    SetArgument,
    existing_file,
    flag,
    option,
)


class Configurations(Enum):
    """How many configurations are judged."""

    ALL = 'all'
    FULL = 'full'


def evaluate_bundle(
    bundle: DetectorArgument,
    flights: SetArgument,
    levels: Annotated[
        str, option('--levels', 'NAME,...', 'only these, e.g. large, or small,large \\[all]')
    ] = '',
    configurations: Annotated[
        Configurations,
        option(
            '--configurations',
            '',
            'all: every rate and level of both sensors; full: full rates and the highest '
            'level only',
        ),
    ] = Configurations.ALL,
    most: Annotated[
        int, option('--flights', 'N', 'only so many, spread over the set; 0: all', min=0)
    ] = 0,
    jobs: JobsOption = 2,
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile \\[nominal ones, every level alike]'
        ),
    ] = None,
    enter: Annotated[
        bool,
        flag('--enter', 'enter what configurations are worth into BUNDLE, to be chosen by'),
    ] = False,
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path(
        'out/evaluate-bundle'
    ),
) -> None:
    """Judge a bundle by the ground truth of flights: by factor, configuration and strategy.

    Every figure has a 95 % interval from drawing seeds anew. What was judged before is kept:
    a run that is cut short goes on where it was.
    """
    if enter and (levels or configurations is Configurations.FULL):
        raise typer.BadParameter(
            '--enter needs every configuration; leave out --levels and --configurations'
        )
    with plain_errors():
        from mmedge_lab.judging.bench import few
        from mmedge_lab.judging.bundle_evaluation import NAME, EvaluationRequest
        from mmedge_lab.judging.bundle_evaluation import evaluate_bundle as evaluate
        from mmedge_lab.judging.bundle_under_test import NOMINAL
        from mmedge_lab.judging.measured_accuracy import enter_accuracy
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_ros.core.device_profile import read_profile
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import require_writable

        chosen = few(flights_in(flights), most)
        require_writable(out)
        request = EvaluationRequest(
            default_detector(bundle),
            flights.name,
            chosen,
            out,
            NOMINAL if profile is None else read_profile(profile),
            tuple(level.strip() for level in levels.split(',') if level.strip()),
            configurations is Configurations.ALL,
            jobs,
        )
        with StatusLine(f'judging {Path(bundle).name}') as line:
            content = evaluate(
                request,
                lambda share, whole: line.advance(share, f'{whole} of {len(chosen)} flights'),
            )
        for note in content['notes']:
            say(f'note: {note}')
        if enter:
            enter_accuracy(request.bundle, content)
            say(f'accuracies are entered into {request.bundle}')
    typer.echo(out / f'{NAME}.html')

"""What `mmedge lab bench drift` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, existing_set, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'drift.json'
EveryOption = Annotated[
    int, option('--every', 'N', 'look at every N-th picture only', min=1, max=100)
]


def drift(
    sets: Annotated[
        list[Path],
        argument('SET...', 'sets of flights; those by day are changed too', exists=True),
    ],
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}')] = Path(
        'out/bench-drift'
    ),
    detector: Annotated[
        str, option('--detector', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    calibration: Annotated[
        list[Path] | None,
        existing_set('--calibration', 'set that rivals are fitted to; may be given again', ''),
    ] = None,
    network: Annotated[
        str, option('--network', 'BUNDLE', 'bundle with feature grids, of which a rival is made')
    ] = '',
    every: EveryOption = 1,
    pictures: Annotated[
        int,
        option(
            '--pictures', 'N', 'of flights by day, on which the detector is judged; 0: none', min=0
        ),
    ] = 0,
) -> None:
    """Measure how soon pictures unlike the calibration flights' are noticed, and false alarms."""
    with plain_errors():
        from mmedge_lab.judging.picture_seconds import is_by_day, same
        from mmedge_lab.rivals.mmedge.drift_bench import AS_IT_IS, CHANGES, run_drift_bench
        from mmedge_lab.training.detector_evaluation import accuracy_facts, evaluate_detector
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding import EncodingError
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.usual_pictures import read_usual_pictures
        from mmedge_ros.report.report_files import require_writable, write_files

        require_writable(out)
        folder = default_detector(detector)
        usual = read_usual_pictures(folder)
        if usual is None:
            raise EncodingError(
                f'{folder} does not say how pictures look; `mmedge lab train pictures` adds it'
            )
        judged, fitted = (
            [flight for chosen in named for flight in flights_in(chosen)]
            for named in (sets, calibration or [])
        )
        with StatusLine('looking at pictures') as line:
            report = run_drift_bench(
                usual,
                judged,
                fitted,
                every,
                default_detector(network) if network else None,
                line.advance,
            )
            report['people'] = {}
            by_day = [flight for flight in judged if is_by_day(flight)]
            for name, change in {AS_IT_IS: same, **CHANGES}.items() if pictures and by_day else ():
                line.advance(1.0, f'people in pictures: {name}')
                found = evaluate_detector(folder, by_day, pictures, change=change)
                report['people'][name] = accuracy_facts(found).get('recall_20px')
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    _print(report)
    typer.echo(out / REPORT)


def _print(report: dict[str, Any]) -> None:
    table = new_table(
        f'{report["flights"]} flights of {report["seconds"]} s, repeated for a minute',
        'noticed by',
        'pictures',
        'flights',
        'alarms',
        f'within {report["in_time_s"]} s',
        'median, s',
        'latest, s',
        'nearest to an alarm, %',
        'people found, %',
    )
    for row in report['rows']:
        median, latest, nearest = row['median_s'], row['latest_s'], row['nearest']
        found = report['people'].get(row['pictures'])
        add_row(
            table,
            row['method'],
            row['pictures'],
            row['flights'],
            row['alarms'],
            row['in_time'],
            '-' if median is None else f'{median:g}',
            '-' if latest is None else latest,
            '' if nearest is None else f'{100.0 * nearest:.0f}',
            '' if found is None else f'{100.0 * found:.1f}',
        )
    print_parts(table)

"""What `mmedge lab bench fixed` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import SetArgument, existing_file, flag, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

REPORT = 'fixed.json'
_STEPS = '100,50,30,100'
_DIGITS = 5
# Fixed configurations that are shown.
_SHOWN = 8


def fixed(
    flights: SetArgument,
    calibration: Annotated[
        Path | None,
        option(
            '--calibration',
            'SET',
            'flights on which the best fixed configuration is found \\[those of SET]',
            exists=True,
            file_okay=False,
        ),
    ] = None,
    shares: Annotated[
        str, option('--shares', 'PERCENT,...', 'constant shares of the processor')
    ] = '100,64,50',
    steps: Annotated[
        str, option('--steps', 'PERCENT,...', 'shares in turn, a flight long each')
    ] = _STEPS,
    limit: Annotated[
        float, option('--limit', 'MS', 'latency limit, ms', min=5.0, max=5000.0)
    ] = 50.0,
    each_seed: Annotated[
        bool, flag('--one-per-seed', 'only the first flight of each seed of SET')
    ] = False,
    bundle: Annotated[
        str, option('--detector', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile \\[those of a stated board]'
        ),
    ] = None,
    out: Annotated[
        Path, option('--out', 'FOLDER', f'folder of {REPORT}, and of what was flown before')
    ] = Path('out/bench-fixed'),
) -> None:
    """Fly the optimiser beside every fixed rate, level and reuse, and the clairvoyant choice."""
    with plain_errors():
        from mmedge_lab.judging.bundle_under_test import open_bundle
        from mmedge_lab.policies.settings import STATED
        from mmedge_lab.rivals.mmedge.held_bench import HeldBench, conditions_of, first_of_seeds
        from mmedge_lab.rivals.mmedge.held_report import best_held, condition_report, judged
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.records.device_profile import read_profile
        from mmedge_ros.records.plain_values import plain_values
        from mmedge_ros.report.report_files import require_writable, write_files

        require_writable(out)
        conditions = conditions_of(shares, steps)
        times = STATED if profile is None else read_profile(profile)
        folder = default_detector(bundle)
        bench = HeldBench(open_bundle(folder, times), conditions, limit / 1e3, out / 'flights')
        folders = first_of_seeds(flights_in(flights)) if each_seed else flights_in(flights)
        with StatusLine(f'flying {flights.name}') as line:
            flown = bench.flights(folders, line.advance)
        elsewhere = flown
        if calibration is not None:
            with StatusLine(f'flying {calibration.name}') as line:
                found = flights_in(calibration)
                elsewhere = bench.flights(found, line.advance, with_ours=False)
        judgements = {
            c.name: condition_report(flown, c, best_held(elsewhere, c)) for c in conditions
        }
        report = plain_values(
            {
                'set': flights.name,
                'calibration': calibration.name if calibration else flights.name,
                'flights': len(folders),
                'seeds': len(set(flown.seeds)),
                'bundle': folder.name,
                'profile': times.description,
                'limit_ms': limit,
                'conditions': judgements,
                'targets': judged(judgements),
            },
            _DIGITS,
        )
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    print_parts(*_tables(report))
    for row in report['targets']:
        say(f'{"met" if row["met"] else "missed"}: {row["target"]}: {_shown(row["found"])}')
    typer.echo(out / REPORT)


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    for name, of in report['conditions'].items():
        share = of['clairvoyant']['share']
        table = new_table(
            f'{name}{" %" if name[0].isdecimal() else ""}: ours {of["ours"]:.3f}, in time '
            f'{100.0 * of["in_time"]:.1f} %, {of["changes_per_minute"]:.1f} changes a minute, '
            f'{100.0 * share["value"]:.1f} % of the clairvoyant choice',
            'fixed configuration',
            'streaming IoU',
            'ours minus this',
            'in time, %',
        )
        for held, row in list(of['held'].items())[:_SHOWN]:
            iou, late = f'{row["streaming_mean_iou"]:.3f}', f'{100.0 * row["in_time"]:.1f}'
            add_row(table, held, iou, _shown(row['ours_minus_this']), late)
        yield table


def _shown(found: Any) -> str:
    if not isinstance(found, dict):
        return f'{found:.2f}'
    value, low, high = (
        '-' if found[name] is None else f'{found[name]:.3f}' for name in ('value', 'low', 'high')
    )
    return f'{value} ({low} to {high})'

"""What `mmedge lab bench power` does."""

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

REPORT = 'power.json'
_DIGITS = 4


def power(
    flights: SetArgument,
    out: Annotated[
        Path, option('--out', 'FOLDER', f'folder of {REPORT}, and of what was judged before')
    ] = Path('out/bench-power'),
    bundle: Annotated[
        str, option('--detector', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = 'flight_people',
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'service times from a device profile \\[nominal ones, every level alike]'
        ),
    ] = None,
    encode_ms: Annotated[
        float,
        option('--encode-ms', 'MS', 'processor time of a picture at medium', min=0.1, max=1e4),
    ] = 10.4,
    watts: Annotated[
        float, option('--watts', 'W', 'of a busy core, for the energy model', min=0.0, max=1e3)
    ] = 3.0,
    hover_watts: Annotated[
        float,
        option('--hover-watts', 'W', 'of the rotors, for the energy model', min=1.0, max=1e5),
    ] = 270.0,
) -> None:
    """Fly a battery from full to nearly empty: the states of power beside other rules."""
    with plain_errors():
        from mmedge_lab.judging.bundle_evaluation import NOMINAL
        from mmedge_lab.judging.bundle_under_test import open_bundle
        from mmedge_lab.judging.flight_bootstrap import Drawings, flight_seeds
        from mmedge_lab.judging.flight_sums import SummedFlights
        from mmedge_lab.judging.judged_rows import FIGURES, RowBench
        from mmedge_lab.rivals.nanomind.discharge import REPORTS, WHOLE, changes, discharge, flown
        from mmedge_lab.rivals.nanomind.power_bench import (
            EnergyModel,
            courses,
            encoder_share,
            flight_of_a_battery,
            row_report,
        )
        from mmedge_lab.rivals.nanomind.power_figure import draw_power
        from mmedge_lab.rivals.nanomind.power_rows import power_rows, replay_power_row
        from mmedge_lab.training.flight_pictures import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.records.device_profile import read_profile
        from mmedge_ros.records.plain_values import plain_values
        from mmedge_ros.report.report_files import require_writable, write_files

        folders, folder = flights_in(flights), default_detector(bundle)
        require_writable(out)
        rows = power_rows()
        service_times = NOMINAL if profile is None else read_profile(profile)
        bench = RowBench(
            open_bundle(folder, service_times), rows, out / 'flights', replay_power_row
        )
        sums = []
        with StatusLine(f'judging {flights.name}') as line:
            for number, flight in enumerate(folders):

                def advance(share: float, number: int = number) -> None:
                    line.advance(
                        (number + share) / len(folders), f'{number} of {len(folders)} flights'
                    )

                sums.append(bench.sums(flight, advance))
                advance(1.0)

        def summed(chosen: list[int]) -> SummedFlights:
            return SummedFlights(
                {row.name: [sums[n][row.name] for n in chosen] for row in rows},
                Drawings.of(flight_seeds([folders[n] for n in chosen])),
                FIGURES,
            )

        model = EnergyModel(1e-3 * encode_ms, watts, hover_watts)
        every = summed(list(range(len(folders))))
        by_day = [n for n, f in enumerate(folders) if '_day_' in f.name]
        discharges = {report: flown(discharge(report)) for report in REPORTS}
        found = discharges[WHOLE]
        names = [row.name for row in rows]
        figure = draw_power(
            found,
            courses(found, {n: every.estimate(n, 'streaming_mean_iou').value for n in names}),
            courses(found, {n: encoder_share(every, n, model) for n in names}),
        )
        report = {
            'set': flights.name,
            'flights': len(folders),
            'seeds': every.seeds,
            'bundle': folder.name,
            'profile': service_times.description,
            'words': {row.name: row.words for row in rows},
            'rows': {n: row_report(every, n, model) for n in names},
            'by_day': {n: row_report(summed(by_day), n, model) for n in names} if by_day else {},
            'battery': flight_of_a_battery(found, every, model),
            'discharges': {name: changes(one) for name, one in discharges.items()},
            'energy': 'a model, not a measurement: encoder time x watts of a busy core',
        }
        text = json.dumps(plain_values(report, _DIGITS), indent=2, allow_nan=False)
        files = {REPORT: f'{text}\n'.encode(), figure.name: figure.png}
        write_files(out, files)
    say(f'{len(folders)} flights of {every.seeds} seeds, {folder.name}')
    print_parts(*_tables(json.loads(text)))
    typer.echo(out / REPORT)


def _tables(report: dict[str, Any]) -> Iterator[Table]:
    table = new_table(
        '95 % intervals drawn by seed',
        *('row', 'streaming IoU', 'of full', 'of full by day', 'IDF1', 'encoder time'),
    )
    for name, of in report['rows'].items():
        by_day = report['by_day'].get(name, {}).get('share_of_full')
        streaming = of['streaming_mean_iou']
        cells = (
            '{value:.3f} ({low:.3f} to {high:.3f})'.format(**streaming),
            f'{of["share_of_full"]:.3f}',
            '-' if by_day is None else f'{by_day:.3f}',
            f'{of["idf1"]["value"]:.3f}',
            f'{of["encoder_share"]:.3f}',
        )
        add_row(table, name, *cells)
    yield table
    battery = new_table(
        'over a discharge; energy is a model',
        *('rule', 'streaming IoU', 'encoder s', 'encoder Wh', 'flight gained s'),
    )
    for rule, of in report['battery'].items():
        numbers = (
            f'{of["streaming_mean_iou"]:.3f}',
            f'{of["encoder_s"]:.0f}',
            f'{of["energy_wh_model"]:.3f}',
            f'{of["gained_s_model"]:.1f}',
        )
        add_row(battery, rule, *numbers)
    yield battery

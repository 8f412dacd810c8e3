"""What `mmedge lab model quantize` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import BundleArgument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'quantisation.json'
_PRECISIONS = ('fp32', 'fp16', 'int8')


def quantize(
    bundle: BundleArgument,
    flights: Annotated[
        list[Path],
        option(
            '--flights',
            'FOLDER',
            'flight with ground truth, or a folder of some, to calibrate and judge on; repeatable',
            exists=True,
        ),
    ],
    out: Annotated[Path, option('--out', 'FOLDER', 'the new bundle', file_okay=False)] = Path(
        'out/quantised'
    ),
    device: Annotated[
        str, option('--device', 'DEVICE', 'where it is to run: cpu, cuda, tensorrt, openvino')
    ] = 'cpu',
) -> None:
    """Write a copy of a bundle in fewer bits, where this device is faster for it and sees as well.

    Each stage of the camera levels and of the recogniser is tried in half precision and in whole
    numbers of 8 bit. What is at least 10 % faster is kept as long as its network loses at most
    half a point of accuracy.
    """
    with plain_errors():
        from mmedge_lab.rivals.nanomind.quantised_bundle import quantise
        from mmedge_lab.rivals.nanomind.stage_precision import require_onnx
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import write_files

        require_onnx()
        folder = default_detector(bundle)
        chosen = [flight for place in flights for flight in flights_in(place)]
        with StatusLine(f'quantising {folder.name}') as line:
            report = quantise(folder, out.absolute(), chosen, device, line.advance)
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    _print(report)
    for brick in report['bricks']:
        for note in brick['notes']:
            say(f'{brick["brick"]}: {note}')
    typer.echo(out)


def _print(report: dict[str, Any]) -> None:
    table = new_table(
        f'{report["bundle"]} on {report["device"]}, processor ms of a run',
        'brick',
        'stage',
        *_PRECISIONS,
        'kept',
        'of its time',
        'before',
        'after',
    )
    for brick in report['bricks']:
        changed = any(stage['kept'] != _PRECISIONS[0] for stage in brick['stages'])
        for number, stage in enumerate(brick['stages']):
            shown = (_ms(stage.get(f'{precision}_ms')) for precision in _PRECISIONS)
            sums = (
                f'{100 * brick["ratio"]:.0f} %',
                _share(brick['before']),
                _share(brick['after']),
            )
            add_row(
                table,
                '' if number else brick['brick'],
                Path(stage['file']).stem,
                *shown,
                stage['kept'],
                *(sums if changed and not number else ('', '', '')),
            )
    print_parts(table)


def _ms(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f}'


def _share(value: float | None) -> str:
    return '' if value is None else f'{value:.3f}'

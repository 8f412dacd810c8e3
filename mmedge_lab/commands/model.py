"""`mmedge lab model`: judge networks, and build bundles of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_lab.commands.model_build import build
from mmedge_lab.commands.model_quantize import quantize
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    BundleArgument,
    DetectorArgument,
    SetArgument,
    argument,
    option,
)
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from mmedge_lab.judging.detector_accuracy import DetectorAccuracy

model_app = CommandGroup(no_args_is_help=True, help='Judge detectors and build bundles.')
model_app.command('build')(build)
model_app.command('quantize')(quantize)


@model_app.command('evaluate')
def evaluate(
    bundle: DetectorArgument,
    flights: SetArgument,
    report: Annotated[
        Path | None,
        option('--out', 'FILE', 'write the figures here as well, as JSON', dir_okay=False),
    ] = None,
    level: Annotated[str, option('--level', 'NAME', 'of the bundle; empty: its default')] = '',
    pictures: Annotated[
        int, option('--pictures', 'N', 'about so many are looked at', min=1)
    ] = 1500,
) -> None:
    """Judge a detector of any origin on flights with ground truth."""
    with plain_errors():
        from mmedge_lab.simulation.flight_folder import flights_in
        from mmedge_lab.training.detector_evaluation import evaluate_detector
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import write_files

        path = default_detector(bundle)
        with StatusLine(f'judging {path.name}') as line:
            accuracy = evaluate_detector(path, flights_in(flights), pictures, level, line.advance)
        if report is not None:
            content = {'detector': path.name, 'set': flights.name, **accuracy.as_json()}
            text = json.dumps(content, indent=2, allow_nan=False) + '\n'
            write_files(report.absolute().parent, {report.name: text.encode()})
    say(
        f'{accuracy.people} people in {accuracy.pictures} pictures, '
        f'{accuracy.detect_ms:.1f} ms for each'
    )
    _print_strata(accuracy)


@model_app.command('accuracy')
def accuracy(
    bundle: BundleArgument,
    report: Annotated[
        Path,
        argument('TABLE', 'of `mmedge lab evaluate-bundle`: its folder or JSON file', exists=True),
    ],
) -> None:
    """Enter what every configuration is worth into a bundle, for the optimiser to choose by."""
    with plain_errors():
        from mmedge_lab.judging.measured_accuracy import read_report
        from mmedge_lab.training.fitted_parts import enter_accuracy
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.bundle.manifest import MANIFEST
        from mmedge_ros.encoding.bundle.model_bundle import load_bundle

        folder = load_bundle(default_detector(bundle)).folder
        enter_accuracy(folder, read_report(report))
    typer.echo(folder / MANIFEST)


def _print_strata(accuracy: DetectorAccuracy) -> None:
    table = new_table('', 'people', '', 'number', 'mAP50', 'recall', 'precision', left=('',))
    group = ''
    for stratum in accuracy.strata:
        if not stratum.people:
            continue
        figures = stratum.ap50, stratum.recall, stratum.precision
        shown = (None if math.isnan(figure) else f'{figure:.3f}' for figure in figures)
        title = stratum.group if stratum.group != group else ''
        add_row(table, title, stratum.name, stratum.people, *shown)
        group = stratum.group
    print_parts(table)

"""`mmedge model`: which networks are here, what they are worth, and how to get others."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml
from rich.console import Console
from rich.table import Table

from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.display import StatusLine, one_line, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.model_build import build
from mmedge_ros.commands.model_quantize import quantize
from mmedge_ros.commands.model_tap import tap
from mmedge_ros.commands.options import (
    BundleArgument,
    DetectorArgument,
    SetArgument,
    argument,
    existing_file,
    flag,
    option,
)

if TYPE_CHECKING:
    from mmedge_ros.encoding.bundle.registry import KnownModel
    from mmedge_ros.lab.evaluation.detector_accuracy import DetectorAccuracy, StratumAccuracy

model_app = CommandGroup(
    no_args_is_help=True, help='List, show, judge, fetch and build detectors and bundles.'
)
model_app.command('build')(build)
model_app.command('tap')(tap)
model_app.command('quantize')(quantize)


@model_app.command('list')
def list_models() -> None:
    """Name the bundles that are here, and those that can be fetched."""
    with plain_errors():
        from mmedge_ros.encoding import EncodingError
        from mmedge_ros.encoding.bundle.default_model import bundle_folders
        from mmedge_ros.encoding.bundle.model_bundle import load_bundle
        from mmedge_ros.encoding.bundle.registry import KNOWN_MODELS

        table = _table('name', 'trained on', 'levels', 'where')
        here = set()
        for folder in bundle_folders():
            here.add(folder.name)
            try:
                bundle = load_bundle(folder)
                facts = bundle.domain or 'not said', ', '.join(bundle.levels)
            except EncodingError as err:
                facts = 'damaged', one_line(str(err))[:60]
            table.add_row(folder.name, *facts, str(folder))
        for model in KNOWN_MODELS:
            if model.name not in here:
                table.add_row(model.name, 'real', '', f'fetch: {model.size_bytes / 1e6:.1f} MB')
        Console(highlight=False).print(table)


@model_app.command('show')
def show(bundle: DetectorArgument) -> None:
    """Check the files of a bundle against its manifest, and print the manifest."""
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.bundle.model_bundle import load_bundle
        from mmedge_ros.lab.training.fitted_parts import Fit, fitted_parts

        described = load_bundle(default_detector(bundle))
        for file in described.files():
            file.verified()
        say(f'{described.folder}: all files are those of the manifest')
        if described.folder.is_dir():
            for part, fit in fitted_parts(described.folder).items():
                if fit is not Fit.FITTED:
                    say(f'{part}: {fit.value}')
        typer.echo(
            yaml.safe_dump(dict(described.content), sort_keys=False, allow_unicode=True).rstrip()
        )


@model_app.command('fetch')
def fetch(
    name: Annotated[str, argument('NAME', 'see `mmedge model list`')],
    source: Annotated[Path | None, existing_file('--from', 'a file that is already here')] = None,
    yes: Annotated[bool, flag('--yes', 'agree without being asked')] = False,
) -> None:
    """Download a detector for real people; its source and licence are shown first."""
    with plain_errors():
        from mmedge_ros.encoding.bundle.registry import find_model
        from mmedge_ros.encoding.bundle.weights import fetched_models_folder

        run_fetch(find_model(name), fetched_models_folder(), source, agreed=yes)


def run_fetch(
    model: KnownModel, models: Path, source: Path | None = None, *, agreed: bool = False
) -> None:
    """Show what would be fetched, ask for agreement, fetch, and print where it is.

    :raises EncodingError: if it cannot be fetched
    """
    from mmedge_ros.encoding.bundle.fetch import install_model, is_installed

    if is_installed(model, models):
        say(f'{model.name} is already here')
        typer.echo(models / model.name)
        return
    for sentence in (
        f'{model.name}: {model.description}; trained on {model.trained_on}',
        f'from     {model.url}' if source is None else f'from     {source}',
        f'size     {model.size_bytes} bytes ({model.size_bytes / 1e6:.1f} MB)',
        f'SHA-256  {model.sha256}',
        f'licence  {model.licence}; {model.licence_url}',
        f'into     {models / model.name}',
    ):
        say(sentence)
    if not agreed and not _agreed():
        say('nothing was fetched')
        raise typer.Exit(1)
    with StatusLine(f'fetching {model.name}') as line:
        folder = install_model(model, models, source, line.advance)
    say(f'use it with --detector {model.name}; recordings of real cameras use it by themselves')
    typer.echo(folder)


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
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.lab.reporting.report_files import write_files
        from mmedge_ros.lab.training.detector_evaluation import (
            evaluate_agreement,
            evaluate_detector,
        )
        from mmedge_ros.lab.training.flight_pictures import flights_in
        from mmedge_ros.records.plain_values import plain_values

        path = default_detector(bundle)
        with StatusLine(f'judging {path.name}') as line:
            chosen = flights_in(flights)
            accuracy = evaluate_detector(
                path, chosen, pictures, level, lambda share: line.advance(share * 0.6)
            )
            agreement = evaluate_agreement(
                path, chosen, pictures // 3, level, lambda share: line.advance(0.6 + share * 0.4)
            )
        if report is not None:
            content = {
                'detector': path.name,
                'set': flights.name,
                **accuracy.as_json(),
                'consecutive': plain_values(agreement._asdict(), 4),
            }
            text = json.dumps(content, indent=2, allow_nan=False) + '\n'
            write_files(report.absolute().parent, {report.name: text.encode()})
    say(
        f'{accuracy.people} people in {accuracy.pictures} pictures, '
        f'{accuracy.detect_ms:.1f} ms for each'
    )
    say(
        f'{agreement.agreement:.3f} of the boxes of two consecutive pictures are in both, at a '
        f'recall of {agreement.recall:g} ({agreement.pairs} pairs)'
    )
    Console(highlight=False).print(_strata_table(accuracy))


@model_app.command('accuracy')
def accuracy(
    bundle: BundleArgument,
    report: Annotated[
        Path,
        argument('REPORT', 'report.json of `mmedge evaluate-bundle`', exists=True, dir_okay=False),
    ],
) -> None:
    """Enter what every configuration is worth into a bundle, for the optimiser to choose by."""
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.bundle.manifest import MANIFEST
        from mmedge_ros.encoding.bundle.model_bundle import load_bundle
        from mmedge_ros.lab.evaluation.measured_accuracy import read_report
        from mmedge_ros.lab.training.fitted_parts import enter_accuracy

        folder = load_bundle(default_detector(bundle)).folder
        enter_accuracy(folder, read_report(report))
    typer.echo(folder / MANIFEST)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        say('add --yes to agree to the licence and fetch it; standard input is no terminal')
        return False
    return typer.confirm('Agree to the licence and fetch it?', err=True)


def _strata_table(accuracy: DetectorAccuracy) -> Table:
    table = _table('people', '', 'number', 'mAP50', 'recall', 'precision', right=(2, 3, 4, 5))
    group = ''
    for stratum in accuracy.strata:
        if not stratum.people:
            continue
        table.add_row(*_cells(stratum, stratum.group if stratum.group != group else ''))
        group = stratum.group
    return table


def _cells(stratum: StratumAccuracy, title: str) -> tuple[str, ...]:
    figures = stratum.ap50, stratum.recall, stratum.precision
    shown = ('-' if math.isnan(figure) else f'{figure:.3f}' for figure in figures)
    return title, stratum.name, str(stratum.people), *shown


def _table(*titles: str, right: Sequence[int] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, title in enumerate(titles):
        table.add_column(title, justify='right' if place in right else 'left', overflow='fold')
    return table


@model_app.command('results')
def results(
    bundle: BundleArgument,
    reports: Annotated[
        list[Path],
        argument(
            'REPORT...',
            'report.json, or its folder, of `mmedge train gate`, `ablations` or `predictor`',
            exists=True,
        ),
    ],
) -> None:
    """Enter measured results into a bundle, for `mmedge evaluate` to judge its promises by."""
    with plain_errors():
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.bundle.manifest import MANIFEST
        from mmedge_ros.encoding.bundle.model_bundle import load_bundle
        from mmedge_ros.lab.comparison.result_files import enter_results, read_results

        folder = load_bundle(default_detector(bundle)).folder
        results_by_name = read_results(reports)
        enter_results(folder, results_by_name)
    say(f'entered: {", ".join(results_by_name)}')
    typer.echo(folder / MANIFEST)

"""`mmedge model results`: what was measured of a bundle's training goes with the bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.commands.command_errors import plain_errors
from mmedge_ros.commands.display import say


def results(
    bundle: Annotated[str, typer.Argument(help='bundle folder, or the name of a bundle')],
    reports: Annotated[
        list[Path],
        typer.Argument(
            metavar='REPORT...',
            exists=True,
            help='report.json, or its folder, of `mmedge train gate`, `ablations` or `predictor`',
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

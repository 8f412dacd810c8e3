"""`mmedge model`: which networks are here, what they are worth, and how to get others."""

from __future__ import annotations

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
from mmedge_ros.commands.options import (
    DetectorArgument,
    argument,
    existing_file,
    flag,
)

if TYPE_CHECKING:
    from mmedge_ros.encoding.bundle.registry import KnownModel

model_app = CommandGroup(no_args_is_help=True, help='List, show and fetch detectors and bundles.')


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

        described = load_bundle(default_detector(bundle))
        for file in described.files():
            file.verified()
        say(f'{described.folder}: all files are those of the manifest')
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


def _agreed() -> bool:
    if not sys.stdin.isatty():
        say('add --yes to agree to the licence and fetch it; standard input is no terminal')
        return False
    return typer.confirm('Agree to the licence and fetch it?', err=True)


def _table(*titles: str, right: Sequence[int] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for place, title in enumerate(titles):
        table.add_column(title, justify='right' if place in right else 'left', overflow='fold')
    return table

"""What is too old for the command line is said before anything of it is imported."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Annotated, Optional

import pytest

from mmedge_ros.commands.command_group import with_default_style
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.start import LEAST_VERSIONS, main, old_libraries

ROOT = Path(__file__).resolve().parents[2]


def test_libraries_that_are_too_old_are_named_with_what_brings_newer_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert old_libraries() == []
    versions = {'typer': '0.4.0', 'matplotlib': '3.10rc1'}
    monkeypatch.setattr('importlib.metadata.version', versions.__getitem__)
    with pytest.raises(SystemExit, match=r'typer 0.4.0: too old; pip install -r requirements/ub'):
        main()


def test_the_bounds_are_those_of_the_package() -> None:
    text = (ROOT / 'pyproject.toml').read_text()
    for name, version in LEAST_VERSIONS.items():
        assert f"'{name}>={'.'.join(map(str, version))}'" in text


def test_arguments_are_declared_in_the_one_way_that_every_typer_reads() -> None:
    folder = ROOT / 'mmedge_ros/commands'
    direct = re.compile(r'typer\.(Argument|Option)\(|= typer\.Typer\(')
    own = {'options.py', 'command_group.py'}
    files = [path for path in folder.glob('*.py') if path.name not in own]
    assert [path.name for path in files if direct.search(path.read_text())] == []


def test_an_old_typer_is_given_defaults_and_unions_that_it_knows() -> None:
    def command(
        name: Annotated[str, argument('NAME', 'a name')],
        out: Annotated[Path | None, option('--out', 'FILE', 'a file')] = None,
    ) -> tuple[str, Path | None]:
        return name, out

    old = with_default_style(command)
    name, out = inspect.signature(old).parameters.values()
    assert (name.annotation, name.default.default) == (str, ...)
    assert (out.annotation, out.default.default) == (Optional[Path], None)  # noqa: UP045
    assert old(name='a', out=None) == ('a', None)

"""What is too old for the command line is said before anything of it is imported."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Optional

import pytest

from mmedge_ros.commands.command_group import with_default_style
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.start import LEAST_VERSIONS, main, old_libraries

ROOT = Path(__file__).resolve().parents[2]
STOPPED = (128 + signal.SIGINT, '', 'stopped\n')
INTERRUPTED_IMPORT = """
import os, signal, sys
from mmedge_ros.commands.start import main
class Finder:
    def find_spec(self, name, *_):
        if name == 'typer':
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
main()
"""
INTERRUPTED_TWICE = """
import atexit, os, signal
from mmedge_ros.commands import main
def interrupt(**_):
    os.kill(os.getpid(), signal.SIGINT)
atexit.register(interrupt)
main.app = interrupt
main.main()
"""


@pytest.fixture
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(*arguments: str, before: Callable[[], None]) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=ROOT,
        preexec_fn=before,
    )
    return done.returncode, done.stdout, done.stderr


def test_an_interrupt_from_before_the_interpreter_was_there_ends_it_without_a_traceback() -> None:
    def interrupt() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.kill(os.getpid(), signal.SIGINT)

    arguments = ('-m', 'mmedge_ros.commands.start', '--version')
    assert interrupted(*arguments, before=interrupt) == STOPPED


def test_an_interrupt_in_the_middle_of_an_import_ends_it_without_a_traceback() -> None:
    assert interrupted('-c', INTERRUPTED_IMPORT, before=lambda: None) == STOPPED


def test_a_second_interrupt_at_the_very_end_changes_nothing() -> None:
    assert interrupted('-c', INTERRUPTED_TWICE, before=lambda: None) == STOPPED


@pytest.mark.usefixtures('_handler')
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

"""What is answered before anything is installed, and that it is what the command line says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_table import command_table, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.commands.early_answers import (
    ANSWERED,
    GO_ON,
    TABLE,
    WRONG,
    UsageError,
    answer,
    check,
    help_text,
    read_table,
)
from mmedge_ros.commands.main import app
from mmedge_ros.commands.old_spellings import RENAMED, respelled

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = typer.main.get_command(app)
LEAVES = [name for name, entry in read_table().items() if 'commands' not in entry]
# What typer raises for a wrong command line.
(REFUSAL,) = typer.BadParameter.__mro__[1:2]


def parsed_by_typer(name: str, words: list[str]) -> None:
    command = COMMANDS
    for word in name.split():
        command = command.commands[word]  # type: ignore[attr-defined]
    command.make_context(name, list(words))


def test_the_table_is_that_of_the_command_line() -> None:
    assert TABLE.read_text(encoding='utf-8') == text_of(command_table()), (
        'write it anew: PYTHONPATH=. python test/support/command_table.py'
    )


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('fly', 'no such command: fly'),
        ('reply', 'did you mean replay?'),
        ('bench optimiser', 'did you mean optimizer?'),
        ('--verson', 'did you mean --version?'),
        ('replay', 'missing argument: RECORDING'),
        ('replay /no/such/bag', "there is no '/no/such/bag'"),
        (f'replay {"a" * 5000}', 'there is no'),
        ('replay . --lve', 'did you mean --live?'),
        ('replay . --out', '--out needs a value: --out FOLDER'),
        ('replay . --live=yes', '--live takes no value'),
        ('replay . more', 'unexpected argument: more'),
        ('replay . -x', 'no such option: -x'),
        ('replay . --rate fast', "'fast' is no number"),
        ('replay . --rate 21', 'at least 0.05 and at most 20'),
        ('replay . --rate nan', 'has to be at least'),
        ('replay . --profile .', 'a file is needed'),
        ('replay-set {file}', 'a folder is needed'),
        ('simulate out --seed 1.5', "'1.5' is no whole number"),
        ('evaluate-bundle people . --configurations most', 'none of all, full'),
        ('train gate people --calibration . --out x', 'missing option: --train SET'),
        ('model results people', 'missing argument: REPORT...'),
    ],
)
def test_a_typing_error_is_one_sentence_and_typer_refuses_it_as_well(
    line: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'file'
    file.touch()
    arguments = line.format(file=file).split()
    assert answer(arguments) == WRONG
    out, err = capsys.readouterr()
    assert (out, words in err.splitlines()[-1]) == ('', True)
    assert err.startswith('Usage: mmedge ')
    name = next((n for n in reversed(LEAVES) if line.startswith(f'{n} ') or line == n), None)
    if name is not None:
        with pytest.raises(REFUSAL):
            parsed_by_typer(name, arguments[len(name.split()) :])


@pytest.mark.parametrize(
    'line',
    [
        'demo',
        'test -k radar',
        'install train',
        'simulate',
        'replay . --out=x --live --rate 2',
        'limit 50 -- sleep 3',
        'limit --trace - -- sleep --help',
        'evaluate . --limits 50ms . --no-timing',
        'bench optimizer --accuracy a --latency b --latency c --limit 5',
        'up --video .',
    ],
)
def test_a_command_that_can_be_obeyed_is_left_to_do(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(line.split()) == GO_ON
    assert capsys.readouterr() == ('', '')


@pytest.mark.parametrize('line', ['--version', '--help', 'replay --help', 'bench --help'])
def test_version_and_help_are_results(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(line.split()) == ANSWERED
    out, err = capsys.readouterr()
    assert (len(out) > 30, err) == (True, '')


@pytest.mark.parametrize('line', ['', 'bench'])
def test_without_a_command_the_commands_are_listed(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(line.split()) == WRONG
    assert 'Usage: mmedge ' in capsys.readouterr().err


@pytest.mark.parametrize('name', read_table())
def test_help_names_all_options_and_fits_the_width(name: str) -> None:
    table = read_table()
    lines = help_text(table, name, 60).splitlines()
    assert all(len(line) <= 60 for line in lines if 'http' not in line and 'Usage' not in line)
    shown = [n for p in table[name]['parameters'] if not p['hidden'] for n in p['names']]
    assert all(any(n in line.split() for line in lines) for n in shown)


OPTIONS = {name for e in read_table().values() for p in e['parameters'] for name in p['names']}
VALUES = ('.', '-', '--', '0', '1', '7.5', '-3', 'nan', '', 'full', 'narrow', str(TABLE), '--out=')
WORDS = st.sampled_from([*sorted(OPTIONS), *VALUES])


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(LEAVES), st.lists(WORDS, max_size=6))
def test_nothing_is_refused_that_typer_accepts(name: str, words: list[str]) -> None:
    try:
        check(read_table()[name]['parameters'], words)
    except UsageError:
        with pytest.raises(REFUSAL):
            parsed_by_typer(name, words)


class TestFreshClone:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        """As much of the sources as this takes, without .venv."""
        root = tmp_path / 'a clone'
        for name in ('mmedge_ros/commands', 'requirements', 'cmake', 'msg'):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns('__pycache__'))
        for name in ('mmedge', 'mmedge_ros/__init__.py', 'CMakeLists.txt', 'package.xml'):
            shutil.copy(ROOT / name, root / name)
        return root

    @pytest.mark.parametrize(
        ('line', 'code', 'words'),
        [
            ('--version', 0, 'mmedge 0.1'),
            ('--help', 0, 'demo'),
            ('train gate --help', 0, '--train SET'),
            ('reply', 2, 'did you mean replay?'),
            ('', 2, 'Usage: mmedge'),
        ],
    )
    def test_the_script_answers_and_installs_nothing(
        self, clone: Path, line: str, code: int, words: str
    ) -> None:
        done = subprocess.run(
            [clone / 'mmedge', *line.split()], capture_output=True, text=True, check=False
        )
        assert (done.returncode, words in (done.stderr if code else done.stdout)) == (code, True)
        assert not (clone / '.venv').exists()
        assert not list(clone.rglob('__pycache__'))


class TestOldSpellings:
    @pytest.mark.parametrize('command', RENAMED)
    def test_new_names_exist_and_old_ones_do_not(self, command: str) -> None:
        known = {n for p in read_table()[command]['parameters'] for n in p['names']}
        assert set(RENAMED[command].values()) <= known
        assert known.isdisjoint(RENAMED[command])

    def test_an_old_name_is_replaced_with_one_hint(self) -> None:
        words, hints = respelled(['bench', 'optimizer', '--limit', '5', '--limit=7', '--json'])
        assert words == ['bench', 'optimizer', '--limits', '5', '--limits=7', '--json']
        assert hints == ['--limit is now --limits; the old name goes with the next release']

    def test_the_changelog_names_them_all(self) -> None:
        text = (ROOT / 'CHANGELOG.rst').read_text()
        rows = [
            rf'``{command}`` +``{old}\b.*``.* +``{new}\b'
            for command, names in RENAMED.items()
            for old, new in names.items()
        ]
        assert [row for row in rows if not re.search(row, text)] == []

    @pytest.mark.parametrize('line', ['limit 50 -- up --video x', 'replay . --video', 'up', ''])
    def test_what_has_no_old_name_is_left_as_it_is(self, line: str) -> None:
        assert respelled(line.split()) == (line.split(), [])

    def test_the_hint_goes_to_standard_error_and_the_command_is_obeyed(
        self, tmp_path: Path
    ) -> None:
        boxes = tmp_path / 'boxes.txt'
        boxes.write_text('1,1,10,10,20,40,1,-1,-1,-1\n')
        figures = tmp_path / 'figures.json'
        command = (sys.executable, '-m', 'mmedge_ros.commands.main')
        done = subprocess.run(
            [*command, 'evaluate-mot', boxes, boxes, '--json', figures],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert 'note: --json is now --out; the old name goes' in done.stderr
        assert 'note' not in done.stdout
        assert figures.exists()

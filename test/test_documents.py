"""Documents: links lead somewhere, commands exist, and the README stays short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mmedge_ros.commands.main import app

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [*ROOT.glob('*.md'), *ROOT.glob('*.rst'), *(ROOT / 'docs').rglob('*.md')],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
COMMANDS = typer.main.get_command(app)
WORDS_OF_THE_SCRIPT = ('install', 'test')
# Layers that are single modules, or explained beside the tables of rooms.
NO_ROOMS = {'data_types', 'parameter', 'clock | heartbeat | untrusted_files'}
NO_ROOMS |= {'worker_processes', 'ray_workers', 'lab', 'commands'}

every_document = pytest.mark.parametrize(
    'document', DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)


def anchors(document: Path) -> set[str]:
    """Anchors of a document's headings, as GitHub makes them."""
    prose = re.sub(r'^```.*?^```', '', document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r'^#+ (.+)$', prose, re.MULTILINE)
    return {re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-') for heading in headings}


def links(document: Path, text: str) -> Iterator[tuple[str, Path, str]]:
    """Relative links of a text: as written, the file, and the heading or ''."""
    for link in re.findall(r'\]\(([^)\s]+)\)', text):
        if not re.match(r'\w+:', link):
            name, _, anchor = link.partition('#')
            yield link, (document.parent / name if name else document).resolve(), anchor


def broken_links(document: Path, text: str) -> list[str]:
    """Relative links of a text that lead to no file or to no heading."""
    return [
        link
        for link, target, anchor in links(document, text)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]


@every_document
def test_relative_links_lead_to_files_and_headings(document: Path) -> None:
    assert broken_links(document, document.read_text()) == []


def test_links_to_nothing_are_noticed() -> None:
    text = '[a](nowhere.md) [b](README.md#no-such-heading) [c](README.md#licence) [d](#licence)'
    assert broken_links(ROOT / 'README.md', text) == ['nowhere.md', 'README.md#no-such-heading']


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached: set[Path] = set()
    waiting = {ROOT / 'README.md'}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        pages = set(page.glob('*.md')) if page.is_dir() else set()
        if page.suffix == '.md':
            pages = {target for _, target, _ in links(page, page.read_text())}
        waiting |= pages - reached
    assert set(DOCUMENTS) - reached == set()


def test_the_readme_is_a_door() -> None:
    text = (ROOT / 'README.md').read_text()
    assert text.count('\n') <= 170
    assert len(re.sub(r'```.*?```', '', text, flags=re.DOTALL).split()) <= 1300


def test_the_architecture_names_every_room_in_the_order_of_the_contracts() -> None:
    tomllib = pytest.importorskip('tomllib')  # python 3.11 and later
    text = (ROOT / 'docs/architecture.md').read_text()
    contracts = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['importlinter']
    layers = [
        contract['layers'] for contract in contracts['contracts'] if contract['type'] == 'layers'
    ]
    for heading, contract in zip(('What flies', 'The lab'), layers, strict=True):
        table = text.split(f'### {heading}')[1].split('\n#')[0]
        rooms = [cell.strip('/') for cell in re.findall(r'^\| `(\w+/)` \|', table, re.MULTILINE)]
        assert rooms == [layer for layer in reversed(contract) if layer not in NO_ROOMS]


def code(text: str) -> Iterator[str]:
    """Code of a document: lines of its blocks, continued ones joined, and what stands inline."""
    text = re.sub(r'\\\n\s*', '', text)
    blocks = re.findall(r'^\s*```.*?^\s*```', text, re.DOTALL | re.MULTILINE)
    for block in blocks:
        yield from (line.partition(' #')[0] for line in block.splitlines())
        text = text.replace(block, '')
    yield from (re.sub(r'\s+', ' ', span) for span in re.findall(r'`+([^`]+)`+', text))


def unknown_command(line: str) -> str | None:
    """Say which word or option of an `mmedge` command does not exist."""
    match = re.search(r'(?<![\w/.-])(?:\./)?mmedge ([\w-]+.*)', line)
    if match is None or match[1].split()[0] in WORDS_OF_THE_SCRIPT:
        return None
    command: Any = COMMANDS
    for word in match[1].split():
        words = getattr(command, 'commands', None)
        if words is None or word.startswith('-'):
            break
        if word not in words:
            return None if word == '...' else f'{line}: no {word}'
        command = words[word]
    known = {name for parameter in command.params for name in parameter.opts}
    wrong = set(re.findall(r'(?<!\S)--[a-z][\w-]*', match[1])) - known - {'--help'}
    return f'{line}: no {", ".join(sorted(wrong))}' if wrong else None


@every_document
def test_commands_and_their_options_exist(document: Path) -> None:
    problems = [unknown_command(line) for line in code(document.read_text())]
    assert [problem for problem in problems if problem] == []


def option_names(command: Any) -> Iterator[str]:
    """Names of the options of a command and of all below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for below in getattr(command, 'commands', {}).values():
        yield from option_names(below)


def options_that_nothing_has(text: str) -> set[str]:
    """Options that stand in a text as code of their own, without a command, and exist nowhere."""
    known = set(option_names(COMMANDS))
    spans = re.findall(r'`+(--[a-z][\w-]*)[^`]*`+', text)
    return set(spans) - known - {'--help'}


@every_document
def test_options_that_are_named_without_their_command_exist(document: Path) -> None:
    text = re.sub(r'^  =.*?^  =+  =+  =+$\n\n', '', document.read_text(), flags=re.DOTALL | re.M)
    assert options_that_nothing_has(text) == set()


def test_an_option_that_does_not_exist_is_noticed() -> None:
    assert options_that_nothing_has('`--limits 50ms`, `--lively` and ``--rate``') == {'--lively'}


@pytest.mark.parametrize(
    'line', ['./mmedge fly', 'mmedge lab bench nothing', '$(mmedge replay BAG --lively)']
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert unknown_command(line)

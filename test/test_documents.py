"""Documents: links and commands exist, figures are those of the results, pages are few."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from mmedge_lab.commands.bench_run import BENCHES
from mmedge_ros.commands.main import app

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / 'docs/results'
DOCUMENTS = sorted(
    [*ROOT.glob('*.md'), *ROOT.glob('*.rst'), *(ROOT / 'docs').rglob('*.md')],
    key=lambda path: path.relative_to(ROOT).as_posix(),
)
PAGES = [
    path for path in DOCUMENTS if path.suffix == '.md' and path.parent.name in (ROOT.name, 'docs')
]
GENERATED = {'parameters.md', 'topics.md'}
COMMANDS = typer.main.get_command(app)
WORDS_OF_THE_SCRIPT = ('install', 'test')

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


def test_pages_are_few_and_short() -> None:
    assert len(PAGES) <= 15
    assert len(list((ROOT / 'docs/decisions').glob('*.md'))) <= 15
    words = {page.name: len(page.read_text().split()) for page in PAGES}
    assert sum(count for name, count in words.items() if name not in GENERATED) <= 22_000
    assert words['README.md'] <= 1400
    sections = re.split(
        r'^\d+\.\d+\.\d+.*$', (ROOT / 'CHANGELOG.rst').read_text(), flags=re.MULTILINE
    )
    assert all(len(section.splitlines()) <= 65 for section in sections)


def unproven(text: str) -> list[str]:
    """Figures of a text, part by part, that are in none of the results that the part links to.

    A part is a paragraph, or a paragraph that ends with a colon and the table after it. Only
    decimals are looked at: whole numbers are seldom measured.
    """
    parts = re.sub(r':\n\n(?=\|)', ':\n', text).split('\n\n')
    wrong = []
    for part in parts:
        sources = re.findall(r'\]\(docs/results/([\w-]+\.md)', part)
        kept = ' '.join((RESULTS / source).read_text() for source in sources)
        figures = re.findall(r'(?<![\w.])\d+\.\d+(?![\w.])', re.sub(r'\]\([^)]*\)', '', part))
        wrong += [
            figure for figure in figures if sources and not re.search(rf'\b{figure}\b', kept)
        ]
    return wrong


def test_figures_of_the_readme_are_those_of_the_results() -> None:
    assert unproven((ROOT / 'README.md').read_text()) == []


def test_a_figure_that_no_result_has_is_noticed() -> None:
    text = (
        '[here](docs/results/evaluate-bundle.md): 0.649 and 0.999:\n\n| 0.998 |\n\nelsewhere 0.997'
    )
    assert unproven(text) == ['0.999', '0.998']


def test_the_architecture_names_every_room_in_the_order_of_the_contracts() -> None:
    tomllib = pytest.importorskip('tomllib')  # python 3.11 and later
    text = (ROOT / 'docs/architecture.md').read_text()
    contracts = tomllib.loads((ROOT / 'pyproject.toml').read_text())['tool']['importlinter']
    rooms = [
        layer
        for contract in contracts['contracts']
        if contract['type'] == 'layers'
        for layer in reversed(contract['layers'])
        if layer != 'commands' and (ROOT / contract['containers'][0] / layer).is_dir()
    ]
    assert re.findall(r'^\| `(\w+)/` \|', text, re.MULTILINE) == rooms


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
    bench = re.match(r'lab bench ([a-z][\w-]*)', match[1])
    if bench and bench[1] not in BENCHES:
        return f'{line}: no bench {bench[1]}'
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


def option_names(command: Any) -> Iterator[str]:
    """Names of the options of a command and of all below it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for below in getattr(command, 'commands', {}).values():
        yield from option_names(below)


def unknown_options(text: str) -> set[str]:
    """Options that stand in a text as code of their own, without a command, and exist nowhere."""
    known = set(option_names(COMMANDS))
    spans = re.findall(r'`+(--[a-z][\w-]*)[^`]*`+', text)
    return set(spans) - known - {'--help'}


# The changelog also names what is gone.
@pytest.mark.parametrize(
    'page', [*PAGES, *sorted(RESULTS.glob('*.md'))], ids=lambda path: path.name
)
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text()
    problems = [unknown_command(line) for line in code(text)]
    assert [problem for problem in problems if problem] == []
    assert unknown_options(text) == set()


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.name)
def test_files_that_are_named_exist(page: Path) -> None:
    folders = 'benchmarks|bootstrap|config|launch|mmedge_lab|requirements|test'
    named = {
        path.rstrip('./')
        for span in code(page.read_text())
        for path in re.findall(rf'(?<![\w/.~]|=)(?:{folders})/[\w./-]*\w', span)
    }
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_an_option_that_does_not_exist_is_noticed() -> None:
    assert unknown_options('`--detector X`, `--lively` and ``--rate``') == {'--lively'}


@pytest.mark.parametrize(
    'line', ['./mmedge fly', 'mmedge lab bench nothing', '$(mmedge replay BAG --lively)']
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert unknown_command(line)

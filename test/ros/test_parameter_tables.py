"""The tables in the documents are those of the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmedge_ros.parameter import declared
from mmedge_ros.ros.messages.interfaces import INTERFACES
from mmedge_ros.ros.parameter_tables import NODES, parameter_tables, topic_table, with_tables

ROOT = Path(__file__).resolve().parents[2]
# Records of decisions may name parameters of their day.
PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))]


@pytest.mark.parametrize('document', ['docs/parameters.md', 'docs/topics.md'])
def test_a_document_shows_parameters_and_topics_as_declared(document: str) -> None:
    text = (ROOT / document).read_text()
    assert with_tables(text) == text, f'run: python -m mmedge_ros.ros.parameter_tables {document}'


def test_every_topic_has_its_row() -> None:
    table = topic_table()
    for interface in INTERFACES:
        assert f'| `{interface.topic}` | ' in table
    assert '| camera, bag_player | unit_encoder, visualizer, viewer |' in table


def test_every_parameter_has_a_description_and_its_row() -> None:
    tables = parameter_tables()
    for kind in NODES.values():
        for item in declared(kind):
            assert item.bounds.description
            assert f'| `{item.name}` |' in tables


def dotted(values: dict[str, Any], prefix: str = '') -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from dotted(value, f'{prefix}{name}.')
        else:
            yield f'{prefix}{name}'


def test_the_shipped_parameter_file_sets_declared_parameters_only() -> None:
    nodes = yaml.safe_load((ROOT / 'config/perception.yaml').read_text())
    for node, values in nodes.items():
        name = node.removeprefix('/**/')
        kind = NODES['unit_encoder' if name.endswith('_encoder') else name]
        names = {item.name for item in declared(kind)}
        assert set(dotted(values['ros__parameters'])) <= names


def test_a_user_has_at_most_140_parameters() -> None:
    assert len({item.name for kind in NODES.values() for item in declared(kind)}) <= 140


@pytest.mark.parametrize('page', PAGES, ids=lambda page: page.name)
def test_parameters_that_a_page_names_are_declared(page: Path) -> None:
    names = {item.name for kind in NODES.values() for item in declared(kind)}
    groups = {name.rsplit('.', depth)[0] for name in names for depth in range(name.count('.') + 1)}
    named = re.findall(
        r'`((?:pipeline|adaptation|detection|limits|status)\.[a-z_.]+)`', page.read_text()
    )
    files = {name for name in named if name.endswith(('.json', '.png'))}
    assert set(named) - groups - files == set()


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match='markers'):
        with_tables('# nothing to replace')

"""The tables in the documents are those of the code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmedge_ros.core.parameter import declared
from mmedge_ros.ros.parameter_tables import NODES, with_tables

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize('document', ['docs/parameters.md', 'docs/topics.md'])
def test_a_document_shows_parameters_and_topics_as_declared(document: str) -> None:
    text = (ROOT / document).read_text()
    assert with_tables(text) == text, f'run: python -m mmedge_ros.ros.parameter_tables {document}'


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


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match='markers'):
        with_tables('# nothing to replace')

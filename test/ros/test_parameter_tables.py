"""The README's tables are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.parameter import declared
from mmedge_ros.ros.parameter_tables import NODES, parameter_tables, with_tables

README = Path(__file__).resolve().parents[2] / 'README.md'


def test_the_readme_shows_the_parameters_as_declared() -> None:
    text = README.read_text()
    assert with_tables(text) == text, 'run: ./mmedge parameters --write README.md'


def test_every_parameter_has_a_description_and_its_row() -> None:
    tables = parameter_tables()
    for kind in NODES.values():
        for item in declared(kind):
            assert item.bounds.description
            assert f'| `{item.name}` |' in tables


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match='markers'):
        with_tables('# nothing to replace')

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from configuration_examples import (
    MODELS,
    RATES,
    SOUNDS,
    accuracy_cell,
    latency_cell,
    nested,
    write,
    write_all,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_lab.rivals.mmedge.published_tables import PublishedTables, read_tables
from mmedge_ros.adaptation import ConfigurationError


def read(folder: Path, accuracy: Any = None, latency: Any = None) -> PublishedTables:
    first, second, _ = write_all(folder)
    if accuracy is not None:
        write(first, accuracy)
    if latency is not None:
        write(second, latency)
    return read_tables(first, [second])


def test_names_and_sizes_are_those_of_the_table(tmp_path: Path) -> None:
    accuracy, quiet, busy = write_all(tmp_path)
    tables = read_tables(accuracy, [quiet, busy])
    assert [axis.values for axis in tables.grid.axes] == [MODELS, RATES, SOUNDS]
    assert tables.latencies[quiet][0] == pytest.approx(0.020)
    index = tables.grid.index((1, 2, 1))
    assert tables.accuracy[index] == pytest.approx(0.83)
    assert tables.latencies[quiet][index] == pytest.approx(0.057)
    assert tables.latencies[busy][index] > tables.latencies[quiet][index]


def test_the_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    backwards = {
        model: {
            rate: dict(reversed(list(sounds.items()))) for rate, sounds in reversed(rates.items())
        }
        for model, rates in reversed(nested(accuracy_cell).items())
    }
    assert np.array_equal(read(tmp_path, backwards).accuracy, read(tmp_path).accuracy)


def test_accuracy_may_come_without_classes_and_numbers_as_text(tmp_path: Path) -> None:
    plain = nested(lambda m, r, s: 60 + m + r + s)
    texts = nested(lambda m, r, s: str(latency_cell(m, r, s)))
    tables = read(tmp_path, plain, texts)
    assert tables.accuracy[0] == pytest.approx(0.6)
    assert tables.latencies[tmp_path / 'quiet.json'][0] == pytest.approx(0.02)


@pytest.mark.parametrize('depth', [1, 2, 5])
def test_any_number_of_choices_will_do(tmp_path: Path, depth: int) -> None:
    def table(levels: int, leaf: Any) -> Any:
        return {key: table(levels - 1, leaf) for key in 'xy'} if levels else leaf

    tables = read(tmp_path, table(depth, {'c': 50}), table(depth, 10.0))
    assert tables.grid.shape == (2,) * depth


def changed(table: dict[str, Any], *path: str, to: Any = None) -> dict[str, Any]:
    """Remove a cell, or replace it."""
    node = table
    for key in path[:-1]:
        node = node[key]
    if to is None:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return table


@pytest.mark.parametrize(
    ('path', 'value', 'words'),
    [
        (
            ('huge', '15', 'mono'),
            None,
            'quiet.json: huge > 15 > mono: this configuration is missing',
        ),
        (('huge', '15'), None, 'huge > 15 > mono: this configuration is missing'),
        (('huge', '15', 'mono'), 'fast', "huge > 15 > mono: 'fast' is no number"),
        (('huge', '15', 'mono'), True, 'True is no number'),
        (('huge', '15', 'mono'), [1], 'is no number'),
        (('huge', '15', 'mono'), 0, '0 is no number from 0.01'),
        (('huge', '15', 'mono'), 'inf', "'inf' is no number"),
        (('huge', '15', 'mono'), 10**400, 'is no number'),
        (('huge', '15'), 12.5, 'huge > 15 > mono: this configuration is missing'),
        (('odd',), {'5': {'mono': 1}}, 'odd > 5 > stereo: this configuration is missing'),
    ],
)
def test_a_cell_that_is_wrong_is_named(
    tmp_path: Path, path: tuple[str, ...], value: Any, words: str
) -> None:
    table = changed(nested(latency_cell), *path, to=value)
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, None, table)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ('path', 'value', 'words'),
    [
        (('huge', '15', 'mono'), None, 'huge > 15 > mono: this configuration is missing'),
        (('new',), {'5': {'mono': 1}}, 'new > 5 > mono: this configuration is unknown to'),
        (('huge', '15', 'mono', 'left'), 101, 'huge > 15 > mono: 101 is no number from 0 to 100'),
        (('huge', '15', 'mono', 'left'), {'x': 1}, 'is no number'),
    ],
)
def test_an_accuracy_that_is_wrong_is_named(
    tmp_path: Path, path: tuple[str, ...], value: Any, words: str
) -> None:
    table = changed(nested(accuracy_cell), *path, to=value)
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, table)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        ('', 'not JSON'),
        ('5', 'holds no nested objects'),
        ('{}', 'holds no nested objects'),
        ('{"a": 1, "a": 2}', "the key 'a' twice"),
        ('{"a": Infinity}', 'is no number'),
        ('{"a":' * 20 + '1' + '}' * 20, 'this configuration is missing'),
        ('[' * 200_000, 'nested deeper than 12'),
        ('{"a": 1' + '0' * 5000 + '}', 'not JSON'),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: str, words: str) -> None:
    accuracy, quiet, _ = write_all(tmp_path)
    write(accuracy, '{"a": 50}')
    write(quiet, content)
    with pytest.raises(ConfigurationError) as caught:
        read_tables(accuracy, [quiet])
    assert words in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    accuracy, quiet, _ = write_all(tmp_path)
    quiet.write_bytes(b'\xff\xfe\xfa{')
    with pytest.raises(ConfigurationError, match='not JSON'):
        read_tables(accuracy, [quiet])


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    accuracy, _, _ = write_all(tmp_path)
    for path in (tmp_path / 'none.json', tmp_path):
        with pytest.raises(ConfigurationError, match=str(path)):
            read_tables(accuracy, [path])
    with pytest.raises(ConfigurationError, match='null'):
        read_tables(accuracy, [Path('a\0b')])
    with pytest.raises(ConfigurationError, match='no latency table'):
        read_tables(accuracy, [])


def test_keys_that_differ_everywhere_do_not_grow_without_bound(tmp_path: Path) -> None:
    wild = {
        str(n): {f'{n} {k}': {f'{n} {k} {j}': 1 for j in 'ab'} for k in 'ab'} for n in range(99)
    }
    with pytest.raises(ConfigurationError, match='keys that differ from place to place'):
        read(tmp_path, None, wild)


json_like = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@settings(max_examples=60)
@given(json_like, json_like)
def test_whatever_the_files_hold_there_are_tables_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, accuracy: Any, latency: Any
) -> None:
    folder = tmp_path_factory.mktemp('tables')
    paths = write(folder / 'a.json', {'x': accuracy}), write(folder / 'l.json', {'x': latency})
    words = ''
    try:
        tables = read_tables(paths[0], [paths[1]])
    except ConfigurationError as err:
        words = str(err)
    assert str(folder) in words or np.isfinite(tables.accuracy).all()

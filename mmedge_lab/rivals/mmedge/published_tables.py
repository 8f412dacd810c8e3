"""Accuracy and latency tables in the format published with the MMEdge paper.

JSON objects nested by what is chosen (video model, fps, audio model, chunk in the published
ones; any number of any names here). A latency table ends in milliseconds, an accuracy table in
percent or in one more object, class -> percent; numbers may be written as strings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.configuration.configuration_space import LARGEST_GRID, Axis, ConfigurationGrid
from mmedge_ros.untrusted_files import read_bounded, shown

FloatArray = NDArray[np.float64]

_MOST_BYTES = 64_000_000
_DEEPEST = 12
_SHORTEST_MS, _LONGEST_MS = 0.01, 1e8

_Path = tuple[str, ...]


@dataclass(frozen=True)
class PublishedTables:
    """Tables of one task: (size,) mean accuracy in 0..1, and latencies in s by file."""

    grid: ConfigurationGrid
    accuracy: FloatArray
    latencies: Mapping[Path, FloatArray]


def read_tables(accuracy: Path, latencies: Sequence[Path]) -> PublishedTables:
    """Read an accuracy table and the latency tables that belong to it.

    Axes and their order are those of the first latency table; every table must hold exactly
    the same configurations.

    :raises ConfigurationError: naming the file and the place
    """
    if not latencies:
        raise ConfigurationError('no latency table is named')
    first = latencies[0]
    content = _load(first)
    grid = _grid_of(first, content)
    tables: dict[Path, FloatArray] = {}
    for path in latencies:
        if path not in tables:
            tables[path] = _latencies(path, content if path == first else _load(path), grid)
    return PublishedTables(grid, _accuracies(accuracy, _load(accuracy), grid, first), tables)


def _latencies(path: Path, content: Any, grid: ConfigurationGrid) -> FloatArray:
    values = np.empty(grid.size)
    for index, (place, leaf) in enumerate(_cells(path, content, grid)):
        milliseconds = _number(path, place, leaf)
        if not _SHORTEST_MS <= milliseconds <= _LONGEST_MS:
            _refuse(
                path,
                place,
                f'{shown(leaf)} ms is no latency; it must be between {_SHORTEST_MS:g} and '
                f'{_LONGEST_MS:g}',
            )
        values[index] = milliseconds / 1e3
    return values


def _accuracies(path: Path, content: Any, grid: ConfigurationGrid, first: Path) -> FloatArray:
    values = np.empty(grid.size)
    classes: set[str] | None = None
    for index, (place, leaf) in enumerate(_cells(path, content, grid, first)):
        by_class = leaf if isinstance(leaf, dict) else {'': leaf}
        if classes is None:
            classes = set(by_class)
        if set(by_class) != classes or not classes:
            odd = sorted(classes ^ set(by_class)) or ['none']
            _refuse(path, place, f'other classes than elsewhere: {shown(odd[0])}')
        percents = [_number(path, (*place, name), value) for name, value in by_class.items()]
        for name, percent in zip(by_class, percents, strict=True):
            if not 0.0 <= percent <= 100.0:
                _refuse(path, (*place, name), f'{percent:g} is no percentage')
        values[index] = math.fsum(percents) / len(percents) / 100.0
    return values


def _grid_of(path: Path, content: Any) -> ConfigurationGrid:
    """Return the axes of a table: all keys of each depth, in order of appearance."""
    names: list[dict[str, None]] = []
    level = [content]
    while any(isinstance(node, dict) for node in level):
        if len(names) >= _DEEPEST:
            raise ConfigurationError(f'{path}: nested deeper than {_DEEPEST} choices')
        objects = [node for node in level if isinstance(node, dict)]
        names.append(dict.fromkeys(key for node in objects for key in node))
        if math.prod(len(keys) for keys in names) > LARGEST_GRID:
            raise ConfigurationError(
                f'{path}: more than {LARGEST_GRID} configurations, or keys that differ '
                'from place to place'
            )
        level = [value for node in objects for value in node.values()]
    if not names:
        raise ConfigurationError(f'{path}: holds {_kind(content)}, not nested objects')
    try:
        return ConfigurationGrid(
            [Axis(f'choice {n + 1}', tuple(keys)) for n, keys in enumerate(names)]
        )
    except ConfigurationError as err:
        raise ConfigurationError(f'{path}: {err}') from err


def _cells(
    path: Path, content: Any, grid: ConfigurationGrid, first: Path | None = None
) -> Iterator[tuple[_Path, Any]]:
    """Yield place and content of every configuration, in the order of the grid."""
    nodes: list[tuple[_Path, Any]] = [((), content)]
    for axis in grid.axes:
        inner: list[tuple[_Path, Any]] = []
        for place, node in nodes:
            if not isinstance(node, dict):
                _refuse(path, place, f'{_kind(node)} where {" or ".join(axis.values[:4])} follow')
            for value in axis.values:
                if value not in node:
                    _refuse(path, (*place, value), 'this configuration is missing')
            extra = [key for key in node if key not in axis.values]
            if extra:
                _refuse(path, (*place, extra[0]), f'unknown to {first or "the rest of the table"}')
            inner += [((*place, value), node[value]) for value in axis.values]
        nodes = inner
    yield from nodes


def _number(path: Path, place: _Path, leaf: Any) -> float:
    if isinstance(leaf, bool) or not isinstance(leaf, int | float | str):
        _refuse(path, place, f'{_kind(leaf)} instead of a number')
    if isinstance(leaf, str) and '_' in leaf:
        _refuse(path, place, f'{shown(leaf)} is not a number')
    try:
        number = float(leaf)
    except (ValueError, OverflowError):
        _refuse(path, place, f'{shown(leaf)} is not a number')
    if not math.isfinite(number):
        _refuse(path, place, f'{shown(leaf)} is not a number')
    return number


def _load(path: Path) -> Any:
    """Read JSON that does not name a key twice."""
    raw = read_bounded(path, _MOST_BYTES, ConfigurationError)
    try:
        return json.loads(raw, object_pairs_hook=_unique, parse_constant=_no_constant)
    except ConfigurationError as err:
        raise ConfigurationError(f'{path}: {err}') from err
    except RecursionError as err:
        raise ConfigurationError(f'{path}: nested deeper than {_DEEPEST} choices') from err
    except ValueError as err:  # of syntax, encoding, or a number of too many digits
        raise ConfigurationError(f'{path}: not JSON ({" ".join(str(err).split())[:200]})') from err


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ConfigurationError(f'the key {shown(twice)} is there twice')
    return content


def _no_constant(name: str) -> NoReturn:
    raise ConfigurationError(f'{name} is not a number')


def _refuse(path: Path, place: _Path, words: str) -> NoReturn:
    where = ' > '.join(shown(key)[1:-1] for key in place) or 'at the top'
    raise ConfigurationError(f'{path}: {where}: {words}')


def _kind(node: Any) -> str:
    kinds = {dict: 'an object', list: 'a list', str: 'a text', bool: 'true or false'}
    if node is None:
        return 'nothing'
    return kinds.get(type(node), 'a number')

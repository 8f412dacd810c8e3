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
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import LARGEST_GRID, Axis, ConfigurationGrid
from mmedge_ros.core.untrusted_files import read_bounded, shown

FloatArray = NDArray[np.float64]

_MOST_BYTES = 64_000_000
_DEEPEST = 12
_SHORTEST_MS, _LONGEST_MS = 0.01, 1e8

# The names chosen at each depth.
_Place: TypeAlias = tuple[str, ...]


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
    cells = {path: dict(_cells(path, _load(path), _DEEPEST)) for path in latencies}
    grid = _grid_of(latencies[0], list(cells[latencies[0]]))
    places = list(product(*(axis.values for axis in grid.axes)))
    wanted = set(places)
    percents = dict(_cells(accuracy, _load(accuracy), len(grid.axes)))
    for path, known in {**cells, accuracy: percents}.items():
        odd = [p for p in places if p not in known] or [p for p in known if p not in wanted]
        if odd:
            what = 'is missing' if odd[0] in wanted else f'is unknown to {latencies[0]}'
            raise ConfigurationError(f'{path}: {_words(odd[0])}: this configuration {what}')
    return PublishedTables(
        grid,
        np.array([_mean_percent(accuracy, place, percents[place]) / 100.0 for place in places]),
        {
            path: np.array([_latency(path, place, known[place]) for place in places])
            for path, known in cells.items()
        },
    )


def _cells(path: Path, node: Any, depth: int, place: _Place = ()) -> Iterator[tuple[_Place, Any]]:
    """Yield place and content of every configuration, ``depth`` objects deep at most."""
    if isinstance(node, dict) and depth:
        for key, below in node.items():
            yield from _cells(path, below, depth - 1, (*place, key))
    else:
        yield place, node


def _grid_of(path: Path, places: Sequence[_Place]) -> ConfigurationGrid:
    """Return the axes of a table: all keys of each depth, in order of appearance."""
    depth = max(map(len, places), default=0)
    if not depth:
        raise ConfigurationError(f'{path}: it holds no nested objects')
    names = [list(dict.fromkeys(p[n] for p in places if len(p) > n)) for n in range(depth)]
    if math.prod(map(len, names)) > LARGEST_GRID:
        raise ConfigurationError(
            f'{path}: more than {LARGEST_GRID} configurations, or keys that differ from place to '
            'place'
        )
    try:
        return ConfigurationGrid(
            [Axis(f'choice {n + 1}', tuple(keys)) for n, keys in enumerate(names)]
        )
    except ConfigurationError as err:
        raise ConfigurationError(f'{path}: {err}') from err


def _latency(path: Path, place: _Place, leaf: Any) -> float:
    return _number(path, place, leaf, _SHORTEST_MS, _LONGEST_MS) / 1e3


def _mean_percent(path: Path, place: _Place, leaf: Any) -> float:
    classes = list(leaf.values()) if isinstance(leaf, dict) and leaf else [leaf]
    return math.fsum(_number(path, place, of, 0.0, 100.0) for of in classes) / len(classes)


def _number(path: Path, place: _Place, leaf: Any, least: float, most: float) -> float:
    try:
        number = math.nan if isinstance(leaf, bool | dict | list | None) else float(leaf)
    except (ValueError, OverflowError):
        number = math.nan
    if not least <= number <= most:
        raise ConfigurationError(
            f'{path}: {_words(place)}: {shown(leaf)} is no number from {least:g} to {most:g}'
        )
    return number


def _load(path: Path) -> Any:
    """Read JSON that does not name a key twice."""
    raw = read_bounded(path, _MOST_BYTES, ConfigurationError)
    try:
        return json.loads(raw, object_pairs_hook=_unique)
    except RecursionError as err:
        raise ConfigurationError(f'{path}: nested deeper than {_DEEPEST} choices') from err
    except ValueError as err:  # of syntax, encoding, or a number of too many digits
        raise ConfigurationError(f'{path}: not JSON ({" ".join(str(err).split())[:200]})') from err


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f'the key {shown(next(k for k in keys if keys.count(k) > 1))} twice')
    return content


def _words(place: _Place) -> str:
    return ' > '.join(shown(key)[1:-1] for key in place) or 'at the top'

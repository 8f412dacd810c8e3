"""The networks that make of a unit what the windows it belongs to have in common.

A unit is encoded as relu(own + onward of the unit before + back of the unit after + one change
for each lag); where there is no such unit it takes its own, and where there is none at a lag
there is no change. Each of these parts depends on one unit or two, and on no window.

``project`` takes ``grid`` (1, C, H, V), and gives ``unit`` (1, W, H, V), which is what changes
are computed from, ``own`` (1, W, H, V), and ``others`` (2, W, H, V): onward and back. A
``change`` takes ``unit`` and ``earlier`` (1, W, H, V), and gives ``change`` (1, W, H, V); there
is one for each lag.
A note of ``project`` named ``pooling`` is JSON: ``decays``, W numbers per second, and
``newest_only``, true where no unit knows of any before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from mmedge_ros.core.untrusted_files import is_number
from mmedge_ros.windows import AggregationError
from mmedge_ros.windows.network_graph import Array, NetworkGraph
from mmedge_ros.windows.temporal_rules import LAGS

POOLING = 'pooling'
_OTHERS = 2
_WHAT = 'network of an aggregator'
_LONGEST_NOTE = 100_000
_FASTEST_DECAY = 1e6


class Projection(NamedTuple):
    """What a unit is by itself.

    ``features`` (1, W, H, V); ``own``, ``onward`` and ``back`` (W, H, V) are its parts in its
    own encoding, in that of the unit after it, and of the unit before it.
    """

    features: Array
    own: Array
    onward: Array
    back: Array


class Pooling(NamedTuple):
    """How a window is pooled: ``decays`` (W,) per second; see the module."""

    decays: Array
    newest_only: bool


class UnitNetworks(Protocol):
    """What computes the parts of encodings.

    ``place`` names the networks in messages; ``grid_shape`` (C, H, V) is that of a unit's grid.
    """

    place: str
    grid_shape: tuple[int, ...]
    pooling: Pooling

    def project(self, grid: Array) -> Projection:
        """Return what a unit is by itself; ``grid`` is (C, H, V)."""

    def change(self, lag: int, features: Array, earlier: Array) -> Array:
        """Return what a unit's change since an earlier one adds to its encoding: (W, H, V).

        :param lag: its place in LAGS
        """


class OnnxUnitNetworks:
    """Unit networks exported as ONNX.

    :param changes: one for each lag
    :raises AggregationError: if the files are no such networks, or do not fit together
    """

    def __init__(self, project: NetworkGraph, changes: Sequence[NetworkGraph]) -> None:
        self._project = project
        self._changes = tuple(changes)
        grid = project.inputs.get('grid', ())
        unit = project.outputs.get('unit', ())
        if len(grid) != 4 or grid[0] != 1 or len(unit) != 4 or unit[2:] != grid[2:]:
            raise AggregationError(
                f'{project.path} is no {_WHAT}: it takes a grid of {list(grid)} and makes a unit '
                f'of {list(unit)}, which must be [1, channels, rows, columns] and [1, width, '
                'rows, columns]; use the files of one bundle, made for this version'
            )
        project.require_ports(('grid',), _WHAT)
        project.require('unit', (1, *unit[1:]), _WHAT)
        project.require('own', (1, *unit[1:]), _WHAT)
        project.require('others', (_OTHERS, *unit[1:]), _WHAT)
        if len(self._changes) != len(LAGS):
            raise AggregationError(
                f'{len(self._changes)} networks of changes for {len(LAGS)} lags; name one for each'
            )
        for graph in self._changes:
            graph.require_ports(('unit', 'earlier'), _WHAT)
            for port in ('unit', 'earlier', 'change'):
                graph.require(port, unit, _WHAT)
        self.place = str(project.path)
        self.grid_shape: tuple[int, ...] = grid[1:]
        self.pooling = _pooling(project, unit[1])

    def project(self, grid: Array) -> Projection:
        unit, own, others = self._project.run({'grid': grid[None]}, ['unit', 'own', 'others'])
        return Projection(unit, own[0], *others)

    def change(self, lag: int, features: Array, earlier: Array) -> Array:
        feeds = {'unit': features, 'earlier': earlier}
        change: Array = self._changes[lag].run(feeds, ['change'])[0][0]
        return change


def _pooling(graph: NetworkGraph, width: int) -> Pooling:
    """Read the note on pooling.

    :raises AggregationError: if it is not there or wrong
    """
    note = graph.notes.get(POOLING, '')
    content: Any = None
    if len(note) <= _LONGEST_NOTE:
        try:
            content = json.loads(note)
        except (ValueError, RecursionError):
            content = None
    fields = content if isinstance(content, dict) else {}
    decays, newest_only = fields.get('decays'), fields.get('newest_only')
    usable = (
        isinstance(newest_only, bool)
        and isinstance(decays, list)
        and len(decays) == width
        and all(is_number(value, 0.0, _FASTEST_DECAY) for value in decays)
    )
    if not usable:
        raise AggregationError(
            f'{graph.path} is no {_WHAT}: its note {POOLING!r} is {note[:80]!r}, it must have '
            f'newest_only and {width} decays from 0 on; export it again'
        )
    return Pooling(np.array(decays, np.float32), bool(newest_only))

"""Aggregates the units of one modality in one window, one at a time, without torch.

The state is passed in and returned; nothing is hidden. Its tensors are whatever the exported
step names: inputs ``grid``, ``seconds_to_end`` and the state, outputs ``next_<name>`` for each
tensor of the state. A state begins at zero, and has ``newest``, the newest unit's grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation.errors import AggregationError
from mmedge_ros.aggregation.state_graph import Array, Shapes, StateGraph, Tensors
from mmedge_ros.data_types import NS_PER_S

GRID, SECONDS_TO_END, NEXT = 'grid', 'seconds_to_end', 'next_'


@dataclass(frozen=True, slots=True, eq=False)
class WindowState:
    """What the units taken in so far have left behind, for the window that ends then.

    ``tensors`` must not be written to: states of the same past share them. ``newest_ns`` is the
    stamp of the newest unit, None before the first.
    """

    end_ns: int
    tensors: Tensors
    newest_ns: int | None = None
    count: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """Summary of one modality in a window.

    ``pooled`` (W, H, V) and ``newest`` (C, H, V), the newest unit's grid; ``present`` is False
    where there is no unit, and both are zeros. ``age`` in s from the newest unit to the window's
    end (0 without one), ``count`` of units.
    """

    pooled: Array
    newest: Array
    present: bool
    age: float
    count: int


class StepGraph(Protocol):
    """What computes a step."""

    def initial(self) -> dict[str, Array]:
        """Return the tensors of a window without units."""

    def grid_shape(self) -> tuple[int, ...]:
        """Return the shape (C, H, V) of a unit's grid."""

    def step(self, tensors: Tensors, grid: Array, seconds_to_end: float) -> dict[str, Array]:
        """Return the tensors after one more unit; those given stay as they are.

        :param grid: (1, C, H, V)
        """


class OnnxStep:
    """A step exported as ONNX.

    :raises AggregationError: if the file is no such graph
    """

    def __init__(self, graph: StateGraph) -> None:
        self._graph = graph
        what = 'step of an aggregator'
        # What a step does not need of the state before is no input of its graph.
        self.state: Shapes = {
            name.removeprefix(NEXT): shape
            for name, shape in graph.outputs.items()
            if name.startswith(NEXT)
        }
        graph.require(SECONDS_TO_END, (1,), what)
        grid = graph.inputs.get(GRID, ())
        if len(grid) != 4 or grid[0] != 1:
            raise AggregationError(
                f'{graph.path} is no {what}: its input {GRID!r} has the shape {list(grid)}, it '
                'must have [1, channels, rows, columns]; use the files of one bundle'
            )
        for name in graph.inputs.keys() - {GRID, SECONDS_TO_END}:
            if name not in self.state:
                raise AggregationError(
                    f'{graph.path} is no {what}: it takes {name[:80]!r} and puts out no '
                    f'{NEXT + name[:80]!r}; use the files of one bundle'
                )
            graph.require(name, self.state[name], what)
        self.place = str(graph.path)
        self._grid = grid[1:]
        self._needed = [name for name in self.state if name in graph.inputs]
        self._outputs = [NEXT + name for name in self.state]

    def initial(self) -> dict[str, Array]:
        return {name: np.zeros(shape, np.float32) for name, shape in self.state.items()}

    def grid_shape(self) -> tuple[int, ...]:
        return self._grid

    def step(self, tensors: Tensors, grid: Array, seconds_to_end: float) -> dict[str, Array]:
        seconds = np.array([seconds_to_end], np.float32)
        feeds = {name: tensors[name] for name in self._needed}
        feeds |= {GRID: grid, SECONDS_TO_END: seconds}
        return dict(zip(self.state, self._graph.run(feeds, self._outputs), strict=True))


class StreamingAggregator:
    """Takes the units of one modality into windows; a window's state is the caller's to keep.

    :param pool: returns the pooled features (W, H, V) of a state's tensors
    :param place: names the network in messages
    """

    def __init__(self, graph: StepGraph, pool: Callable[[Tensors], Array], place: str) -> None:
        self._graph = graph
        self._pool = pool
        self._place = place
        self._initial: Tensors = graph.initial()

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """Channels, rows and columns of a unit's grid."""
        return self._graph.grid_shape()

    def begin(self, end_ns: int) -> WindowState:
        """Return the state of a window that ends then and has no units yet."""
        return WindowState(end_ns, self._initial)

    def checked(self, grid: NDArray[np.floating]) -> Array:
        """Return a grid as steps take it: (C, H, V) float32.

        :raises AggregationError: if it has another shape, or values that are not finite
        """
        if grid.shape != self.grid_shape:
            raise AggregationError(
                f'a grid of {list(grid.shape)} cannot be aggregated by {self._place}, which '
                f'takes {list(self.grid_shape)}; encoder and fusion must be of one bundle'
            )
        values = np.ascontiguousarray(grid, np.float32)
        # One value that is no number would stay in the state until the window ends.
        if not np.isfinite(values).all():
            raise AggregationError(
                f'a grid for {self._place} has values that are not finite; this unit is not used'
            )
        return values

    def step(self, state: WindowState, grid: NDArray[np.floating], stamp_ns: int) -> WindowState:
        """Return the state with one more unit, which may not be older than those before.

        :param grid: (C, H, V)
        :raises AggregationError: if the unit is older or its grid cannot be used
        """
        if state.newest_ns is not None and stamp_ns < state.newest_ns:
            raise AggregationError(
                f'a unit stamped {stamp_ns} ns came after one of {state.newest_ns} ns; take '
                'units in the order of their stamps'
            )
        seconds = (state.end_ns - stamp_ns) / NS_PER_S
        tensors = self._graph.step(state.tensors, self.checked(grid)[None], seconds)
        return WindowState(state.end_ns, tensors, stamp_ns, state.count + 1)

    def finish(self, state: WindowState) -> Aggregate:
        """Summarise a window; its state can still be stepped on."""
        return summary(state, self._pool(state.tensors))


def summary(state: WindowState, pooled: Array) -> Aggregate:
    """Return the summary of a window whose pooled features are known."""
    newest_ns = state.newest_ns
    age = 0.0 if newest_ns is None else (state.end_ns - newest_ns) / NS_PER_S
    newest = state.tensors['newest'][0]
    return Aggregate(pooled, newest, newest_ns is not None, age, state.count)

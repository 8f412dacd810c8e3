"""The states of all open windows, and which unit goes into which.

Windows lie on a global grid: one ends at every multiple of ``stride`` and covers
(end - ``window``, end]. A unit belongs to a window by its *available* time, and has its place in
it by its *stamp*. It is taken once into each window it belongs to, and never encoded again.

What a window says depends on its units alone, not on the order or the moments they came in:
units of one modality are stepped in the order of their stamps (those of one stamp as they
came). One that comes late is put in its place, and the steps from there on are taken again,
from a state that was kept or else from the window's beginning. Units of other modalities are
not touched by that.
"""

from __future__ import annotations

import bisect
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation.errors import AggregationError
from mmedge_ros.aggregation.state_graph import Array
from mmedge_ros.aggregation.streaming_aggregator import WindowState
from mmedge_ros.data_types import NS_PER_S

# Of one modality in one window; far more than any rig sends. A flood may not fill the memory.
_MOST_UNITS = 400
# A state is 2 MB. Units that come late are hardly ever later than one other.
_KEPT_STATES = 3
# Windows beyond those a unit of now belongs to: their owner may be late to close some.
_WINDOWS_MARGIN = 2


class Steps(Protocol):
    """What steps the windows of one modality, see `StreamingAggregator`."""

    def begin(self, end_ns: int) -> WindowState:
        """Return the state of a window without units."""

    def checked(self, grid: NDArray[np.floating]) -> Array:
        """Return a grid as steps take it, or raise AggregationError."""

    def step(self, state: WindowState, grid: NDArray[np.floating], stamp_ns: int) -> WindowState:
        """Return the state with one more unit."""


class _Unit(NamedTuple):
    stamp_ns: int
    grid: Array


@dataclass
class _Lane:
    """The units of one modality in one window, by stamp, and how far they were stepped.

    ``states`` are the last ones, each with the number of units in it.
    """

    begun: WindowState
    units: list[_Unit] = field(default_factory=list)
    states: deque[tuple[int, WindowState]] = field(
        default_factory=lambda: deque(maxlen=_KEPT_STATES)
    )

    @property
    def done(self) -> int:
        return self.states[-1][0] if self.states else 0

    @property
    def state(self) -> WindowState:
        return self.states[-1][1] if self.states else self.begun

    def insert(self, unit: _Unit) -> None:
        """Put a unit in its place, and forget the states that were made without it."""
        place = bisect.bisect_right(self.units, unit.stamp_ns, key=lambda u: u.stamp_ns)
        self.units.insert(place, unit)
        while self.states and self.states[-1][0] > place:
            self.states.pop()

    def step(self, steps: Steps) -> None:
        unit = self.units[self.done]
        self.states.append((self.done + 1, steps.step(self.state, unit.grid, unit.stamp_ns)))


class WindowBank:
    """Takes units in any order, and gives each window's states when it closes.

    `add` computes nothing. Steps are taken by `work_ahead`, one at a time and for the window
    that ends first, and by `close` for what is left; so a decision waits for its own window
    only. ``steps`` counts them; ``overflows`` units that found no room.

    :param aggregators: by modality
    :param window: length, s
    :param stride: distance of window ends, s
    :raises AggregationError: if one of them is not positive
    """

    def __init__(self, aggregators: Mapping[str, Steps], window: float, stride: float) -> None:
        self.steps: Counter[str] = Counter()
        self.overflows: Counter[str] = Counter()
        self._aggregators = dict(aggregators)
        self._window_ns, self._stride_ns = (round(s * NS_PER_S) for s in (window, stride))
        if self._window_ns <= 0 or self._stride_ns <= 0:
            raise AggregationError(
                f'windows of {window} s every {stride} s are impossible; both must be above 0'
            )
        overlap = -(-self._window_ns // self._stride_ns)
        self._most_windows = 2 * overlap + _WINDOWS_MARGIN
        self.reset()

    def reset(self) -> None:
        """Forget all units and windows, closed ones too; counts go on."""
        self._closed_ns: int | None = None
        self._windows: dict[int, dict[str, _Lane]] = {}

    @property
    def open_ends_ns(self) -> tuple[int, ...]:
        """Ends of the open windows that have units, in order."""
        return tuple(sorted(self._windows))

    @property
    def has_work(self) -> bool:
        """Whether there are units that were not stepped into one of their windows."""
        return any(self._waiting(end_ns) for end_ns in self._windows)

    def add(
        self, modality: str, grid: NDArray[np.floating], stamp_ns: int, available_ns: int
    ) -> tuple[int, ...]:
        """Enter a unit into every open window it belongs to.

        :param grid: (C, H, V); it is kept and must not be written to
        :return: the ends of these windows; () where all are closed, or there is no room
        :raises AggregationError: for a modality that is not aggregated, or an unusable grid
        """
        if modality not in self._aggregators:
            raise AggregationError(
                f'units of {modality!r} are not aggregated; these are: '
                f'{", ".join(self._aggregators)}'
            )
        unit = _Unit(stamp_ns, self._aggregators[modality].checked(grid))
        ends_ns = self._ends_of(available_ns)
        opened = sum(end_ns not in self._windows for end_ns in ends_ns)
        if len(self._windows) + opened > self._most_windows:
            # Its clock is far ahead of the windows that are still open.
            self.overflows[modality] += 1
            return ()
        lanes = {end_ns: self._lane(end_ns, modality) for end_ns in ends_ns}
        entered = tuple(end for end, lane in lanes.items() if len(lane.units) < _MOST_UNITS)
        for end_ns in entered:
            lanes[end_ns].insert(unit)
        if len(entered) < len(ends_ns):
            self.overflows[modality] += 1
        return entered

    def work_ahead(self) -> bool:
        """Take one step, for the window that ends first of those that have one to take.

        :return: False if there was nothing to do
        """
        for end_ns in self.open_ends_ns:
            if modality := self._waiting(end_ns):
                self._step(end_ns, modality)
                return True
        return False

    def state(self, end_ns: int) -> dict[str, WindowState]:
        """Return the states of a window with all its units so far, and leave it open.

        :raises AggregationError: if it was closed
        """
        if self._closed_ns is not None and end_ns <= self._closed_ns:
            raise AggregationError(
                f'the window that ends at {end_ns} ns is closed, the last one closed ended at '
                f'{self._closed_ns} ns; ask for each window before it is closed'
            )
        while modality := self._waiting(end_ns):
            self._step(end_ns, modality)
        lanes = self._windows.get(end_ns, {})
        return {
            modality: lanes[modality].state if modality in lanes else steps.begin(end_ns)
            for modality, steps in self._aggregators.items()
        }

    def close(self, end_ns: int) -> dict[str, WindowState]:
        """Return the states of a window with all its units, and drop it and those before.

        :raises AggregationError: if it was closed before
        """
        states = self.state(end_ns)
        self._closed_ns = end_ns
        self._windows = {end: lanes for end, lanes in self._windows.items() if end > end_ns}
        return states

    def _ends_of(self, available_ns: int) -> list[int]:
        """Return the ends of the open windows that contain an instant."""
        first_ns = -(-available_ns // self._stride_ns) * self._stride_ns
        ends_ns = range(first_ns, available_ns + self._window_ns, self._stride_ns)
        return [end for end in ends_ns if self._closed_ns is None or end > self._closed_ns]

    def _lane(self, end_ns: int, modality: str) -> _Lane:
        lanes = self._windows.setdefault(end_ns, {})
        if modality not in lanes:
            lanes[modality] = _Lane(self._aggregators[modality].begin(end_ns))
        return lanes[modality]

    def _waiting(self, end_ns: int) -> str:
        """Return a modality of which units wait to be stepped into a window, '' for none."""
        lanes = self._windows.get(end_ns, {})
        return next((m for m, lane in lanes.items() if lane.done < len(lane.units)), '')

    def _step(self, end_ns: int, modality: str) -> None:
        self._windows[end_ns][modality].step(self._aggregators[modality])
        self.steps[modality] += 1

"""The states of all open windows, unit by unit.

A window is known by its end; which units belong to it is the caller's to say. A unit is taken
once into each of its windows.

What a window says depends on its units alone, not on the order or the moments they came in:
units of one modality are stepped in the order of their stamps, those of one stamp in that of
their numbers. One that comes late is put in its place, and the steps from there on are taken
again, from a state that was kept or else from the window's beginning. Units of other modalities
are not touched by that. Steps are cheap: what the windows of a unit have in common is computed
in the first of them, see `streaming_aggregator`.
"""

from __future__ import annotations

import bisect
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import UnitKey
from mmedge_ros.core.run_record import count_failure
from mmedge_ros.windows import AggregationError

# Of one modality in one window; far more than any rig sends. A flood may not fill the memory.
_MOST_UNITS = 400
# Three times those that overlap at most. Only units of another clock would open more.
_MOST_WINDOWS = 60
# A state is 0.15 MB. Units that come late are hardly ever later than a few others, and of the
# window that ends next those of its newest pictures are needed as well.
_KEPT_STATES = 8

State = TypeVar('State')


class Steps(Protocol[State]):
    """What steps the windows of one modality, see `StreamingAggregator`."""

    def begin(self, end_ns: int) -> State:
        """Return the state of a window without units."""

    def unit(self, grid: NDArray[np.floating]) -> Any:
        """Return a unit as steps take it, or raise AggregationError; it is theirs alone."""

    def step(self, state: State, unit: Any, stamp_ns: int) -> State:
        """Return the state with one more unit; the one given stays as it is."""


class _Unit(NamedTuple):
    stamp_ns: int
    sequence: int
    taken: Any

    @property
    def place(self) -> tuple[int, int]:
        return self.stamp_ns, self.sequence


@dataclass
class _Lane(Generic[State]):
    """The units of one modality in one window, in order, and how far they were stepped.

    ``states`` are the last ones, each with the number of units in it.
    """

    begun: State
    units: list[_Unit] = field(default_factory=list)
    states: deque[tuple[int, State]] = field(default_factory=deque)

    @property
    def done(self) -> int:
        return self.states[-1][0] if self.states else 0

    @property
    def waiting(self) -> int:
        return len(self.units) - self.done

    @property
    def state(self) -> State:
        return self.states[-1][1] if self.states else self.begun

    def count_until(self, stamp_ns: int) -> int:
        """Return how many units are stamped then or before."""
        return bisect.bisect_right(self.units, stamp_ns, key=lambda u: u.stamp_ns)

    def insert(self, unit: _Unit) -> bool:
        """Put a unit in its place, and forget the states that were made without it.

        :return: False for one that is there already
        """
        place = bisect.bisect_left(self.units, unit.place, key=lambda u: u.place)
        if place < len(self.units) and self.units[place].place == unit.place:
            return False
        self.units.insert(place, unit)
        while self.states and self.states[-1][0] > place:
            self.states.pop()
        return True

    def step(self, steps: Steps[State]) -> None:
        unit = self.units[self.done]
        self.states.append((self.done + 1, steps.step(self.state, unit.taken, unit.stamp_ns)))
        while len(self.states) > _KEPT_STATES:
            self.states.popleft()


class WindowBank(Generic[State]):
    """Takes units in any order, and gives each window's states when it closes.

    `add` computes nothing. Steps are taken one at a time, by `advance` for a window and by
    `work_ahead` for the one that ends first, and by `close` for what is left; so a decision
    waits for its own window only.

    ``steps`` counts them; ``refused`` units that are not used, by what is wrong with them.

    :param aggregators: by modality
    """

    def __init__(self, aggregators: Mapping[str, Steps[State]]) -> None:
        self.steps: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._aggregators = dict(aggregators)
        self.reset()

    def reset(self) -> None:
        """Forget all units and windows, closed ones too; counts go on."""
        self._closed_ns: int | None = None
        self._windows: dict[int, dict[str, _Lane[State]]] = {}

    @property
    def open_ends_ns(self) -> tuple[int, ...]:
        """Ends of the open windows that have units, in order."""
        return tuple(sorted(self._windows))

    @property
    def waiting(self) -> int:
        """Steps that are left to take, for all windows together."""
        return sum(self.waiting_for(end_ns) for end_ns in self._windows)

    def waiting_for(self, end_ns: int) -> int:
        """Return how many steps are left to take for a window."""
        return sum(lane.waiting for lane in self._windows.get(end_ns, {}).values())

    def add(
        self, unit: UnitKey, grid: NDArray[np.floating], ends_ns: Iterable[int]
    ) -> tuple[int, ...]:
        """Enter a unit into its windows; one that finds no room in a window is counted.

        :param grid: (C, H, V); it is kept and must not be written to
        :param ends_ns: of the windows it belongs to; those closed already are left out
        :return: the ends of the windows it was entered into
        :raises AggregationError: for a modality that is not aggregated, or an unusable grid
        """
        if unit.modality not in self._aggregators:
            raise AggregationError(
                f'units of {unit.modality!r} are not aggregated; these are: '
                f'{", ".join(self._aggregators)}'
            )
        taken = self._aggregators[unit.modality].unit(grid)
        entry = _Unit(unit.stamp_ns, unit.sequence, taken)
        still_open = [end_ns for end_ns in ends_ns if not self._is_closed(end_ns)]
        problems = {end_ns: self._enter(end_ns, unit.modality, entry) for end_ns in still_open}
        for problem in sorted(set(problems.values()) - {''}):
            count_failure(self.refused, f'a {unit.modality} unit {problem}')
        return tuple(end_ns for end_ns, problem in problems.items() if not problem)

    def advance(self, end_ns: int) -> bool:
        """Take one step for a window.

        :return: False if there was nothing to do
        """
        lanes = self._windows.get(end_ns, {})
        modality = next((m for m, lane in lanes.items() if lane.waiting), None)
        if modality is None:
            return False
        self._step(lanes[modality], modality)
        return True

    def work_ahead(self) -> bool:
        """Take one step, for the window that ends first of those that have one to take.

        :return: False if there was nothing to do
        """
        return any(self.advance(end_ns) for end_ns in self.open_ends_ns)

    def state(self, end_ns: int) -> dict[str, State]:
        """Return the states of a window with all its units so far, and leave it open.

        :raises AggregationError: if it was closed
        """
        self._require_open(end_ns)
        while self.advance(end_ns):
            pass
        lanes = self._windows.get(end_ns, {})
        return {
            modality: lanes[modality].state if modality in lanes else steps.begin(end_ns)
            for modality, steps in self._aggregators.items()
        }

    def state_until(self, end_ns: int, stamp_ns: int) -> dict[str, State]:
        """Return the states of a window with its units stamped then or before.

        The last states of each modality are at hand; for one farther back the steps are taken
        again from the window's beginning.

        :raises AggregationError: if it was closed
        """
        self._require_open(end_ns)
        return {
            modality: self._until(end_ns, modality, stamp_ns) for modality in self._aggregators
        }

    def close(self, end_ns: int) -> dict[str, State]:
        """Return the states of a window with all its units, and drop it and those before.

        :raises AggregationError: if it was closed before
        """
        states = self.state(end_ns)
        self.drop(end_ns)
        return states

    def drop(self, end_ns: int) -> None:
        """Close a window and those before without the steps that are left."""
        self._closed_ns = end_ns
        self._windows = {end: lanes for end, lanes in self._windows.items() if end > end_ns}

    def _until(self, end_ns: int, modality: str, stamp_ns: int) -> State:
        lane = self._lane(end_ns, modality)
        count = lane.count_until(stamp_ns)
        while lane.done < count:
            self._step(lane, modality)
        if not count:
            return lane.begun
        for done, state in lane.states:
            if done == count:
                return state
        state = lane.begun
        for unit in lane.units[:count]:
            state = self._aggregators[modality].step(state, unit.taken, unit.stamp_ns)
            self.steps[modality] += 1
        return state

    def _step(self, lane: _Lane[State], modality: str) -> None:
        lane.step(self._aggregators[modality])
        self.steps[modality] += 1

    def _require_open(self, end_ns: int) -> None:
        if self._is_closed(end_ns):
            raise AggregationError(
                f'the window that ends at {end_ns} ns is closed, the last one closed ended at '
                f'{self._closed_ns} ns; take each window before it is closed'
            )

    def _is_closed(self, end_ns: int) -> bool:
        return self._closed_ns is not None and end_ns <= self._closed_ns

    def _enter(self, end_ns: int, modality: str, unit: _Unit) -> str:
        """Enter a unit into a window; return what is wrong with it, '' if nothing is."""
        if end_ns not in self._windows and len(self._windows) >= _MOST_WINDOWS:
            return f'far ahead of the open windows: there are {_MOST_WINDOWS} already'
        lane = self._lane(end_ns, modality)
        if len(lane.units) >= _MOST_UNITS:
            return f'beyond the {_MOST_UNITS} that a window holds'
        return '' if lane.insert(unit) else 'that came twice'

    def _lane(self, end_ns: int, modality: str) -> _Lane[State]:
        lanes = self._windows.setdefault(end_ns, {})
        if modality not in lanes:
            lanes[modality] = _Lane(self._aggregators[modality].begin(end_ns))
        return lanes[modality]

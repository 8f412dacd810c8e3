"""Which rates, levels and reuse each modality offers, and the numbered grid of combinations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.caps_policy import Caps
from mmedge_ros.core.data_types import MOST_REUSE, ModalityConfiguration
from mmedge_ros.core.untrusted_files import shown

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Above this an exact search takes longer than a millisecond is worth, and arrays grow large.
LARGEST_GRID = 100_000

# What levels are called unless a bundle gives them names of its own.
LEVELS_FROM_CHEAPEST = ('small', 'medium', 'large')

_HIGHEST_RATE = 10_000.0
# So many sets of caps are remembered: a flight meets a few.
_KEPT_CAPS = 16


class Axis(NamedTuple):
    """One thing to choose, with its values in the order in which they are numbered."""

    name: str
    values: tuple[str, ...]


class ConfigurationGrid:
    """Every combination of the axes' values, the last axis varying fastest.

    :raises ConfigurationError: for no axis, an axis without values or with one value twice,
        two axes of one name, or more than `LARGEST_GRID` combinations
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = tuple(axes)
        if not self.axes:
            raise ConfigurationError('a configuration needs at least one thing to choose')
        names = [axis.name for axis in self.axes]
        for axis in self.axes:
            if names.count(axis.name) > 1:
                raise ConfigurationError(f'{shown(axis.name)} is listed twice')
            if not axis.values:
                raise ConfigurationError(f'{shown(axis.name)} has no values to choose from')
            if len(set(axis.values)) < len(axis.values):
                raise ConfigurationError(
                    f'{shown(axis.name)} lists a value twice: {shown(axis.values)}'
                )
        self.shape = tuple(len(axis.values) for axis in self.axes)
        self.size = math.prod(self.shape)
        if self.size > LARGEST_GRID:
            raise ConfigurationError(
                f'{self.size} configurations are too many to search (at most {LARGEST_GRID}); '
                'leave out some rates or levels'
            )
        # (size, axes): which value of each axis a configuration takes.
        self.places: IntArray = np.stack(
            np.unravel_index(np.arange(self.size), self.shape), axis=1
        ).astype(np.intp)

    def __len__(self) -> int:
        return self.size

    def labels(self, index: int) -> tuple[str, ...]:
        """Return the values that configuration ``index`` takes, one per axis."""
        return tuple(
            axis.values[place] for axis, place in zip(self.axes, self.places[index], strict=True)
        )

    def index(self, places: Sequence[int]) -> int:
        """Return the number of the configuration that takes these places on the axes."""
        return int(np.ravel_multi_index(tuple(places), self.shape))


@dataclass(frozen=True)
class ModalityOptions:
    """What can be chosen for one modality.

    ``rates`` in Hz, ascending; ``levels`` from the cheapest to the most expensive; ``reuse`` n
    encodes about every n-th unit, from the cheapest: descending.
    """

    modality: str
    rates: tuple[float, ...]
    levels: tuple[str, ...]
    device: str = 'cpu'
    reuse: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        for rate in self.rates:
            if not 0.0 < rate <= _HIGHEST_RATE:
                raise ConfigurationError(
                    f'{self.modality}: a rate of {shown(rate)} Hz; it must be above 0 and at '
                    f'most {_HIGHEST_RATE:g}'
                )
        if list(self.rates) != sorted(set(self.rates)):
            raise ConfigurationError(
                f'{self.modality}: list every rate once, the lowest first, not {shown(self.rates)}'
            )
        if (
            not self.reuse
            or list(self.reuse) != sorted(set(self.reuse), reverse=True)
            or not 1 <= self.reuse[-1] <= self.reuse[0] <= MOST_REUSE
        ):
            raise ConfigurationError(
                f'{self.modality}: a reuse of {shown(self.reuse)}; list numbers from 1 to '
                f'{MOST_REUSE}, each once'
            )


class ModalityColumns(NamedTuple):
    """What each configuration of a space has of one modality, (size,).

    ``rate`` in Hz; ``level`` is the place among the levels, 0 the cheapest.
    """

    rate: FloatArray
    level: IntArray
    reuse: IntArray


class ConfigurationSpace:
    """The configurations of any number of modalities: every rate, level and reuse of each.

    Configurations are numbered so that within each modality rates come before levels, these before
    reuse, and number 0 is the cheapest: all lowest rates and levels, the most reuse. ``columns``
    has what they are, modality by modality.

    :raises ConfigurationError: for a modality without rates or levels, or too many of them
    """

    def __init__(self, modalities: Sequence[ModalityOptions]) -> None:
        self.modalities = tuple(modalities)
        axes: list[Axis] = []
        for options in self.modalities:
            rates = tuple(f'{rate:g}' for rate in options.rates)
            axes.append(Axis(f'{options.modality} rate', rates))
            axes.append(Axis(f'{options.modality} level', options.levels))
            if len(options.reuse) > 1:
                axes.append(Axis(f'{options.modality} reuse', tuple(map(str, options.reuse))))
        self.grid = ConfigurationGrid(axes)
        places = iter(self.grid.places.T)
        self.columns = tuple(
            ModalityColumns(
                np.array(options.rates)[next(places)],
                next(places),
                np.array(options.reuse)[next(places) if len(options.reuse) > 1 else 0]
                + np.zeros(self.grid.size, np.intp),
            )
            for options in self.modalities
        )
        self._allowed: dict[Any, BoolArray] = {}

    def __len__(self) -> int:
        return self.grid.size

    def parts(self, index: int) -> tuple[ModalityConfiguration, ...]:
        """Return configuration ``index`` modality by modality."""
        return tuple(
            ModalityConfiguration(
                options.modality,
                float(column.rate[index]),
                options.levels[column.level[index]],
                options.device,
                int(column.reuse[index]),
            )
            for options, column in zip(self.modalities, self.columns, strict=True)
        )

    def index_of(self, parts: Sequence[ModalityConfiguration]) -> int | None:
        """Return the number of a configuration, or None if it is not of this space."""
        given = {part.modality: part for part in parts}
        places: list[int] = []
        for options in self.modalities:
            part = given.get(options.modality)
            if (
                part is None
                or part.rate not in options.rates
                or part.level not in options.levels
                or part.reuse not in options.reuse
            ):
                return None
            places += [options.rates.index(part.rate), options.levels.index(part.level)]
            if len(options.reuse) > 1:
                places.append(options.reuse.index(part.reuse))
        return self.grid.index(places)

    def allowed(self, caps: Caps) -> BoolArray:
        """Return (size,) which configurations respect the caps; not to be written to.

        The lowest rate and the cheapest level stay allowed, whatever the caps say: a drone
        that must save everything still needs an answer. A level that a modality lacks stands
        for the next cheaper one it has (see `highest_level`). Caps on modalities that the space
        does not have and rates that are not numbers do not count. A least reuse that a modality
        does not offer stands for the next one below it.
        """
        key = tuple(tuple(sorted(of.items())) for of in (caps.rates, caps.levels, caps.reuse))
        if key not in self._allowed:
            if len(self._allowed) >= _KEPT_CAPS:
                self._allowed.clear()
            self._allowed[key] = self._respecting(caps)
        return self._allowed[key]

    def _respecting(self, caps: Caps) -> BoolArray:
        allowed = np.ones(self.grid.size, bool)
        for options, column in zip(self.modalities, self.columns, strict=True):
            rate = caps.rates.get(options.modality, math.inf)
            if not math.isnan(rate):
                allowed &= column.rate <= max(rate, options.rates[0])
            allowed &= column.level <= highest_level(
                options, caps.levels.get(options.modality, '')
            )
            least = caps.reuse.get(options.modality, 1)
            offered = next((n for n in options.reuse if n <= least), options.reuse[-1])
            allowed &= column.reuse >= offered
        allowed.flags.writeable = False
        return allowed


def from_cheapest(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in ascending order of cost: other names than the usual stay as listed."""
    if set(levels) <= set(LEVELS_FROM_CHEAPEST):
        return tuple(level for level in LEVELS_FROM_CHEAPEST if level in levels)
    return tuple(levels)


def highest_level(options: ModalityOptions, cap: str) -> int:
    """Return the place of the most expensive level that a cap leaves to a modality.

    ``small``, ``medium`` and ``large`` mean something to every modality. One that has some of
    them is held to the next cheaper one it has, at least its cheapest. Where levels have names
    of their own, the cheapest, the middle one (the cheaper of two) and the most expensive take
    their places. Any other name that the modality lacks leaves everything, as it cannot be put
    in order.
    """
    levels, last = options.levels, len(options.levels) - 1
    if cap in levels:
        return levels.index(cap)
    if cap not in LEVELS_FROM_CHEAPEST:
        return last
    rank = LEVELS_FROM_CHEAPEST.index(cap)
    if set(levels) <= set(LEVELS_FROM_CHEAPEST):
        cheaper = [n for n, name in enumerate(levels) if LEVELS_FROM_CHEAPEST.index(name) < rank]
        return max(cheaper, default=0)
    return last * rank // (len(LEVELS_FROM_CHEAPEST) - 1)

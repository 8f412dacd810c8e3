"""All combinations of the values of some axes, numbered; knows nothing of what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration import ConfigurationError
from mmedge_ros.untrusted_files import shown

# Above this an exact search takes longer than a millisecond is worth, and arrays grow large.
LARGEST_GRID = 100_000

IntArray = NDArray[np.intp]


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

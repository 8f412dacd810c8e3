"""The unit times behind a table of latencies: what a drone would measure while it is true.

A table says how long whole configurations take. One number for each level of each modality, one
for each rate and one for all explain most of it: the slowest modality's last unit, queue included
(see `configuration.queueing`), and what is left after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from mmedge_ros.adaptation.configuration_space import (
    ConfigurationGrid,
    ConfigurationSpace,
    ModalityOptions,
)
from mmedge_ros.adaptation.factorised_latency import OVERLOAD
from mmedge_ros.adaptation.queueing import last_unit_quantiles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Numbers above this are samples of sound in a unit, at so many per second.
_FASTEST_HZ, _SAMPLES_HZ = 200.0, 16_000.0
# Queues of the tables drop nothing.
_CAPACITY = 1_000_000
_STARTS, _EVALUATIONS = 12, 100
# Pull of what a rate adds towards none (per s), and of unit times towards the start, which
# decide where a table leaves it open.
_RATE_PULL, _UNIT_PULL = 2.0, 0.01
_LEAST_REST = 1e-3


class TableSpace(NamedTuple):
    """The space of a table's configurations, and the place of each of them in it."""

    space: ConfigurationSpace
    places: IntArray


class TableFactors(NamedTuple):
    """``units`` (s) by modality and level, ``rest`` (s) by configuration of the space.

    ``numbers`` were fitted. ``r2`` is the share of the table's variance they explain, ``error``
    the standard deviation of log(latency / fitted).
    """

    units: dict[tuple[str, str], float]
    rest: FloatArray
    numbers: int
    r2: float
    error: float


def table_space(grid: ConfigurationGrid) -> TableSpace:
    """Read the axes of a table as levels and rates of modalities.

    Two neighbouring axes are a modality if the second, or else the first, lists numbers: its
    rates in Hz, or samples of sound per unit. Any other axis is the levels of a modality at 1 Hz.
    """
    options: list[ModalityOptions] = []
    places: list[IntArray] = []
    axes = list(range(len(grid.axes)))
    while axes:
        level, rate = axes.pop(0), None
        if axes and _rates(grid.axes[axes[0]].values):
            rate = axes.pop(0)
        elif axes and _rates(grid.axes[level].values):
            level, rate = axes.pop(0), level
        rates = (1.0,) if rate is None else _rates(grid.axes[rate].values)
        ranks = np.argsort(np.argsort(rates))
        options.append(
            ModalityOptions(
                f'modality {len(options) + 1}', tuple(sorted(rates)), grid.axes[level].values
            )
        )
        places += [
            np.zeros(grid.size, np.intp) if rate is None else ranks[grid.places[:, rate]],
            grid.places[:, level],
        ]
    space = ConfigurationSpace(options)
    return TableSpace(space, np.ravel_multi_index(tuple(places), space.grid.shape))


def table_factors(latency: FloatArray, table: TableSpace) -> TableFactors:
    """Fit a table (size,) of latencies in s, in the order of the table."""
    space, index = table
    log_latency = np.empty(len(space))
    log_latency[index] = np.log(latency)
    random = np.random.default_rng(0)
    typical = float(np.median(latency))
    longest = np.concatenate(
        [[min(1.0 / o.rates[-1], typical)] * len(o.levels) for o in space.modalities]
    )
    middle = np.log(np.append(0.4 * longest, 0.3 * typical))
    waits = np.zeros(sum(len(o.rates) for o in space.modalities))

    def residuals(numbers: FloatArray) -> FloatArray:
        unit, rest = _parts(numbers, space)
        pull = _UNIT_PULL * (numbers[: len(middle)] - middle)
        missed = np.log(unit + rest) - log_latency
        return np.concatenate([missed, pull, _RATE_PULL * numbers[len(middle) :]])

    scale = np.concatenate([np.full(len(middle), 0.3), np.full(len(waits), 0.01)])
    fits = []
    for _ in range(_STARTS):
        start = middle + np.log(random.uniform(0.2, 2.0, len(middle)))
        begin = np.concatenate([start, waits])
        fits.append(least_squares(residuals, begin, x_scale=scale, max_nfev=_EVALUATIONS))
    best = min(fits, key=lambda fit: float(fit.cost)).x
    unit, rest = _parts(best, space)
    fitted = (unit + rest)[index]
    spread = float(np.square(latency - latency.mean()).sum())
    missed = float(np.square(latency - fitted).sum())
    names = [(o.modality, level) for o in space.modalities for level in o.levels]
    return TableFactors(
        dict(zip(names, np.exp(best[: len(names)]).tolist(), strict=True)),
        rest,
        len(best),
        1.0 - missed / spread if spread > 0.0 else 1.0,
        float(np.std(np.log(latency / fitted))),
    )


def _parts(numbers: FloatArray, space: ConfigurationSpace) -> tuple[FloatArray, FloatArray]:
    """Return (size,) the slowest last unit and what follows it, in s."""
    levels = sum(len(o.levels) for o in space.modalities)
    units, rest, waits = np.exp(numbers[:levels]), np.exp(numbers[levels]), numbers[levels + 1 :]
    slowest: list[FloatArray] = []
    after = [np.full(len(space), rest)]
    for m, options in enumerate(space.modalities):
        level_places = space.columns[m].level
        rate_places = np.searchsorted(space.modalities[m].rates, space.columns[m].rate)
        rates = np.repeat(options.rates, len(options.levels))
        service = np.tile(units[: len(options.levels)], len(options.rates))
        none, growing = np.zeros(len(service)), np.maximum(np.round(rates * OVERLOAD), 1.0)
        [last] = last_unit_quantiles(service, none, none, 1.0 / rates, (0.0,), growing, _CAPACITY)
        slowest.append(last[rate_places * len(options.levels) + level_places])
        after.append(waits[: len(options.rates)][rate_places])
        units, waits = units[len(options.levels) :], waits[len(options.rates) :]
    return reduce(np.maximum, slowest), np.maximum(np.sum(after, axis=0), _LEAST_REST)


def _rates(values: Sequence[str]) -> tuple[float, ...]:
    """Return the rates (Hz) that an axis lists; nothing if it lists something else."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return ()
    if not all(math.isfinite(number) and number > 0.0 for number in numbers):
        return ()
    rates = tuple(_SAMPLES_HZ / n if n > _FASTEST_HZ else n for n in numbers)
    return rates if len(set(rates)) == len(rates) else ()

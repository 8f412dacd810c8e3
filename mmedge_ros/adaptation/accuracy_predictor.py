"""How accurate each configuration is expected to be.

The default depends on the configuration alone: a table from the model bundle's manifest, measured
on flights that nothing was trained on, or, where a bundle has none, an order by rate and level.

The manifest's entry::

    accuracy:
      measure: mean_iou
      configurations:
        - {camera: [30, medium], radar: [20, small], value: 0.61}
        - {camera: [10, small], radar: [5, small], value: 0.48}

Modalities without levels are listed with the rate alone: ``radar: [20]``. A third number is the
reuse: ``camera: [30, medium, 2]``. What was measured with reuse once for a rate and level of the
camera holds for every rate of the radar; what was not is worth less by a prior.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace
from mmedge_ros.core.data_types import CAMERA, ModalityConfiguration
from mmedge_ros.core.untrusted_files import is_number, shown

FloatArray = NDArray[np.float64]

_MOST_ENTRIES = 100_000
# Of the assumed order: the camera finds people, the radar adds to that; a better network
# brings more than more pictures do.
_CAMERA_WEIGHT, _OTHER_WEIGHT = 2.0, 1.0
_LEVEL_WEIGHT, _RATE_WEIGHT = 0.6, 0.4
# Streaming mean IoU that is lost where one is encoded in so many seconds and what is seen is
# followed between, at equal delay and with updates between decisions; fitted to 10 simulated
# flights in 36 configurations, at 10, 20 and 30 pictures a second and four shares of the
# processor, where decisions were in time.
_ENCODED_EVERY = (1.0 / 30.0, 2.0 / 30.0, 0.1, 0.2, 0.3, 0.6)
_LOST = (0.0, 0.010, 0.0195, 0.035, 0.043, 0.053)


class Indicators(NamedTuple):
    """Cheap figures of the present scene; NaN where unknown.

    ``consistency`` is the cosine (-1..1) of the newest camera and radar embeddings,
    ``complementarity`` 1 - consistency. ``brightness``, ``contrast`` and ``sharpness`` are
    those of the newest picture, see `Appearance`. ``returns`` counts those of the newest scan,
    ``moving`` the moving ones among them; ``snr`` (dB) is their mean. Of the newest decision's
    tracks with a box ``tracks`` is the number, ``track_height`` and ``smallest`` (px) the mean and
    least height, ``score`` (0..1) the mean score, and ``motion`` the mean speed in the picture, in
    heights of the track per second. Heights stand for distances, which tracks do not hold: their
    frame does not move with the camera.
    """

    consistency: float = math.nan
    brightness: float = math.nan
    contrast: float = math.nan
    sharpness: float = math.nan
    returns: float = math.nan
    moving: float = math.nan
    snr: float = math.nan
    tracks: float = math.nan
    track_height: float = math.nan
    smallest: float = math.nan
    score: float = math.nan
    motion: float = math.nan

    @property
    def complementarity(self) -> float:
        return 1.0 - self.consistency


class AccuracyPredictor(Protocol):
    """Predicts the accuracy of all configurations of one space.

    ``is_measured`` is False where the numbers only put the configurations in order.
    ``uses_indicators`` is False where collecting them would be in vain.
    """

    is_measured: bool
    uses_indicators: bool

    def predict(self, indicators: Indicators) -> FloatArray:
        """Return (size,) accuracies, 0..1; NaN where unknown."""


class AccuracyTable:
    """Accuracies that depend on the configuration alone.

    :param values: (size,) accuracy of each configuration, 0..1; NaN where unknown
    """

    uses_indicators = False

    def __init__(self, values: FloatArray, is_measured: bool) -> None:
        self._values = values
        self.is_measured = is_measured

    def predict(self, indicators: Indicators) -> FloatArray:  # noqa: ARG002
        return self._values


def assumed_accuracy(space: ConfigurationSpace) -> AccuracyTable:
    """Put configurations in order: each step of a rate (as its logarithm) or a level helps.

    In 0..1, linear in the place of a level among the levels and in the logarithm of the rate;
    weights are 0.6 and 0.4, and the camera counts twice.
    """
    total = np.zeros(len(space))
    weights = 0.0
    for m, options in enumerate(space.modalities):
        weight = _CAMERA_WEIGHT if options.modality == CAMERA else _OTHER_WEIGHT
        column = space.columns[m]
        rates = np.interp(column.rate, options.rates, _share(np.log(options.rates)))
        levels = _share(np.arange(len(options.levels), dtype=float))[column.level]
        total += weight * (_RATE_WEIGHT * rates + _LEVEL_WEIGHT * levels)
        weights += weight
    values = np.clip(total / weights - _loss_by_reuse(space), 0.0, 1.0)
    return AccuracyTable(values, is_measured=False)


def _loss_by_reuse(space: ConfigurationSpace) -> FloatArray:
    """Return (size,) how much accuracy reuse is expected to cost."""
    lost = np.zeros(len(space))
    for column in space.columns:
        lost += np.interp(column.reuse / column.rate, _ENCODED_EVERY, _LOST)
        lost -= np.interp(1.0 / column.rate, _ENCODED_EVERY, _LOST)
    return lost


def bundle_accuracy(content: Mapping[str, Any], space: ConfigurationSpace) -> AccuracyTable | None:
    """Read the accuracies of a bundle's manifest; None where it has none.

    A configuration of the space that is not listed is unknown, and the last to be chosen. One with
    reuse is worth what the same one without is, less what reuse costs.

    :raises ConfigurationError: for an entry that cannot be read; the message names it
    """
    if 'accuracy' not in content:
        return None
    entry = content['accuracy']
    listed = entry.get('configurations') if isinstance(entry, Mapping) else None
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_ENTRIES:
        raise ConfigurationError(
            f'accuracy.configurations of the manifest must be a list, not {shown(listed)}'
        )
    values = np.full(len(space), np.nan)
    for number, row in enumerate(listed):
        index, value = _row(f'accuracy.configurations[{number}]', row, space)
        if index is not None:
            values[index] = value
    values = _with_reuse(values, space)
    if np.isnan(values).all():
        raise ConfigurationError(
            'the manifest lists the accuracy of none of the configurations that can be chosen; '
            'choose rates and levels that it lists'
        )
    return AccuracyTable(values, is_measured=True)


def _row(where: str, row: Any, space: ConfigurationSpace) -> tuple[int | None, float]:
    """Return the configuration a row is about, None for one that cannot be chosen."""
    value: Any = row.get('value') if isinstance(row, Mapping) else None
    if not is_number(value, 0.0, 1.0):
        raise ConfigurationError(f'{where}: the value must be in 0..1, not {shown(value)}')
    parts = []
    for options in space.modalities:
        choice = row.get(options.modality)
        if not isinstance(choice, Sequence) or isinstance(choice, str) or not choice:
            raise ConfigurationError(
                f'{where}: {options.modality} must be [rate, level], not {shown(choice)}'
            )
        rate, level = choice[0], choice[1] if len(choice) > 1 else ''
        reuse = choice[2] if len(choice) > 2 else 1
        if isinstance(rate, bool) or not isinstance(rate, int | float):
            raise ConfigurationError(f'{where}: {shown(rate)} is no rate in Hz')
        if isinstance(reuse, bool) or not isinstance(reuse, int):
            raise ConfigurationError(f'{where}: {shown(reuse)} is no reuse, a whole number')
        parts.append(ModalityConfiguration(options.modality, rate, str(level), reuse=reuse))
    return space.index_of(parts), float(value)


def _with_reuse(values: FloatArray, space: ConfigurationSpace) -> FloatArray:
    """Return the values with those that are not known of configurations with reuse.

    What reuse costs is taken from where it was measured with the same rates and levels of the
    modalities that reuse, else from the prior.
    """
    reuse = np.stack([column.reuse for column in space.columns])
    if (reuse == 1).all():
        return values
    without = np.array(
        [space.index_of([replace(p, reuse=1) for p in space.parts(i)]) for i in range(len(space))],
        object,
    )
    known = np.array([np.nan if i is None else values[i] for i in without])
    lost = known - values
    prior = _loss_by_reuse(space)
    measured: dict[tuple[ModalityConfiguration, ...], float] = {}
    for index in np.flatnonzero((reuse > 1).any(axis=0)):
        if np.isfinite(lost[index]):
            measured[_reusing(space, int(index))] = float(lost[index])
    filled = values.copy()
    for index in np.flatnonzero(np.isnan(values) & np.isfinite(known)):
        cost = measured.get(_reusing(space, int(index)), float(prior[index]))
        filled[index] = np.clip(known[index] - cost, 0.0, 1.0)
    return filled


def _reusing(space: ConfigurationSpace, index: int) -> tuple[ModalityConfiguration, ...]:
    return tuple(part for part in space.parts(index) if part.reuse > 1)


def _share(values: FloatArray) -> FloatArray:
    """Scale ascending values to 0..1; a single one is all there is."""
    span = values[-1] - values[0]
    return (values - values[0]) / span if span > 0.0 else np.ones(len(values))

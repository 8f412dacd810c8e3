"""Which rates and levels each modality offers, and the grid of their combinations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration.caps import Caps
from mmedge_ros.configuration.configuration_grid import Axis, ConfigurationGrid
from mmedge_ros.configuration.errors import ConfigurationError
from mmedge_ros.data_types import ModalityConfiguration
from mmedge_ros.parameter import unknown_name_message
from mmedge_ros.plain_yaml import shown

BoolArray = NDArray[np.bool_]

_HIGHEST_RATE = 10_000.0


@dataclass(frozen=True)
class ModalityOptions:
    """What can be chosen for one modality.

    ``rates`` in Hz, ascending; ``levels`` from the cheapest to the most expensive.
    """

    modality: str
    rates: tuple[float, ...]
    levels: tuple[str, ...]
    device: str = 'cpu'

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


class ConfigurationSpace:
    """The configurations of any number of modalities: every rate with every level of each.

    Configurations are numbered so that within each modality rates come before levels, and
    number 0 is the cheapest: all lowest rates and levels.

    :raises ConfigurationError: for a modality without rates or levels, or too many of them
    """

    def __init__(self, modalities: Sequence[ModalityOptions]) -> None:
        self.modalities = tuple(modalities)
        axes: list[Axis] = []
        for options in self.modalities:
            rates = tuple(f'{rate:g}' for rate in options.rates)
            axes.append(Axis(f'{options.modality} rate', rates))
            axes.append(Axis(f'{options.modality} level', options.levels))
        self.grid = ConfigurationGrid(axes)

    def __len__(self) -> int:
        return self.grid.size

    def parts(self, index: int) -> tuple[ModalityConfiguration, ...]:
        """Return configuration ``index`` modality by modality."""
        places = self.grid.places[index]
        return tuple(
            ModalityConfiguration(
                options.modality,
                options.rates[places[2 * m]],
                options.levels[places[2 * m + 1]],
                options.device,
            )
            for m, options in enumerate(self.modalities)
        )

    def index_of(self, parts: Sequence[ModalityConfiguration]) -> int | None:
        """Return the number of a configuration, or None if it is not of this space."""
        given = {part.modality: part for part in parts}
        places: list[int] = []
        for options in self.modalities:
            part = given.get(options.modality)
            if part is None or part.rate not in options.rates or part.level not in options.levels:
                return None
            places += [options.rates.index(part.rate), options.levels.index(part.level)]
        return self.grid.index(places)

    def allowed(self, caps: Caps) -> BoolArray:
        """Return (size,) which configurations respect the caps.

        The lowest rate and the cheapest level stay allowed, whatever the caps say: a drone
        that must save everything still needs an answer. Caps on what the space does not have
        and rates that are not numbers do not count; `check` finds them beforehand.
        """
        allowed = np.ones(self.grid.size, bool)
        places = self.grid.places
        for m, options in enumerate(self.modalities):
            rate = caps.rates.get(options.modality, math.inf)
            if not math.isnan(rate):
                highest = sum(r <= rate for r in options.rates) - 1
                allowed &= places[:, 2 * m] <= max(highest, 0)
            level = caps.levels.get(options.modality)
            if level in options.levels:
                allowed &= places[:, 2 * m + 1] <= options.levels.index(level)
        return allowed

    def check(self, caps: Caps) -> None:
        """Refuse caps that name what the space does not have.

        :raises ConfigurationError: naming the nearest modality or level
        """
        levels = {options.modality: options.levels for options in self.modalities}
        for modality in (*caps.rates, *caps.levels):
            if modality not in levels:
                raise ConfigurationError(f'caps: {unknown_name_message(modality, levels)}')
        for modality, level in caps.levels.items():
            if level not in levels[modality]:
                raise ConfigurationError(
                    f'caps: {modality} has no level {shown(level)}; choose one of '
                    f'{", ".join(levels[modality])}'
                )


def space_from_mapping(values: Mapping[Any, Any]) -> ConfigurationSpace:
    """Read a space from ``{modality: {'rates': [...], 'levels': [...], 'device': ...}}``.

    :raises ConfigurationError: for anything else
    """
    if not isinstance(values, Mapping):
        raise ConfigurationError(f'expected modalities with rates and levels, not {shown(values)}')
    return ConfigurationSpace([_options(name, content) for name, content in values.items()])


def _options(modality: Any, content: Any) -> ModalityOptions:
    if not isinstance(modality, str) or not isinstance(content, Mapping):
        raise ConfigurationError(
            f'{shown(modality)}: expected rates and levels, not {shown(content)}'
        )
    unknown = [key for key in content if key not in ('rates', 'levels', 'device')]
    if unknown:
        known = ('rates', 'levels', 'device')
        raise ConfigurationError(f'{modality}: {unknown_name_message(str(unknown[0]), known)}')
    rates, levels = content.get('rates'), content.get('levels')
    if not isinstance(rates, list | tuple) or not all(
        isinstance(rate, int | float) and not isinstance(rate, bool) for rate in rates
    ):
        raise ConfigurationError(f'{modality}: rates must be numbers in Hz, not {shown(rates)}')
    if not isinstance(levels, list | tuple) or not all(isinstance(name, str) for name in levels):
        raise ConfigurationError(f'{modality}: levels must be names, not {shown(levels)}')
    device = content.get('device', 'cpu')
    if not isinstance(device, str):
        raise ConfigurationError(f'{modality}: device must be a name, not {shown(device)}')
    return ModalityOptions(
        modality, tuple(_rate(modality, rate) for rate in rates), tuple(levels), device
    )


def _rate(modality: str, rate: float) -> float:
    try:
        return float(rate)
    except OverflowError as err:
        raise ConfigurationError(f'{modality}: a rate of {shown(rate)} Hz') from err

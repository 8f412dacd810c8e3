"""Choosing a configuration with as much certainty as the predicted latencies allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.configuration.configuration_space import ConfigurationGrid
from mmedge_ros.configuration.optimizer import (
    Choice,
    Optimizer,
    OptimizerParameters,
)
from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.parameter import group, parameter

BoolArray = NDArray[np.bool_]

# A certainty below this is none: then the smallest violation is looked for instead.
_LEAST_CERTAINTY = 0.05
# What keeps the limit with just the certainty there is must not fail by rounding.
_ROUNDING = 1e-9
_PROBING = ('late_price', 'payback', 'smallest_gain', 'period', 'most', 'boldness', 'pause')


@dataclass(frozen=True)
class ChoiceParameters:
    """How certain a choice has to be."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(('dared', 'dared_for'), 'certainty alone decides'),
        **dict.fromkeys(
            [f'probing.{name}' for name in _PROBING],
            'configurations that may be too slow are not tried',
        ),
    }

    certainty: float = parameter(
        0.95,
        'Probability with which a configuration must keep the latency limit: scatter and '
        'uncertainty together. Higher means fewer late decisions at less accuracy',
        minimum=0.5,
        maximum=0.999,
    )
    optimizer: OptimizerParameters = group(OptimizerParameters)


@dataclass(frozen=True, slots=True)
class ChosenConfiguration:
    """What is to run next.

    ``certainty`` is the probability with which ``latency`` (s) is kept. ``feasible`` is False
    where nothing keeps the limit with the wanted certainty.
    """

    index: int
    feasible: bool
    latency: float
    certainty: float
    choice: Choice


class ConfigurationChoice:
    """The optimiser, run again and again on predictions and their certainty."""

    def __init__(
        self, grid: ConfigurationGrid, parameters: ChoiceParameters | None = None
    ) -> None:
        self._parameters = parameters or ChoiceParameters()
        self._optimizer = Optimizer(grid, self._parameters.optimizer)
        self._size = grid.size
        self._current: int | None = None

    def decide(
        self,
        predicted: PredictedLatency,
        accuracy: ArrayLike,
        limit: float,
        allowed: BoolArray | None = None,
    ) -> ChosenConfiguration:
        """Choose what to run; ties go to the least load.

        :param accuracy: (size,) predicted, 0..1
        :param limit: latency limit, s
        :param allowed: (size,) what the caps allow
        """
        candidates = np.ones(self._size, bool) if allowed is None else allowed
        certainty = self._certainty(predicted.best_chance(limit, candidates))
        latency = predicted.quantiles(certainty)
        is_certain = certainty >= self._parameters.certainty
        # Without certainty nothing is feasible where loads are known: the least lets it recover.
        choice = self._optimizer.choose(
            accuracy,
            latency,
            limit if is_certain or predicted.load is None else -math.inf,
            candidates,
            predicted.load,
            self._current,
        )
        if not is_certain and predicted.load is not None:
            choice = replace(choice, violation=0.0)
        self._current = choice.index
        return ChosenConfiguration(
            choice.index,
            choice.feasible and is_certain,
            float(latency[choice.index]),
            certainty,
            choice,
        )

    def _certainty(self, best: float) -> float:
        """Return the wanted certainty, or the most there is."""
        wanted = self._parameters.certainty
        if best >= wanted or best < _LEAST_CERTAINTY:
            return wanted
        return (1.0 - _ROUNDING) * best

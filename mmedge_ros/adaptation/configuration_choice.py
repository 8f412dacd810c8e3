"""Choosing a configuration with as much certainty as the predicted latencies allow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.adaptation.configuration_space import ConfigurationGrid
from mmedge_ros.adaptation.optimizer import (
    Choice,
    Optimizer,
    OptimizerParameters,
    known_numbers,
)
from mmedge_ros.adaptation.predicted_latency import PredictedLatency
from mmedge_ros.core.parameter import group, parameter

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

# A certainty below this is none: then the smallest violation is looked for instead.
_LEAST_CERTAINTY = 0.05
# Where nothing keeps the limit, what takes so many times as long is left for the least violation.
_MUCH_LATER = 1.2
# What keeps the limit with just the certainty there is must not fail by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ChoiceParameters:
    """How certain a choice has to be."""

    certainty: float = parameter(
        0.95,
        'Probability with which a configuration must keep the latency limit: scatter and '
        'uncertainty together. Higher means fewer late decisions at less accuracy',
        minimum=0.5,
        maximum=0.999,
    )
    # Accuracy that a second of delay is worth: people move on while they are detected. Measured as
    # streaming IoU that is lost by later decisions; 0 looks at the limit alone (1/s).
    latency_price: float = 1.3
    optimizer: OptimizerParameters = group(OptimizerParameters)


@dataclass(frozen=True, slots=True)
class ChosenConfiguration:
    """What is to run next.

    ``certainty`` is the probability with which ``latency`` (s) is kept. ``feasible`` is False
    where nothing keeps the limit with the wanted certainty. ``forced``: what ran before may not
    go on, or is much later than this.
    """

    index: int
    feasible: bool
    latency: float
    certainty: float
    choice: Choice
    forced: bool = True


class ConfigurationChoice:
    """The optimiser, run again and again on predictions and their certainty."""

    def __init__(
        self, grid: ConfigurationGrid, parameters: ChoiceParameters | None = None
    ) -> None:
        self._parameters = parameters or ChoiceParameters()
        self._optimizer = Optimizer(grid, self._parameters.optimizer)
        self._size = grid.size
        self.current: int | None = None

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
        chosen = self.best(predicted, accuracy, limit, allowed)
        self.use(chosen.index)
        return chosen

    def use(self, index: int) -> None:
        """Note what runs from now on."""
        self.current = index

    def best(
        self,
        predicted: PredictedLatency,
        accuracy: ArrayLike,
        limit: float,
        allowed: BoolArray | None = None,
    ) -> ChosenConfiguration:
        """Return what `decide` would choose, and change nothing."""
        candidates = np.ones(self._size, bool) if allowed is None else allowed
        certainty = self._certainty(predicted.best_chance(limit, candidates))
        latency = predicted.quantiles(certainty)
        is_certain = certainty >= self._parameters.certainty
        # Without certainty nothing is feasible where loads are known: the least lets it recover.
        choice = self._optimizer.choose(
            self._worth(predicted, accuracy),
            latency,
            limit if is_certain or predicted.load is None else -math.inf,
            candidates,
            predicted.load,
            self.current,
        )
        if not is_certain and predicted.load is not None:
            choice = replace(choice, violation=0.0)
        feasible = choice.feasible and is_certain
        latest = limit if feasible else _MUCH_LATER * latency[choice.index]
        before = self.current
        stays = before is not None and candidates[before] and latency[before] <= latest
        return ChosenConfiguration(
            choice.index, feasible, float(latency[choice.index]), certainty, choice, not stays
        )

    def _worth(self, predicted: PredictedLatency, accuracy: ArrayLike) -> ArrayLike:
        """Return the accuracies less what the delay of each costs."""
        price = self._parameters.latency_price
        if predicted.delay is None or price == 0.0:
            return accuracy
        known = known_numbers(accuracy, self._size, math.nan)
        delayed: FloatArray = known - price * predicted.delay
        return delayed

    def _certainty(self, best: float) -> float:
        """Return the wanted certainty, or the most there is."""
        wanted = self._parameters.certainty
        if best >= wanted or best < _LEAST_CERTAINTY:
            return wanted
        return (1.0 - _ROUNDING) * best

"""Choosing a configuration again and again, while what is known of latencies changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.configuration.configuration_grid import ConfigurationGrid
from mmedge_ros.configuration.optimizer import (
    Choice,
    Optimizer,
    OptimizerParameters,
    known_numbers,
)
from mmedge_ros.configuration.predicted_latency import PredictedLatency
from mmedge_ros.configuration.probing import Probing, ProbingParameters
from mmedge_ros.configuration.steady_time import SteadyTime
from mmedge_ros.parameter import group, parameter

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

# A certainty below this is none: then the smallest violation is looked for instead.
_LEAST_CERTAINTY = 0.05
# What keeps the limit with just the certainty there is must not fail by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ControlParameters:
    """How certain a choice has to be, and how it is tried whether more is possible."""

    certainty: float = parameter(
        0.95,
        'Probability with which a configuration must keep the latency limit: scatter and '
        'ignorance together. Higher means fewer late decisions at less accuracy',
        minimum=0.5,
        maximum=0.999,
    )
    dared: float = parameter(
        0.95,
        'Probability that is enough where asking for `certainty` would cost `dared_for`',
        minimum=0.5,
        maximum=0.999,
    )
    dared_for: float = parameter(
        0.015, 'Accuracy for which less certainty is enough', minimum=0.0, maximum=1.0
    )
    optimizer: OptimizerParameters = group(OptimizerParameters)
    probing: ProbingParameters = group(ProbingParameters)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to run next.

    ``certainty`` is the probability with which ``latency`` (s) is kept. ``feasible`` is False
    where nothing keeps the limit with the certainty asked for, nor with the one that may be
    dared; ``probe`` is set for a try.
    """

    index: int
    feasible: bool
    probe: bool
    latency: float
    certainty: float
    choice: Choice


class ConfigurationControl:
    """Asks the optimiser, with as much certainty as there is, and tries better ones at times."""

    def __init__(
        self, grid: ConfigurationGrid, parameters: ControlParameters | None = None
    ) -> None:
        self._parameters = parameters or ControlParameters()
        self._optimizer = Optimizer(grid, self._parameters.optimizer)
        self._probing = Probing(self._parameters.probing)
        self._size = grid.size
        self._probe: int | None = None
        self._current: int | None = None
        self._since = -math.inf
        self._time = SteadyTime()

    def decide(
        self,
        predicted: PredictedLatency,
        accuracy: ArrayLike,
        limit: float,
        now: float,
        allowed: BoolArray | None = None,
        may_probe: bool = True,
    ) -> Chosen:
        """Choose what to run; ties go to what asks least of the machine.

        :param accuracy: (size,) predicted, 0..1
        :param limit: latency limit, s
        :param now: monotonic, s
        :param allowed: (size,) what the caps allow
        :param may_probe: whether something that may come late can be tried now
        """
        self._time.advance(now)
        candidates = np.ones(self._size, bool) if allowed is None else allowed
        score = known_numbers(accuracy, self._size, -math.inf)
        chances = predicted.chances(limit)
        certainty = self._certainty(predicted.best_chance(limit, candidates))
        certainty = self._dared(certainty, score, chances, candidates)
        latency = predicted.quantiles(certainty, limit)
        is_certain = certainty >= min(self._parameters.certainty, self._parameters.dared)
        # Without certainty nothing counts as feasible where it is known what recovers.
        choice = self._optimizer.choose(
            accuracy,
            latency,
            limit if is_certain or predicted.load is None else -math.inf,
            candidates,
            predicted.load,
            self._current,
            self._time.now - self._since,
        )
        if not is_certain and predicted.load is not None:
            choice = replace(choice, violation=0.0)
        self._probe = None
        self._probing.advance(now)
        if may_probe:
            promises = predicted.promises(limit, certainty)
            self._probe = self._probing.propose(score, chances, choice.index, candidates, promises)
        if choice.index != self._current:
            self._current, self._since = choice.index, self._time.now
        index = choice.index if self._probe is None else self._probe
        return Chosen(
            index,
            choice.feasible and is_certain,
            self._probe is not None,
            float(latency[index]),
            certainty,
            choice,
        )

    def learned(self, late: bool, step: float | None) -> None:
        """Enter whether what was chosen last came late, and a step if that completed one."""
        if self._probe is not None and late:
            self._probing.failed()
        if step is not None and step > 0.0:
            self._probing.restart()

    def _certainty(self, best: float) -> float:
        """Return what is asked for, or the most there is."""
        wanted = self._parameters.certainty
        if best >= wanted or best < _LEAST_CERTAINTY:
            return wanted
        return (1.0 - _ROUNDING) * best

    def _dared(
        self, certainty: float, score: FloatArray, chances: FloatArray, candidates: BoolArray
    ) -> float:
        """Return less certainty than that if more of it costs too much accuracy.

        :param score: (size,) accuracies; -inf where unknown
        :param chances: (size,) probabilities to keep the limit
        """
        rules = self._parameters
        if certainty > rules.dared:
            certain, dared = (
                score[candidates & (chances >= asked)].max(initial=-math.inf)
                for asked in (certainty, rules.dared)
            )
            if dared > -math.inf and dared - certain >= rules.dared_for:
                return rules.dared
        return certainty

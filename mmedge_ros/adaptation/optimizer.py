"""Exact search for the best configuration under a latency limit.

Maximise the predicted accuracy A(c) over configurations c whose latency quantile L(c) is at
most the limit (MMEdge, eq. 4-6), with as much certainty as the predicted latencies allow. The
paper searches greedily; a few thousand configurations are searched completely in less time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmedge_ros.adaptation.configuration_space import ConfigurationGrid
from mmedge_ros.adaptation.predicted_latency import PredictedLatency
from mmedge_ros.core.parameter import parameter

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# A certainty below this is none: then the smallest violation is looked for instead.
_LEAST_CERTAINTY = 0.05
# Where nothing keeps the limit, what takes so many times as long is left for the least violation.
_MUCH_LATER = 1.2
# What keeps the limit with just the certainty there is must not fail by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class OptimizerParameters:
    """How certain a choice has to be, and when a better one is worth a change.

    Accuracies are 0..1. The defaults were measured: a headroom of 5 % costs nothing on latency
    tables, and a machine whose unit times wander changes a third less often.
    """

    certainty: float = parameter(
        0.95,
        'probability with which a configuration must keep the latency limit: the higher, the '
        'fewer late decisions, at less accuracy',
        minimum=0.5,
        maximum=0.999,
    )
    # Accuracy that a second of delay is worth: people move on while they are detected. Measured as
    # streaming IoU that is lost by later decisions; 0 looks at the limit alone (1/s).
    latency_price: float = 1.3
    # Accuracy by which another configuration must be better before it replaces one that still
    # keeps the limit. Less than flights can tell apart.
    hysteresis: float = 0.004
    # Share of the limit that another configuration must leave free before it replaces the present
    # one, where any does; covers the noise of the predicted latency.
    headroom: float = 0.05
    # Where nothing keeps the limit, latencies that differ by at most this share count as equal: of
    # them the one with the least load is taken.
    alike: float = 0.05


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer of a search.

    ``feasible`` is False where nothing keeps the limit and the choice is the one that breaks
    it least; ``violation`` says by how much, in seconds (infinite where no latency is known).
    ``caps_ignored`` is set where the caps allow nothing. ``certainty`` is the probability with
    which ``latency`` (s) is kept. ``forced``: what ran before may not go on, or is much later.
    """

    index: int
    feasible: bool
    violation: float = 0.0
    caps_ignored: bool = False
    latency: float = math.nan
    certainty: float = 1.0
    forced: bool = True


class Optimizer:
    """Searches all configurations of a grid.

    Numbers that are not numbers never stop it: an unknown accuracy counts as worse than any
    known one, an unknown latency as over any limit, an array of the wrong size as unknown
    throughout. The first configuration of a grid is its cheapest and the last resort.
    """

    def __init__(
        self, grid: ConfigurationGrid, parameters: OptimizerParameters | None = None
    ) -> None:
        self.parameters = parameters or OptimizerParameters()
        self._grid = grid
        self._all = np.ones(grid.size, bool)

    def best(
        self,
        predicted: PredictedLatency,
        accuracy: ArrayLike,
        limit: float,
        allowed: BoolArray | None = None,
        current: int | None = None,
    ) -> Choice:
        """Return the best configuration for latencies that are known with some certainty only.

        Ties go to the least load.

        :param accuracy: (size,) predicted, 0..1
        :param limit: latency limit, s
        :param allowed: (size,) what the caps allow
        :param current: configuration in use
        """
        candidates = self._all if allowed is None else allowed
        certainty = self._certainty(predicted.best_chance(limit, candidates))
        latency = predicted.quantiles(certainty)
        is_certain = certainty >= self.parameters.certainty
        # Without certainty nothing is feasible where loads are known: the least lets it recover.
        choice = self.choose(
            self._worth(predicted, accuracy),
            latency,
            limit if is_certain or predicted.load is None else -math.inf,
            candidates,
            predicted.load,
            current,
        )
        taken = float(latency[choice.index])
        feasible = choice.feasible and is_certain
        latest = limit if feasible else _MUCH_LATER * taken
        stays = current is not None and candidates[current] and latency[current] <= latest
        without = not is_certain and predicted.load is not None
        return replace(
            choice,
            feasible=feasible,
            violation=0.0 if without else choice.violation,
            latency=taken,
            certainty=certainty,
            forced=not stays,
        )

    def _worth(self, predicted: PredictedLatency, accuracy: ArrayLike) -> ArrayLike:
        """Return the accuracies less what the delay of each costs."""
        price = self.parameters.latency_price
        if predicted.delay is None or price == 0.0:
            return accuracy
        known = known_numbers(accuracy, self._grid.size, math.nan)
        delayed: FloatArray = known - price * predicted.delay
        return delayed

    def _certainty(self, best: float) -> float:
        """Return the wanted certainty, or the most there is."""
        wanted = self.parameters.certainty
        if best >= wanted or best < _LEAST_CERTAINTY:
            return wanted
        return (1.0 - _ROUNDING) * best

    def choose(
        self,
        accuracy: ArrayLike,
        latency: ArrayLike,
        limit: float,
        allowed: ArrayLike | None = None,
        energy: ArrayLike | None = None,
        current: int | None = None,
    ) -> Choice:
        """Return the best configuration.

        :param accuracy: (size,) predicted, 0..1
        :param latency: (size,) quantile, s
        :param limit: s; none where it is not a number
        :param allowed: (size,) what the caps allow
        :param energy: (size,) in any unit, breaks ties of accuracy and latency; where nothing
            keeps the limit it decides between all whose latency is about the smallest
        :param current: configuration in use
        """
        score = known_numbers(accuracy, self._grid.size, -math.inf)
        seconds = known_numbers(latency, self._grid.size, math.inf)
        cost = None if energy is None else known_numbers(energy, self._grid.size, math.inf)
        candidates = self._candidates(allowed)
        ignored = not candidates.any()
        if ignored:
            candidates = self._all
        if current is not None and not (0 <= current < self._grid.size and candidates[current]):
            current = None
        feasible = candidates & (seconds <= (math.inf if math.isnan(limit) else limit))
        feasible &= seconds < math.inf
        if not feasible.any():
            return self._least_violation(candidates, score, seconds, cost, limit, current, ignored)
        if current is not None:
            feasible = self._with_headroom(feasible, seconds, limit, current)
        index = _first_best(feasible, -score, seconds, cost)
        if (
            current is not None
            and feasible[current]
            and not self._is_worth_it(score[index], score[current])
        ):
            index = current
        return Choice(index, feasible=True, caps_ignored=ignored)

    def _least_violation(
        self,
        candidates: BoolArray,
        score: FloatArray,
        seconds: FloatArray,
        cost: FloatArray | None,
        limit: float,
        current: int | None,
        ignored: bool,
    ) -> Choice:
        if not (candidates & (seconds < math.inf)).any():
            index = int(candidates.argmax()) if current is None else current
            return Choice(index, feasible=False, violation=math.inf, caps_ignored=ignored)
        if cost is None:
            index = _first_best(candidates, seconds, -score, None)
        else:
            # An overloaded machine makes all it cannot follow equally late. More load would
            # keep it so, less lets it recover.
            least = float(seconds[candidates].min())
            # An early decision has a negative latency.
            alike = candidates & (seconds <= least + self.parameters.alike * abs(least))
            alike &= seconds < math.inf
            index = _first_best(alike, cost, seconds, -score)
        violation = float(seconds[index]) - limit
        return Choice(index, feasible=False, violation=violation, caps_ignored=ignored)

    def _with_headroom(
        self, feasible: BoolArray, seconds: FloatArray, limit: float, current: int
    ) -> BoolArray:
        """Leave out what barely keeps the limit, but for the present one, if anything is left."""
        if self.parameters.headroom == 0.0 or not math.isfinite(limit):
            return feasible
        roomy = feasible & (seconds <= (1.0 - self.parameters.headroom) * limit)
        roomy[current] = feasible[current]
        return roomy if roomy.any() else feasible

    def _is_worth_it(self, best: float, present: float) -> bool:
        # Of two that are both unknown or both certain to fail, none is better.
        gain = best - present if best != present else 0.0
        needed = self.parameters.hysteresis
        return needed <= 0.0 or gain > needed

    def _candidates(self, allowed: ArrayLike | None) -> BoolArray:
        if allowed is None:
            return self._all
        mask = np.asarray(allowed)
        if mask.dtype != bool or mask.shape != (self._grid.size,):
            return np.zeros(self._grid.size, bool)
        return mask


def known_numbers(values: ArrayLike | None, size: int, unknown: float) -> FloatArray:
    """Return (size,) finite float64, ``unknown`` for whatever is not.

    An array of another size is unknown throughout.
    """
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.shape != (size,):
        return np.full(size, unknown)
    known = np.isfinite(numbers)
    return numbers if known.all() else np.where(known, numbers, unknown)


def _first_best(
    mask: BoolArray, first: FloatArray, second: FloatArray, third: FloatArray | None
) -> int:
    """Return the index with the smallest first, then second, then third number in the mask."""
    places = np.flatnonzero(mask)
    for values in (first, second, third):
        if values is None or len(places) == 1:
            continue
        taken = values[places]
        places = places[taken == taken.min()]
    return int(places[0])

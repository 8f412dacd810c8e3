"""When to try a configuration that is better but perhaps too slow.

After the processor was busy, only trying shows whether it still is. A try that fails costs a
late decision, so it is made when what it may bring outweighs that, and within a budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.configuration.steady_time import SteadyTime
from mmedge_ros.parameter import parameter

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class ProbingParameters:
    """What a try may cost. Accuracies in 0..1."""

    late_price: float = parameter(
        0.55,
        'Accuracy that one late decision is worth; higher makes the drone shyer',
        minimum=0.0,
        maximum=100.0,
    )
    payback: float = parameter(
        30.0,
        'Decisions for which a try that succeeds is expected to pay',
        minimum=0.0,
        maximum=10_000.0,
    )
    smallest_gain: float = parameter(
        0.004, 'Accuracy below which nothing is tried', minimum=0.0, maximum=1.0
    )
    period: float = parameter(
        1.6, 'One late try is allowed per this time on average', unit='s', minimum=0.01
    )
    most: float = parameter(
        2.0, 'Tries that can be saved up for later', minimum=0.0, maximum=1000.0
    )
    boldness: float = parameter(
        0.55,
        'A try may be expected to cost this many times what has been saved up',
        minimum=0.0,
        maximum=100.0,
    )
    pause: float = parameter(
        0.3, 'Time after a failed try before the next', unit='s', minimum=0.0, maximum=3600.0
    )


class Probing:
    """A budget of late tries and the choice of what to try."""

    def __init__(self, parameters: ProbingParameters | None = None) -> None:
        self._parameters = parameters or ProbingParameters()
        self._saved = 0.0
        self._time = SteadyTime()
        self._failed = -math.inf

    def advance(self, now: float) -> None:
        """Save up for tries until ``now`` (s)."""
        elapsed = self._time.advance(now)
        self._saved = min(self._saved + elapsed / self._parameters.period, self._parameters.most)

    def propose(
        self,
        accuracy: FloatArray,
        chances: FloatArray,
        chosen: int,
        candidates: BoolArray,
        promises: FloatArray | None = None,
    ) -> int | None:
        """Return what to try instead of ``chosen``, or None.

        :param accuracy: (size,) predicted, 0..1; -inf where unknown
        :param chances: (size,) probabilities to keep the limit
        :param candidates: (size,) what may be tried
        :param promises: (size,) probabilities to prove good enough to be chosen from then on;
            those to keep the limit if that is none
        """
        rules = self._parameters
        if self._time.now - self._failed < rules.pause:
            return None
        risk = 1.0 - chances
        promises = chances if promises is None else promises
        # Of accuracies that are not known, infinite ones, no gain and no worth follow.
        with np.errstate(invalid='ignore'):
            gain = accuracy - accuracy[chosen]
            worth = promises * gain * rules.payback - risk * rules.late_price
        possible = candidates & (gain > rules.smallest_gain) & (worth > 0.0)
        possible &= (risk <= rules.boldness * self._saved) & np.isfinite(gain)
        if not possible.any():
            return None
        return int(np.where(possible, worth, -math.inf).argmax())

    def failed(self) -> None:
        """Enter that what was tried came late."""
        self._saved -= 1.0
        self._failed = self._time.now

    def restart(self) -> None:
        """Spend all savings: after a step to the worse, first find safe ground."""
        self._saved = min(self._saved, 0.0)

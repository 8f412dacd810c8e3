"""A small optimiser for networks of a few arrays, without torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_ros.data_types import FloatArray

_BETAS = (0.9, 0.999)


class Adam:
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    :param weights: arrays as `step` will get them
    :param decays: for each of them, whether it is pulled to zero
    """

    def __init__(
        self,
        weights: Sequence[FloatArray],
        learning_rate: float,
        weight_decay: float,
        decays: Sequence[bool],
    ) -> None:
        self._rate, self._decay, self._decays = learning_rate, weight_decay, tuple(decays)
        self._moments = [(np.zeros_like(w), np.zeros_like(w)) for w in weights]
        self._steps = 0

    def step(
        self, weights: Sequence[FloatArray], gradients: Sequence[FloatArray]
    ) -> list[FloatArray]:
        """Return the next weights."""
        self._steps += 1
        found = []
        for weight, gradient, (first, second), decays in zip(
            weights, gradients, self._moments, self._decays, strict=True
        ):
            first += (1.0 - _BETAS[0]) * (gradient - first)
            second += (1.0 - _BETAS[1]) * (gradient**2 - second)
            mean = first / (1.0 - _BETAS[0] ** self._steps)
            power = second / (1.0 - _BETAS[1] ** self._steps)
            decay = self._decay * weight if decays else 0.0
            found.append(weight - self._rate * (mean / (np.sqrt(power) + 1e-8) + decay))
        return found

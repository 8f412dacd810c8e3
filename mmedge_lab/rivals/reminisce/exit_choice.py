"""At which exit an item leaves the encoder: by a predictor, by sure heads, or dealt at random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from mmedge_lab.rivals.reminisce.crop_encoder import Exits, sureness
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.memory.moment import Vectors

# Of the items that a margin is fitted on, so many are to leave late enough.
_LATE_ENOUGH = 0.9
_WEIGHT_DECAY = 1e-3
_LEAST_SPREAD, _TINY = 1e-6, 1e-12


@dataclass(frozen=True)
class ExitPredictor:
    """Logistic regression from the first tap to the exit that suffices.

    An item leaves at the first exit that suffices with a probability of ``margin``.
    """

    origin: FloatArray
    spread: FloatArray
    weights: FloatArray
    margin: float = 0.5

    def shares(self, taps: Vectors) -> FloatArray:
        """Return the probabilities (N, K) of each exit being the one, of taps (N, D)."""
        inputs = _with_one((taps - self.origin) / self.spread)
        return np.asarray(softmax(inputs @ self.weights, axis=1))

    def exits(self, taps: Vectors) -> Exits:
        """Return where items leave (N,), from 1."""
        enough = np.cumsum(self.shares(taps), axis=1) >= self.margin
        enough[:, -1] = True
        return np.asarray(enough.argmax(axis=1) + 1, np.int64)


def fit_predictor(
    taps: Vectors, wanted: Exits, held_taps: Vectors, held_wanted: Exits, exits: int
) -> ExitPredictor:
    """Fit the regression on some items, and its margin on others."""
    origin = taps.mean(axis=0, dtype=float)
    spread = np.maximum(taps.std(axis=0, dtype=float), _LEAST_SPREAD)
    inputs, truth = _with_one((taps - origin) / spread), np.eye(exits)[wanted - 1]
    shape = (inputs.shape[1], exits)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(shape)
        shares = softmax(inputs @ weights, axis=1)
        wrong = -np.log(np.maximum((shares * truth).sum(axis=1), _TINY)).mean()
        slope = inputs.T @ (shares - truth) / len(inputs) + _WEIGHT_DECAY * weights
        return float(wrong + 0.5 * _WEIGHT_DECAY * (weights**2).sum()), slope.reshape(-1)

    fitted = minimize(loss, np.zeros(shape).reshape(-1), jac=True, method='L-BFGS-B')
    found = ExitPredictor(origin, spread, fitted.x.reshape(shape))
    # The probability that the exit which is wanted would be reached by.
    reached = np.cumsum(found.shares(held_taps), axis=1)
    before = np.concatenate([np.zeros((len(reached), 1)), reached], axis=1)
    short = before[np.arange(len(reached)), held_wanted - 1]
    return replace(found, margin=float(np.quantile(short, _LATE_ENOUGH)) + 1e-9)


def sure_exits(logits: Sequence[Vectors], classes: int, least: Sequence[float]) -> Exits:
    """Return where items leave (N,) if they do as soon as a head has the odds of its exit.

    :param logits: (N, J + A) at every exit
    :param least: odds for each exit but the last
    """
    sure = [
        sureness(of, classes) >= odds for of, odds in zip(logits[: len(least)], least, strict=True)
    ]
    exits = np.array([*range(1, len(least) + 1), len(logits)], np.int64)
    return np.asarray(exits[np.stack([*sure, np.ones(len(logits[0]), bool)]).argmax(axis=0)])


def dealt(exits: Exits, seed: int) -> Exits:
    """Return the same exits (N,), dealt to other items."""
    return np.random.default_rng(seed).permutation(exits)


def nearest_fixed(exits: Exits, costs: FloatArray) -> int:
    """Return the exit whose cost is nearest to the mean cost of exits (N,).

    :param costs: (K,) of leaving at each
    """
    return int(np.abs(costs - costs[exits - 1].mean()).argmin()) + 1


def _with_one(values: NDArray[np.floating]) -> FloatArray:
    return np.hstack([np.asarray(values, float), np.ones((len(values), 1))])

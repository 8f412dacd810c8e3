"""Ridge logistic regression, by Newton's method."""

from __future__ import annotations

import numpy as np

from mmedge_lab.training import TrainingError
from mmedge_ros.data_types import FloatArray

_MOST_STEPS, _NEAR, _LARGEST_ODDS = 50, 1e-6, 30.0


def logistic_weights(
    rows: FloatArray,
    truth: FloatArray,
    ridge: FloatArray | float,
    shares: FloatArray | float = 1.0,
) -> FloatArray:
    """Return the weights (D,) of a logistic regression of truth (N,), 0 or 1, on rows (N, D).

    :param ridge: how strongly squares of weights are held small, each (D,) or all alike
    :param shares: how much each row (N,) counts
    :raises TrainingError: if it does not converge
    """
    weights = np.zeros(rows.shape[1])
    held = np.broadcast_to(ridge, weights.shape)
    for _ in range(_MOST_STEPS):
        odds = np.clip(rows @ weights, -_LARGEST_ODDS, _LARGEST_ODDS)
        found = 1.0 / (1.0 + np.exp(-odds))
        slope = rows.T @ (shares * (truth - found)) - held * weights
        curve = (rows.T * (shares * found * (1.0 - found))) @ rows + np.diag(held)
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < _NEAR * max(1.0, float(np.abs(weights).max())):
            return np.asarray(weights)
    raise TrainingError('a logistic regression does not converge; name more flights')

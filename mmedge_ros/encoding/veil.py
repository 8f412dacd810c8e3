"""Tells pictures behind a veil (fog, haze, a dirty lens) from pictures of plain scenes.

A thin veil makes a rich scene by day look as a plain one in brightness, contrast or sharpness
alone, and not in how these go together in the upper, middle and lower third: what is near loses as
much as what is far. So a quadratic form of their logarithms is compared, the logarithm of the
odds (logistic regression).
"""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.data_types import Appearance, FloatArray

# Sharpness, and brightness, contrast and darkest of the thirds.
_FIRST = Appearance._fields.index('sharpness')
_COUNT = len(Appearance._fields) - _FIRST
WEIGHTS = (_COUNT + 1) * (_COUNT + 2) // 2
# Below it a value says no more than zero does.
LEAST = 1e-3
_MOST = 30.0


class Veil:
    """Knows the looks (N, 12) of pictures behind a veil; ``weights`` are those of `terms`."""

    def __init__(self, weights: FloatArray) -> None:
        self.weights = weights

    def probability(self, look: FloatArray) -> float:
        """Return how probable a veil is in a second (12,), as often as not beforehand.

        NaN where the thirds of its pictures are not known.
        """
        known = look[_FIRST:]
        if len(known) < _COUNT or not np.isfinite(known).all():
            return math.nan
        odds = float((terms(known_logs(look[None])) @ self.weights)[0])
        return 1.0 / (1.0 + math.exp(-min(max(odds, -_MOST), _MOST)))


def known_logs(looks: FloatArray) -> FloatArray:
    """Return the logarithms (N, 10) of what a veil is known by."""
    return np.asarray(np.log(np.maximum(looks[:, _FIRST:], LEAST)), np.float64)


def terms(values: FloatArray) -> FloatArray:
    """Return 1, all ``values`` (N, 10), and all products of two of them: (N, 66)."""
    whole = np.concatenate([np.ones((len(values), 1)), values], axis=1)
    first, second = np.triu_indices(whole.shape[1])
    return np.asarray(whole[:, first] * whole[:, second])

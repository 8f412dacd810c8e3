"""Fits what tells pictures behind a veil from those of plain scenes.

What a veil before the lens does is known: how much contrast it leaves, and how bright it is. So
the looks of flights by day are veiled as numbers, without a picture, and told from all looks as
they are by ridge logistic regression.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_lab.training.logistic_regression import logistic_weights
from mmedge_ros.data_types import Appearance, FloatArray
from mmedge_ros.encoding.veil import WEIGHTS, Veil, known_logs, terms

# What the veils leave of contrast, and how bright they are, of white: as fog by day, or as the
# picture is. Such a veil hides people, and weaker ones are too much like other scenes.
_LEFT = (0.3, 0.45)
_FOG = 0.7
_RIDGE = 0.3
_FOLDS = 19
_LEAST_SCALE = 1e-4
_FEWEST_DAYS = 2


def veiled(looks: FloatArray, left: float, veil: float | None) -> FloatArray:
    """Return how seconds (N, 12) look behind a veil that leaves so much (0..1) of contrast.

    :param veil: how bright the veil is, of white; None for as bright as the picture
    """
    found = looks.copy()
    own = looks[:, Appearance._fields.index('brightness')]
    added = (1.0 - left) * (own if veil is None else veil)
    for place, name in enumerate(Appearance._fields):
        if name.endswith('contrast'):
            found[:, place] = left * looks[:, place]
        elif name.endswith(('brightness', 'darkest')):
            found[:, place] = left * looks[:, place] + added
    return found


def fitted_veil(flights: Sequence[FloatArray], by_day: Sequence[bool]) -> Veil:
    """Fit to the seconds (N, 12) of flights, those ``by_day`` also behind veils."""
    usual = np.concatenate(list(flights))
    clear = np.concatenate(
        [flight for flight, is_day in zip(flights, by_day, strict=True) if is_day]
    )
    behind = np.concatenate([veiled(clear, left, veil) for left in _LEFT for veil in (_FOG, None)])
    logs = known_logs(usual)
    mean, scale = logs.mean(axis=0), np.maximum(logs.std(axis=0), _LEAST_SCALE)
    rows = [(known_logs(looks) - mean) / scale for looks in (usual, behind)]
    answers = np.repeat([0.0, 1.0], [len(usual), len(behind)])
    # Both count as much as the flights do.
    shares = np.where(answers > 0.0, len(usual) / len(behind), 1.0)
    # The first, a constant, is not held small.
    ridge = np.where(np.arange(WEIGHTS) > 0, _RIDGE, 0.0)
    weights = logistic_weights(terms(np.concatenate(rows)), answers, ridge, shares)
    return Veil(_unscaled(weights, mean, scale))


def left_out_veils(flights: Sequence[FloatArray], by_day: Sequence[bool]) -> list[FloatArray]:
    """Return how probable a veil is in the seconds of each flight, fitted without it."""
    found = [np.zeros(0)] * len(flights)
    folds = min(_FOLDS, len(flights))
    for fold in range(folds):
        kept = [place for place in range(len(flights)) if place % folds != fold]
        veil = fitted_veil([flights[place] for place in kept], [by_day[place] for place in kept])
        for place in range(fold, len(flights), folds):
            found[place] = np.array([veil.probability(look) for look in flights[place]])
    return found


def can_be_fitted(flights: Sequence[FloatArray], by_day: Sequence[bool]) -> bool:
    """Whether there is enough by day, and the thirds of all pictures are known."""
    is_known = all(np.isfinite(flight).all() for flight in flights)
    return is_known and sum(by_day) >= _FEWEST_DAYS


def _unscaled(weights: FloatArray, mean: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the weights of `terms` of values as they are, given those of scaled ones."""
    size = len(mean) + 1
    first, second = np.triu_indices(size)
    form = np.zeros((size, size))
    form[first, second] = weights
    to_scaled = np.diag([1.0, *(1.0 / scale)])
    to_scaled[1:, 0] = -mean / scale
    form = to_scaled.T @ form @ to_scaled
    # A product of two stands once.
    return np.asarray((form + form.T - np.diag(np.diag(form)))[first, second])

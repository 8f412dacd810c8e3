"""Accuracy surfaces made by hand."""

from __future__ import annotations

import numpy as np

from mmedge_ros.adaptation.learned_accuracy import FIELDS, SURFACE, AccuracySurface


def surface(**weights: tuple[str, float]) -> AccuracySurface:
    """Return one whose coefficients follow a field each: ``level=('height', -0.1)``."""
    numbers = np.zeros((len(FIELDS), len(SURFACE)))
    for term, (field, weight) in weights.items():
        numbers[FIELDS.index(field), SURFACE.index(term)] = weight
    return AccuracySurface(
        np.zeros(len(FIELDS)),
        np.ones(len(FIELDS)),
        np.zeros(len(SURFACE)),
        numbers,
        np.array([10.0, 30.0]),
        np.array([5.0, 20.0]),
    )

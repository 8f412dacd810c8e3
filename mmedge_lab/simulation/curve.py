"""Smooth curves through values at regular instants, with their derivatives."""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import CubicSpline

from mmedge_ros.core.data_types import FloatArray


class Curve:
    """Twice continuously differentiable curve (M channels) through values at equal steps.

    ``values`` is (K, M), the first at ``begin`` s. ``periodic``: the values repeat after K
    steps; otherwise the curve stands still, with its last slope, beyond its ends.
    """

    def __init__(
        self, values: FloatArray, step: float, begin: float = 0.0, periodic: bool = False
    ) -> None:
        if periodic:
            values = np.concatenate([values, values[:1]])
        times = np.arange(len(values)) * step
        spline = CubicSpline(times, values, bc_type='periodic' if periodic else 'natural')
        # (K, 4, M), the constant first: what an instant needs lies together.
        self._coefficients = np.ascontiguousarray(spline.c[::-1].transpose(1, 0, 2))
        self._begin = begin
        self._step = step
        self._periodic = periodic

    def at(self, t: float) -> tuple[FloatArray, FloatArray]:
        """Return the values (M,) and their derivatives (M,) at an instant."""
        piece, d = self._place(t)
        weights = np.array([[1.0, d, d * d, d * d * d], [0.0, 1.0, 2.0 * d, 3.0 * d * d]])
        both: FloatArray = weights @ self._coefficients[piece]
        return both[0], both[1]

    def second(self, t: float) -> FloatArray:
        """Return the second derivatives (M,) at an instant."""
        piece, d = self._place(t)
        _, _, square, cube = self._coefficients[piece]
        return np.asarray(2.0 * square + 6.0 * d * cube, np.float64)

    def _place(self, t: float) -> tuple[int, float]:
        steps = (t - self._begin) / self._step
        pieces = len(self._coefficients)
        if self._periodic:
            steps %= pieces
            piece = min(int(steps), pieces - 1)
        else:
            steps = min(max(steps, 0.0), float(pieces))
            piece = min(math.floor(steps), pieces - 1)
        return piece, (steps - piece) * self._step

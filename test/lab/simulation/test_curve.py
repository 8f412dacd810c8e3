from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.curve import Curve

STEP = 0.1


def waves(times: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(times), np.cos(2.0 * times)])


def test_a_curve_passes_through_its_values() -> None:
    values = waves(np.arange(30) * STEP)
    curve = Curve(values, STEP, begin=-1.0)
    for k in (0, 7, 29):
        np.testing.assert_allclose(curve.at(-1.0 + k * STEP)[0], values[k], atol=1e-12)


def test_the_derivatives_are_those_of_the_values() -> None:
    curve = Curve(waves(np.arange(60) * STEP), STEP)
    for t in np.linspace(0.3, 5.4, 41):
        slope = (curve.at(t + 1e-5)[0] - curve.at(t - 1e-5)[0]) / 2e-5
        np.testing.assert_allclose(curve.at(t)[1], slope, atol=1e-6)
        bend = (curve.at(t + 1e-5)[1] - curve.at(t - 1e-5)[1]) / 2e-5
        np.testing.assert_allclose(curve.second(t), bend, atol=1e-4)


def test_a_periodic_curve_goes_on_smoothly_after_its_end() -> None:
    phase = np.arange(32) / 32
    curve = Curve(np.sin(2.0 * np.pi * phase)[:, None], 1.0 / 32, periodic=True)
    for t in (-0.3, 0.999999, 1.0, 7.25):
        value, slope = curve.at(t)
        assert value[0] == pytest.approx(np.sin(2.0 * np.pi * t), abs=1e-4)
        assert slope[0] == pytest.approx(2.0 * np.pi * np.cos(2.0 * np.pi * t), abs=1e-2)

"""The noise scale of a bundle, fitted to the NEES of replayed flights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_bundle import write_tiny_bundle

from mmedge_lab.training import TrainingError
from mmedge_lab.training.noise_fit import fitted_scale, write_noise_scale
from mmedge_ros.tracking.noise_scale import read_noise_scale

RANDOM = np.random.default_rng(3)


def samples(factor: float, count: int = 2000) -> np.ndarray:
    """NEES of errors whose variances are ``factor`` times those reported."""
    return factor * RANDOM.chisquare(4, count)


def test_the_scale_makes_the_mean_nees_right(tmp_path: Path) -> None:
    fit = fitted_scale(2.0, [samples(1.5), samples(1.5), samples(1.5)], ['1', '2', '3'])
    assert fit.scale == pytest.approx(3.0, rel=0.05)
    assert fit.before.value == pytest.approx(6.0, rel=0.05)
    assert fit.left_out.low < 4.0 < fit.left_out.high
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    write_noise_scale(bundle, fit)
    assert read_noise_scale(bundle) == pytest.approx(fit.scale, rel=0.01)


def test_flights_of_a_seed_are_left_out_together() -> None:
    flights = [samples(1.0), samples(1.0), samples(4.0), samples(4.0)]
    fit = fitted_scale(1.0, flights, ['1', '1', '2', '2'])
    # Each seed under the scale of the other: 4 / 4 and 4 * 4.
    assert fit.left_out.value == pytest.approx((1.0 + 16.0) / 2.0, rel=0.05)


def test_flights_without_people_do_not_count() -> None:
    fit = fitted_scale(1.0, [samples(1.0), samples(1.0), np.zeros(0)], ['1', '2', '3'])
    assert fit.left_out.value == pytest.approx(4.0, rel=0.05)
    with pytest.raises(TrainingError, match='fewer than two seeds'):
        fitted_scale(1.0, [samples(1.0), np.zeros(0)], ['1', '2'])

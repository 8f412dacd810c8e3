from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.adaptation.step_detection import NoiseEstimate, StepDetector


def steps(deviations: list[float], noise: float = 1.0) -> list[tuple[int, float]]:
    detector = StepDetector()
    steps = []
    for number, deviation in enumerate(deviations, start=1):
        height = detector.update(deviation, noise)
        if height is not None:
            steps.append((number, height))
    return steps


def test_one_outlier_is_no_step_but_two_in_a_row_are() -> None:
    assert steps([0.0, 50.0, 0.0, 0.0, 0.0, 50.0, 0.0]) == []
    assert steps([0.0, 6.0, 7.0]) == [(3, 6.0)]


def test_an_outlier_beside_a_sample_that_is_a_bit_high_is_no_step() -> None:
    assert steps([2.2, 50.0, 0.5, 0.0, 0.0, 0.0]) == []


def test_a_step_down_needs_longer_than_one_up() -> None:
    [(up, _)], [(down, height)] = steps([8.0] * 2), steps([-8.0] * 8)
    assert up < down
    assert height == -8.0


def test_a_small_shift_is_found_in_time() -> None:
    [(number, height), *_] = steps([1.2] * 20)
    assert 5 <= number <= 12
    assert height == pytest.approx(1.2)


def test_noise_alone_is_hardly_ever_a_step() -> None:
    random = np.random.default_rng(5)
    assert len(steps(random.normal(0.0, 1.0, 5000).tolist())) < 15


def test_what_was_summed_can_be_forgotten() -> None:
    detector = StepDetector()
    assert detector.update(3.0, 1.0) is None
    detector.reset()
    assert detector.update(3.0, 1.0) is None
    assert detector.update(3.0, 1.0) is not None


@pytest.mark.parametrize('true', [0.03, 0.15, 0.4])
def test_noise_is_learned_and_outliers_hardly_count(true: float) -> None:
    random = np.random.default_rng(1)
    estimate = NoiseEstimate(0.08, 0.01)
    for _ in range(400):
        outlier = 20.0 if random.random() < 0.02 else 1.0
        estimate.update(outlier * true * random.standard_normal())
    assert estimate.value == pytest.approx(true, rel=0.35)


def test_noise_is_never_zero() -> None:
    estimate = NoiseEstimate(0.08, 0.01)
    for _ in range(500):
        estimate.update(0.0)
    assert estimate.value == 0.01

"""How a picture looks as a whole."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest

from mmedge_ros.data_types import Appearance
from mmedge_ros.encoding.picture_appearance import appearance_of


def scene(brightness: float = 128.0) -> np.ndarray:
    noise = np.random.default_rng(0).normal(brightness, 30.0, (240, 320, 3))
    coarse = cv2.GaussianBlur(noise, (0, 0), 2.0)
    return np.clip(coarse * 0.5 + noise * 0.5, 0, 255).astype(np.uint8)


def test_a_brighter_picture_is_brighter_and_nothing_else() -> None:
    dark, bright = appearance_of(scene(80.0)), appearance_of(scene(160.0))
    assert bright.brightness == pytest.approx(160.0 / 255.0, abs=0.01)
    assert dark.brightness == pytest.approx(80.0 / 255.0, abs=0.01)
    assert bright.contrast == pytest.approx(dark.contrast, rel=0.05)
    assert bright.sharpness == pytest.approx(dark.sharpness, rel=0.05)


def test_blur_takes_sharpness() -> None:
    sharp = appearance_of(scene())
    blurred = appearance_of(cv2.blur(scene(), (9, 1)))
    assert blurred.sharpness < 0.7 * sharp.sharpness


def test_more_contrast_is_no_more_sharpness() -> None:
    flat = (0.5 * scene().astype(float) + 64.0).astype(np.uint8)
    full, half = appearance_of(scene()), appearance_of(flat)
    assert half.contrast == pytest.approx(0.5 * full.contrast, rel=0.02)
    assert half.sharpness == pytest.approx(full.sharpness, rel=0.03)


def test_an_even_picture_has_no_sharpness_that_could_be_known() -> None:
    found = appearance_of(np.full((48, 64, 3), 255, np.uint8))
    assert (found.brightness, found.contrast) == (1.0, 0.0)
    assert math.isnan(found.sharpness)


@pytest.mark.parametrize('shape', [(0, 0, 3), (0, 9, 3), (9, 2, 3)])
def test_of_hardly_a_picture_nothing_is_known(shape: tuple[int, ...]) -> None:
    assert all(math.isnan(value) for value in appearance_of(np.zeros(shape, np.uint8)))


def test_a_picture_of_few_rows_is_looked_at() -> None:
    assert appearance_of(scene()[:5]).brightness == pytest.approx(0.5, abs=0.05)
    assert len(Appearance._fields) == 3

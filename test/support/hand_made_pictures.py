"""Seconds of pictures made by hand, and what is usual of them."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Appearance
from mmedge_ros.encoding.picture_drift import (
    DISTANCE,
    FLICKER,
    Bounds,
    PictureDrift,
    Second,
    UsualPictures,
)

USUAL = Appearance(0.5, 0.15, 0.2)


def usual_seconds(count: int = 200, seed: int = 0) -> np.ndarray:
    """Seconds (N, 3) about `USUAL`, some 10 % off."""
    return np.exp(np.log(USUAL) + 0.1 * np.random.default_rng(seed).standard_normal((count, 3)))


def usual_pictures() -> UsualPictures:
    bounds = {DISTANCE: Bounds(0.8, 3.0), FLICKER: Bounds(0.03, 3.0)}
    return UsualPictures(usual_seconds(2000), bounds)


def second(look: Appearance | np.ndarray = USUAL, flicker: float = 0.01) -> Second:
    """A second of such pictures."""
    return Second(np.array(look, np.float64), flicker)


def fly(
    drift: PictureDrift,
    seconds: float,
    begin: float = 0.0,
    rate: float = 30.0,
    contrast: float = 1.0,
    flicker: float = 0.0,
) -> float | None:
    """Show pictures that are usual but for a share of contrast and a flicker of 3.7 Hz.

    :return: when the first words came, s after the begin
    """
    for number in range(round(seconds * rate)):
        at = begin + number / rate
        gain = 1.0 + flicker * math.sin(2.0 * math.pi * 3.7 * at)
        look = Appearance(gain * USUAL.brightness, gain * contrast * USUAL.contrast, 0.2)
        drift.take(round(at * NS_PER_S), look)
        if drift.words:
            return at - begin
    return None

"""What an exposure adds to a picture: motion blur, a soft lens, darker corners and noise."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.textures import Image
from mmedge_lab.simulation.view import NEAR, View
from mmedge_lab.simulation.world import DroneState, World
from mmedge_ros.core.data_types import FloatArray

# Blur shorter than this, in pixels, is what the lens does anyway.
_LEAST = 0.6
LONGEST = 25.0


def smeared(picture: Image, smear: FloatArray) -> Image:
    """Return a picture smeared along ``smear`` (2,) px; the same one if that is next to none."""
    length = float(np.hypot(*smear))
    if length < _LEAST:
        return picture
    kernel = _line_kernel(smear * min(1.0, LONGEST / length))
    return np.asarray(cv2.filter2D(picture, -1, kernel), np.uint8)


def camera_motion(view: View, drone: DroneState, distance: float) -> FloatArray:
    """Return how fast (2,) px/s what is ``distance`` m ahead moves across the canvas."""
    turn = view.to_optical.rotate(drone.angular_velocity)
    move = view.to_optical.rotate(drone.velocity)
    ahead = np.array([0.0, 0.0, distance])
    point = -np.cross(turn, ahead) - move
    return np.asarray(point[:2] * view.lens.focal / distance, np.float64)


def own_motion(view: View, place: FloatArray, velocity: FloatArray) -> FloatArray:
    """Return how fast (2,) px/s something at ``place`` (3,) m moves, for a camera that stays.

    ``velocity`` (3,) m/s; both in odom.
    """
    x, y, z = view.to_optical.apply(place).tolist()
    moving = view.to_optical.rotate(velocity)
    z = max(z, NEAR)
    across = moving[:2] - np.array([x, y]) * (moving[2] / z)
    return np.asarray(across * view.lens.focal / z, np.float64)


def _line_kernel(smear: FloatArray) -> NDArray[np.float32]:
    """Return a kernel that spreads a pixel evenly along a line centred on it."""
    half = math.ceil(0.5 * float(np.abs(smear).max())) + 1
    kernel = np.zeros((2 * half + 1, 2 * half + 1), np.uint8)
    ends = np.rint((half + 0.5 * np.array([-smear, smear])) * 16).astype(int)
    a, b = ((int(x), int(y)) for x, y in ends)
    cv2.line(kernel, a, b, 255, 1, cv2.LINE_AA, 4)
    weights = kernel.astype(np.float32)
    # Drawn lines are rounded; the mean of both directions is centred exactly.
    weights += weights[::-1, ::-1]
    return np.asarray(weights / weights.sum(), np.float32)


_STREAM = 301
_TILE_MARGIN = 160
_SOFT = 0.55
# Photon noise of a white pixel beside a dark one's, grey levels of deviation.
_PHOTON = 1.6
_CORNER = 0.12
# Noise is alike over about a pixel after demosaicing.
_GRAIN = 0.5


class PictureNoise:
    """Adds what one world's camera adds. The same instant gets the same noise every time."""

    def __init__(self, world: World) -> None:
        self._seed = world.seed
        self._exposure = world.light.exposure
        camera = world.rig.camera
        random = np.random.default_rng((world.seed, _STREAM))
        size = (camera.height + _TILE_MARGIN, camera.width + _TILE_MARGIN, 3)
        grain = random.standard_normal(size, np.float32)
        grain = np.asarray(cv2.GaussianBlur(grain, (3, 3), _GRAIN), np.float32)
        # Colours differ less than brightness does.
        grain = 0.6 * grain + 0.5 * grain.mean(axis=2, keepdims=True)
        grain /= float(grain.std())
        dark = world.light.noise
        self._noise = np.rint(grain * math.hypot(dark, 0.6 * _PHOTON)).astype(np.int16)
        self._shape = (camera.height, camera.width)
        half_diagonal = 0.5 * math.hypot(camera.height, camera.width)
        y = (np.arange(camera.height) - 0.5 * (camera.height - 1)) / half_diagonal
        x = (np.arange(camera.width) - 0.5 * (camera.width - 1)) / half_diagonal
        fall = 1.0 - _CORNER * (x[None] ** 2 + y[:, None] ** 2) ** 1.5
        self._vignette = cv2.merge([np.rint(255.0 * fall).astype(np.uint8)] * 3)

    def blur(self, canvas: Image, view: View, drone: DroneState, distance: float) -> Image:
        """Return a canvas smeared by the drone's motion while the shutter is open.

        :param distance: of what the picture is about, m; linear motion smears by it
        """
        return smeared(canvas, camera_motion(view, drone, distance) * self._exposure)

    def expose(self, picture: Image, t: float) -> Image:
        """Return a picture as the sensor delivers it at the instant ``t``."""
        soft = cv2.GaussianBlur(picture, (3, 3), _SOFT)
        soft = cv2.multiply(soft, self._vignette, scale=1.0 / 255.0)
        random = np.random.default_rng((self._seed, _STREAM, round(t * 1e6) & 0xFFFFFFFFFF))
        y, x = (int(v) for v in random.integers(0, _TILE_MARGIN, 2))
        noise = self._noise[y : y + self._shape[0], x : x + self._shape[1]]
        return np.asarray(cv2.add(soft, noise, dtype=cv2.CV_8U), np.uint8)

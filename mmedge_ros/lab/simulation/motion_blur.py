"""How things smear while the shutter is open: along a line centred on where they are mid-way."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.textures import Image
from mmedge_ros.lab.simulation.view import NEAR, View
from mmedge_ros.lab.simulation.world import DroneState

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

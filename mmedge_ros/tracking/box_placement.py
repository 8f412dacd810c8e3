"""Boxes of people as rays and distances in the tracking frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Detection, DetectionKey, FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry

_BODY_RADIUS = 0.25
# How tall others than people are, m.
_STATURES = {'cyclist': 1.75, 'car': 1.5, 'dog': 0.55}


class PlacedBoxes(NamedTuple):
    """Detections (N) with rays (N, 3), distances (N,), and optical depth per distance (N,).

    ``corners`` (N, 4) are those of their boxes; ``cut`` (N,) are boxes at the upper or lower edge,
    ``cut_below`` (N,) those at the lower; ``feet`` and ``heads`` (N, 3) are rays to the middles of
    their lower and upper edges; ``statures`` (N,) m is how tall such bodies are; ``names`` (N) are
    those of the detections.
    """

    detections: tuple[Detection, ...]
    corners: FloatArray
    rays: FloatArray
    distances: FloatArray
    cosines: FloatArray
    cut: NDArray[np.bool_]
    cut_below: NDArray[np.bool_]
    feet: FloatArray
    heads: FloatArray
    statures: FloatArray
    names: tuple[DetectionKey, ...] = ()

    @staticmethod
    def nothing() -> PlacedBoxes:
        none, rays, never = np.zeros(0), np.zeros((0, 3)), np.zeros(0, bool)
        return PlacedBoxes((), np.zeros((0, 4)), rays, none, none, never, never, rays, rays, none)


def place_boxes(
    detections: Sequence[Detection],
    geometry: SensorGeometry,
    camera: CameraModel,
    person_height: float,
    unit_sequence: int = 0,
) -> PlacedBoxes:
    """Find the ray of each box and how far away a person who fills it stands.

    :param detections: all of the unit ``unit_sequence``
    """
    places = [i for i, d in enumerate(detections) if d.box.width >= 1 and d.box.height >= 2]
    if not places:
        return PlacedBoxes.nothing()
    usable = [detections[i] for i in places]
    corners = np.array([d.box for d in usable])
    x0, y0, x1, y1 = corners.T
    pixels = np.empty((3, len(usable), 2))
    pixels[..., 0] = (x0 + x1) / 2.0
    pixels[0, :, 1], pixels[1, :, 1], pixels[2, :, 1] = (y0 + y1) / 2.0, y0, y1
    optical = camera.bearing(pixels.reshape(-1, 2))
    centre, top, bottom = geometry.camera_pose.rotate(optical).reshape(3, len(usable), 3)
    statures = np.array([_STATURES.get(d.label, person_height) for d in usable])
    distances = standing_distance(centre, top, bottom, statures)
    cosines = optical[: len(usable), 2]
    # A poor calibration may have no ray for the edge of the picture.
    keep = np.isfinite(distances) & (cosines > 0.0)
    cut_below = y1 >= camera.height - 2.0
    kept = np.flatnonzero(keep).tolist()
    return PlacedBoxes(
        tuple(usable[i] for i in kept),
        corners[keep],
        centre[keep],
        distances[keep],
        cosines[keep],
        (cut_below | (y0 <= 2.0))[keep],
        cut_below[keep],
        bottom[keep],
        top[keep],
        statures[keep],
        tuple(DetectionKey(unit_sequence, places[i]) for i in kept),
    )


def standing_distance(
    centre: FloatArray, top: FloatArray, bottom: FloatArray, height: float | FloatArray
) -> FloatArray:
    """Distance (N,) along the central rays of upright bodies, from the rays that bound them.

    Works for any tilt of the camera: the ray to the top meets the far side of the head, the
    one to the bottom the near side of the feet, of a body of the given height (m, or (N,)). Rays
    (N, 3) are unit vectors with z up; where they do not bound an upright body the answer is NaN.
    """
    level = np.maximum(np.hypot(centre[:, 0], centre[:, 1]), 1e-6)
    rise = top[:, 2] / np.maximum(np.hypot(top[:, 0], top[:, 1]), 1e-6)
    fall = bottom[:, 2] / np.maximum(np.hypot(bottom[:, 0], bottom[:, 1]), 1e-6)
    spread = rise - fall
    # Looking down, the depth of the body adds to what is seen of its height.
    seen = height - _BODY_RADIUS * np.minimum(rise + fall, 0.0)
    ground = np.where(spread > 1e-4, seen / np.maximum(spread, 1e-4), np.nan)
    distances: FloatArray = ground / level
    return distances

"""Where the camera looks, what it shows of a body, and how pixels move when it turns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import SensorGeometry

# The cosine of 84 degrees.
_LEAST_DEPTH = 0.1
# Height of a standing body, m.
_BODY = 1.7
# Width of the box of a body by its height.
_WIDTH = 0.4


class CameraView(NamedTuple):
    """A camera and where it looks: ``rotation`` (3, 3) maps optical to tracking coordinates.

    It is at ``position`` (3,) m.
    """

    camera: CameraModel
    rotation: FloatArray
    position: FloatArray = np.zeros(3)

    def shown_boxes(self, points: FloatArray) -> FloatArray:
        """Return the boxes (N, 4) px of standing bodies whose middles are at points (N, 3).

        Of those not in the picture they have no height.
        """
        optical = (points - self.position) @ self.rotation
        pixels, in_view = self.camera.project(optical)
        heights = _BODY * self.camera.k[1, 1] / np.where(in_view, optical[:, 2], np.inf)
        halves = heights[:, None] * (0.5 * _WIDTH, 0.5)
        return np.column_stack((pixels - halves, pixels + halves))


def view_of(geometry: SensorGeometry) -> CameraView | None:
    """Return the view of the camera of sensors; None without a calibration."""
    if geometry.camera is None:
        return None
    pose = geometry.camera_pose
    return CameraView(geometry.camera, pose.rotation, pose.translation)


def turned_pixels(pixels: FloatArray, before: CameraView, after: CameraView) -> FloatArray:
    """Return where pixels (N, 2) of far points lie after the camera has turned.

    What a lens distorts is left out: it bends a move by a few per cent of that move. Pixels that
    would come to lie behind the camera stay where they are.
    """
    turn = after.rotation.T @ before.rotation
    k = before.camera.k
    rays = np.column_stack([(pixels - k[:2, 2]) / (k[0, 0], k[1, 1]), np.ones(len(pixels))])
    rays = rays @ turn.T
    ahead = rays[:, 2] > _LEAST_DEPTH
    plane = rays[:, :2] / np.where(ahead, rays[:, 2], 1.0)[:, None]
    k = after.camera.k
    moved: FloatArray = plane * (k[0, 0], k[1, 1]) + k[:2, 2]
    return np.where(ahead[:, None], moved, pixels)


class CameraTurn(NamedTuple):
    """How the camera turned from one view to the other, in ``seconds``."""

    before: CameraView
    after: CameraView
    seconds: float

    def speeds(self, pixels: FloatArray) -> FloatArray:
        """Return how fast the turning moves what is at pixels (N, 2) by now, (N, 2) px/s."""
        return (pixels - turned_pixels(pixels, self.after, self.before)) / self.seconds

"""Where pixels come to lie when the camera turns."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.geometry.camera_turn import CameraView, turned_pixels
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY

K = np.array([[450.0, 0.0, 320.0], [0.0, 440.0, 240.0], [0.0, 0.0, 1.0]])


def view(
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0), d: tuple[float, ...] = ()
) -> CameraView:
    camera = CameraModel(640, 480, K, np.array(d), 'plumb_bob')
    return CameraView(camera, rotation_by(np.radians(turn)) @ OPTICAL_TO_BODY)


@pytest.mark.parametrize('turn', [(0.0, 0.0, 8.0), (0.0, -5.0, 0.0), (12.0, 3.0, -9.0)])
def test_pixels_move_as_the_camera_model_has_it(turn: tuple[float, float, float]) -> None:
    before, after = view(), view(turn)
    pixels = np.array([[320.0, 240.0], [100.0, 50.0], [600.0, 400.0]])
    rays = before.camera.bearing(pixels) @ before.rotation.T
    exact, _ = after.camera.project(rays @ after.rotation)
    np.testing.assert_allclose(turned_pixels(pixels, before, after), exact, atol=1e-6)


def test_a_lens_bends_a_small_move_by_a_small_part_of_it() -> None:
    lens = (-0.2, 0.05, 0.0, 0.0)
    before, after = view(d=lens), view((0.0, 0.0, 1.0), lens)
    pixels = np.array([[320.0, 240.0], [150.0, 120.0]])
    rays = before.camera.bearing(pixels) @ before.rotation.T
    exact, _ = after.camera.project(rays @ after.rotation)
    moved = np.linalg.norm(exact - pixels, axis=1)
    apart = np.linalg.norm(turned_pixels(pixels, before, after) - exact, axis=1)
    assert (apart < 0.25 * moved).all()


def test_what_would_come_to_lie_behind_the_camera_stays() -> None:
    pixels = np.array([[320.0, 240.0]])
    np.testing.assert_array_equal(turned_pixels(pixels, view(), view((0.0, 0.0, 180.0))), pixels)

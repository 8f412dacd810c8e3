"""Camera models, against OpenCV and against themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.projection import CameraModel

WIDTH, HEIGHT = 640, 480
NIGHT_K = np.array([[456.937531, 0, 313.081521], [0, 458.889439, 243.930116], [0, 0, 1]])
BARREL_K = np.array([[445.528449, 0, 355.988652], [0, 448.183152, 213.646360], [0, 0, 1]])
RATIONAL_D = [0.513, -2.65, 5e-4, -2e-4, 1.51, 0.392, -2.47, 1.44]
PRISM_D = [*RATIONAL_D, 1e-3, -2e-4, 5e-4, 1e-4]
# Calibrations as they come: the night recording's, one with strong barrel distortion, ...
CAMERAS = {
    'night': CameraModel(
        WIDTH, HEIGHT, NIGHT_K, np.array([0.096449, -0.103986, 0.000836, 0.001810, 0.0])
    ),
    'barrel': CameraModel(
        WIDTH, HEIGHT, BARREL_K, np.array([-0.309726, 0.090119, -0.001426, 0.002372, 0.0])
    ),
    'rational': CameraModel(WIDTH, HEIGHT, NIGHT_K, np.array(RATIONAL_D), 'rational_polynomial'),
    'prism': CameraModel(WIDTH, HEIGHT, NIGHT_K, np.array(PRISM_D), 'rational_polynomial'),
    'fisheye': CameraModel(
        WIDTH, HEIGHT, BARREL_K * [[0.8], [0.8], [1]], np.array([-0.02, 0.003, 1e-4, -1e-4]),
        'equidistant',
    ),
    'ideal': CameraModel(WIDTH, HEIGHT, NIGHT_K, np.zeros(0), 'none'),
}  # fmt: skip


def grid(camera: CameraModel) -> FloatArray:
    """Pixels all over the picture, corners included."""
    x, y = np.meshgrid(np.linspace(0, camera.width - 1, 33), np.linspace(0, camera.height - 1, 25))
    return np.column_stack([x.ravel(), y.ravel()])


def by_opencv(camera: CameraModel, points: FloatArray) -> FloatArray:
    none = np.zeros(3)
    if camera.model == 'equidistant':
        shaped = points.reshape(-1, 1, 3)
        found = cv2.fisheye.projectPoints(shaped, none, none, camera.k, camera.d)[0]
    else:
        found = cv2.projectPoints(points, none, none, camera.k, camera.d)[0]
    return np.asarray(found).reshape(-1, 2)


@pytest.mark.parametrize('name', CAMERAS)
def test_pixels_are_those_of_opencv(name: str) -> None:
    camera = CAMERAS[name]
    points = camera.bearing(grid(camera)) * np.linspace(0.5, 80, len(grid(camera)))[:, None]
    pixels, in_view = camera.project(points)
    assert in_view.all()
    np.testing.assert_allclose(pixels, by_opencv(camera, points), atol=1e-6)


@pytest.mark.parametrize('name', CAMERAS)
def test_every_pixel_of_the_picture_has_a_bearing_that_leads_back(name: str) -> None:
    camera = CAMERAS[name]
    rays = camera.bearing(grid(camera))
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0)
    pixels, in_view = camera.project(7.0 * rays)
    assert in_view.all()
    np.testing.assert_allclose(pixels, grid(camera), atol=1e-4)


@pytest.mark.parametrize('name', CAMERAS)
@given(x=st.floats(-30, 30), y=st.floats(-30, 30), z=st.floats(-5, 60))
def test_a_bearing_is_parallel_to_the_point_it_came_from(
    name: str, x: float, y: float, z: float
) -> None:
    camera = CAMERAS[name]
    point = np.array([[x, y, z]])
    pixels, in_view = camera.project(point)
    if not in_view[0]:
        return
    ray = camera.bearing(pixels)[0]
    angle = np.arctan2(np.linalg.norm(np.cross(ray, point[0])), ray @ point[0])
    assert angle < 1e-3


@pytest.mark.parametrize('name', CAMERAS)
def test_points_outside_the_field_of_view_are_not_in_the_picture(name: str) -> None:
    camera = CAMERAS[name]
    corners = camera.bearing([[0, 0], [WIDTH - 1, 0], [0, HEIGHT - 1], [WIDTH - 1, HEIGHT - 1]])
    widest = np.arccos(corners[:, 2].min())
    angles = np.linspace(widest + 0.01, np.pi / 2 - 0.01, 200)
    around = np.linspace(0, 2 * np.pi, 36)
    rays = np.array(
        [[np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)] for a in angles for b in around]
    )
    _, in_view = camera.project(10 * rays)
    assert not in_view.any()


@pytest.mark.filterwarnings('error')
def test_points_behind_the_camera_and_numbers_that_are_none_are_not_in_view() -> None:
    points = [
        [0.0, 0.0, -5.0],
        [0.0, 0.0, 0.0],
        [np.nan, 0.0, 5.0],
        [0.0, 0.0, np.inf],
        [np.inf, 0.0, 5.0],
        [1e308, 1e308, 1e-2],
        [0.0, 0.0, 5.0],
    ]
    pixels, in_view = CAMERAS['night'].project(points)
    assert in_view.tolist()[:3] == [False] * 3
    assert in_view.tolist()[4:] == [False, False, True]
    np.testing.assert_allclose(pixels[-1], [313.081521, 243.930116])


def test_the_outermost_pixels_belong_to_the_picture() -> None:
    camera = CAMERAS['ideal']
    inside = camera.bearing([[-0.49, -0.49], [WIDTH - 0.51, HEIGHT - 0.51]])
    outside = camera.bearing([[-0.51, 0.0], [0.0, HEIGHT - 0.49]])
    assert camera.project(inside)[1].tolist() == [True, True]
    assert camera.project(outside)[1].tolist() == [False, False]


def info(**changes: Any) -> SimpleNamespace:
    k = NIGHT_K.reshape(-1)
    roi = SimpleNamespace(x_offset=0, y_offset=0, width=0, height=0, do_rectify=False)
    message = SimpleNamespace(
        width=WIDTH, height=HEIGHT, k=k, d=[0.1, -0.1, 0.0, 0.0, 0.0],
        p=np.insert(k + np.eye(9)[0] * 9, [3, 6, 9], 0.0),
        distortion_model='plumb_bob', binning_x=0, binning_y=0, roi=roi,
    )  # fmt: skip
    vars(message).update(changes)
    return message


def test_without_coefficients_nothing_is_distorted_whatever_the_model_says() -> None:
    assert CameraModel.from_camera_info(info(d=[], distortion_model='')).model == 'none'


def test_rectified_pictures_use_the_projection_matrix() -> None:
    camera = CameraModel.from_camera_info(info(), rectified=True)
    assert camera.k[0, 0] == pytest.approx(NIGHT_K[0, 0] + 9)
    assert camera.model == 'none'


def test_a_region_of_interest_moves_the_centre() -> None:
    roi = SimpleNamespace(x_offset=100, y_offset=40, width=300, height=200)
    camera = CameraModel.from_camera_info(info(roi=roi, d=[]))
    whole = CameraModel.from_camera_info(info(d=[]))
    point = [[0.1, 0.2, 5.0]]
    np.testing.assert_allclose(camera.project(point)[0], whole.project(point)[0] - [100, 40])
    assert (camera.width, camera.height) == (300, 200)


def test_binning_makes_the_picture_smaller() -> None:
    camera = CameraModel.from_camera_info(info(binning_x=2, binning_y=2))
    whole = CameraModel.from_camera_info(info())
    assert (camera.width, camera.height) == (WIDTH // 2, HEIGHT // 2)
    # The centre of a binned pixel is the middle of the four it was made of.
    np.testing.assert_allclose(camera.bearing([[100, 50]]), whole.bearing([[200.5, 100.5]]))


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'k': np.zeros(9)}, 'not calibrated'),
        ({'k': -NIGHT_K.reshape(-1)}, 'not calibrated'),
        ({'k': np.full(9, np.nan)}, 'finite'),
        ({'k': np.ones(8)}, 'k has 8 numbers; expected 9'),
        ({'k': 'abc'}, 'not a list of numbers'),
        ({'d': [0.1, 0.2]}, 'plumb_bob takes 0 or 4 or 5 finite'),
        ({'d': [0.1, 0.2, np.inf, 0, 0]}, 'plumb_bob takes'),
        ({'d': [0.1] * 9, 'distortion_model': 'rational_polynomial'}, 'takes 0 or 8'),
        ({'d': [0.1] * 14, 'distortion_model': 'rational_polynomial'}, 'tilted sensor'),
        ({'distortion_model': 'magic'}, "'magic' is not one of plumb_bob"),
        ({'width': 0}, 'camera of 0 x 480 px'),
        ({'height': 2**31}, 'camera of 640 x 2147483648 px'),
    ],
)
def test_a_camera_info_that_describes_no_camera_is_an_error(
    changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(GeometryError, match=reason):
        CameraModel.from_camera_info(info(**changes))


@given(
    d=st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=5),
    pixels=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=4),
)
def test_a_senseless_calibration_gives_unit_vectors_or_nan(
    d: list[float], pixels: list[tuple[float, float]]
) -> None:
    rays = CameraModel(WIDTH, HEIGHT, NIGHT_K, np.array(d)).bearing(pixels)
    lengths = np.linalg.norm(rays, axis=1)
    assert (np.isnan(lengths) | (np.abs(lengths - 1) < 1e-9)).all()

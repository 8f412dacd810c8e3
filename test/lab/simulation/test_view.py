"""The canvas and the lens bring points where the camera model does."""

from __future__ import annotations

import hand_made_world as made
import numpy as np
import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.view import READOUT, Lens, sphere_outlines, view_at
from mmedge_ros.core.data_types import Box
from mmedge_ros.geometry.projection import CameraModel


@pytest.mark.parametrize('barrel', [-0.12, 0.0, 0.05])
def test_a_dot_on_the_canvas_comes_out_where_the_camera_model_projects_it(barrel: float) -> None:
    model = made.camera(barrel)
    lens = Lens(model)
    world = made.park(model=model)
    view = view_at(world, lens, 0.0)
    points = np.array([[6.0, y, z] for y in (-4.0, 0.3, 4.2) for z in (0.2, 2.0, 4.4)])
    pixels, in_view = model.project(view.to_optical.apply(points))
    assert in_view.sum() >= 6
    canvas_pixels, _ = view.canvas_of(points)
    for (x, y), (u, v) in zip(pixels[in_view], canvas_pixels[in_view], strict=True):
        rows, columns = np.mgrid[: lens.height, : lens.width]
        blob = np.exp(-((columns - u) ** 2 + (rows - v) ** 2) / 8.0)
        picture = lens.bend(np.dstack([255 * blob] * 3).astype(np.uint8))[..., 0].astype(float)
        rows, columns = np.mgrid[: model.height, : model.width]
        found = [(picture * grid).sum() / picture.sum() for grid in (columns, rows)]
        assert found == pytest.approx([x, y], abs=0.15)


def test_points_beside_and_behind_the_camera_come_out_far_outside_but_finite() -> None:
    lens = Lens(made.camera())
    points = np.array([[50.0, 0.0, 0.1], [0.0, -3.0, -1.0], [-4.0, 1.0, 0.0]])
    pixels = lens.project(points)
    assert np.isfinite(pixels).all()
    outside = (pixels < 0) | (pixels > (640, 480))
    assert outside.any(axis=1).all()


def test_the_rim_of_a_sphere_lies_on_it_and_is_what_a_ray_just_touches() -> None:
    centres = np.array([[0.3, -0.2, 4.0], [0.0, 0.0, 1.0], [2.0, 1.0, 0.8]])
    radii = np.array([0.4, 0.9, 0.1])
    rims = sphere_outlines(centres, np.minimum(radii, 0.4))
    for rim, centre, radius in zip(rims, centres, np.minimum(radii, 0.4), strict=True):
        assert np.linalg.norm(rim - centre, axis=1) == pytest.approx(radius)
        assert ((rim - centre) * rim).sum(axis=1) == pytest.approx(0.0, abs=1e-9)


def test_a_fisheye_that_sees_sideways_is_refused_with_a_reason() -> None:
    matrix = np.array([[150.0, 0.0, 320.0], [0.0, 150.0, 240.0], [0.0, 0.0, 1.0]])
    with pytest.raises(SimulationError, match='wider than a flat canvas'):
        Lens(CameraModel(640, 480, matrix, np.zeros(4), 'equidistant'))


def test_rows_read_later_show_what_turned_by_rate_times_time_times_focal_length() -> None:
    lens = Lens(made.camera(0.0))
    rate, x, y = 1.5, 322, 236
    canvas = np.zeros((lens.height, lens.width, 3), np.uint8)
    column = round(float(lens.centre[0]))
    canvas[:, column - 1 : column + 2] = 255
    straight, rolled = (
        lens.bend(canvas, turn)[..., 0].astype(float) for turn in (None, np.array([0, -rate, 0]))
    )
    late = (np.arange(480) - 239.5) / 480 * READOUT
    middles = [
        (picture[:, x - 20 : x + 20] @ np.arange(40)) / picture[:, x - 20 : x + 20].sum(axis=1)
        for picture in (straight, rolled)
    ]
    np.testing.assert_allclose(middles[1] - middles[0], rate * late * lens.focal, atol=0.05)
    box = lens.rolled(Box(x, y + 100.0, x + 1.0, y + 102.0), np.array([0, -rate, 0]))
    assert box.x0 - x == pytest.approx(rate * late[y + 101] * lens.focal, abs=0.05)

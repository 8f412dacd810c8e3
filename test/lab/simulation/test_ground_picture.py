"""The painted ground lies where the camera model projects it."""

from __future__ import annotations

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_lab.simulation.ground_atlas import GroundAtlas
from mmedge_lab.simulation.ground_picture import GroundPicture
from mmedge_lab.simulation.view import Lens, view_at
from mmedge_lab.simulation.world import World


@pytest.fixture(scope='module')
def day() -> tuple[World, Lens, GroundPicture]:
    world = made.world()
    lens = Lens(world.rig.camera)
    return world, lens, GroundPicture(world, lens)


def test_the_roads_edges_are_where_the_camera_model_projects_them(
    day: tuple[World, Lens, GroundPicture],
) -> None:
    world, lens, ground = day
    view = view_at(world, lens, 0.0)
    picture = lens.bend(ground.paint(view)).astype(int)
    # Grass is greener than it is blue, asphalt is grey. The road runs from y = 4.5 to 7.5.
    green = picture[..., 1] - picture[..., 0]
    for x in (9.0, 12.0, 16.0):
        for y, inside in ((4.5, 0.3), (7.5, -0.3)):
            points = np.array([[x, y + inside, 0.0], [x, y - inside, 0.0]])
            pixels, in_view = world.rig.camera.project(view.to_optical.apply(points))
            assert in_view.all()
            on_road, beside = (
                green[round(v) - 1 : round(v) + 2, round(u) - 1 : round(u) + 2].mean()
                for u, v in pixels
            )
            assert on_road < 12.0 < beside


def test_the_horizon_divides_sky_from_ground(day: tuple[World, Lens, GroundPicture]) -> None:
    world, lens, ground = day
    canvas = ground.paint(view_at(world, lens, 0.0)).astype(int)
    horizon = lens.centre[1] - lens.focal * np.tan(made.PITCH)
    sky = canvas[: round(horizon) - 40]
    below = canvas[round(horizon) + 40 :]
    assert (sky[..., 0] >= sky[..., 2]).mean() > 0.95
    assert (below[..., 1] > below[..., 0]).mean() > 0.6


@pytest.mark.parametrize('down', [-2.0, 1.5])
def test_a_camera_that_sees_only_sky_or_only_ground_still_gets_a_whole_canvas(
    day: tuple[World, Lens, GroundPicture], down: float
) -> None:
    world, lens, ground = day
    view = view_at(world, lens, 0.0)
    c, s = np.cos(down - made.PITCH), np.sin(down - made.PITCH)
    tilt = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
    object.__setattr__(view, 'to_optical', type(view.to_optical)(
        tilt @ view.to_optical.rotation, tilt @ view.to_optical.translation
    ))  # fmt: skip
    assert ground.paint(view).min() > 0


def test_far_ground_does_not_flicker_from_frame_to_frame(
    day: tuple[World, Lens, GroundPicture],
) -> None:
    world, lens, ground = day
    rows = slice(round(lens.centre[1] - lens.focal * np.tan(made.PITCH)) + 6, None)
    first = ground.paint(view_at(world, lens, 0.0))[rows][:20].astype(float)
    path = made.Hover(np.zeros(3), height=made.HEIGHT + 0.02)
    second = ground.paint(view_at(made.world(path=path), lens, 0.0))[rows][:20].astype(float)
    assert np.abs(first - second).mean() < 3.0


def test_maps_cover_all_the_ground_a_long_flight_sees() -> None:
    world = made.world(path=made.Hover(np.array([30.0, 0.0, 0.0])))
    lens = Lens(world.rig.camera)
    ground = GroundPicture(world, lens)
    for t in (0.0, 4.0):
        below = ground.paint(view_at(world, lens, t))[lens.height // 2 :]
        assert below.min() > 0
        assert below.std() > 3.0


def test_the_atlas_becomes_coarser_by_two_from_map_to_map() -> None:
    atlas = GroundAtlas(made.world(), 410.0)
    assert atlas.scale[:-1] / atlas.scale[1:] == pytest.approx(2.0)
    assert atlas.scale[0] == pytest.approx(1.0 / atlas.finest)

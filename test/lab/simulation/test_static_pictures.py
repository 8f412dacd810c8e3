"""What stands is painted where it stands, and covers what its ids say."""

from __future__ import annotations

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_lab.simulation.building_picture import BuildingPicture
from mmedge_lab.simulation.lamp_picture import LampPicture
from mmedge_lab.simulation.plant_picture import PlantPicture, crown_textures
from mmedge_lab.simulation.view import Lens, view_at
from mmedge_lab.simulation.world import World

LENS = Lens(made.camera())
PAINTERS = {'building': BuildingPicture, 'plant': PlantPicture, 'lamp': LampPicture}


def world_with(what: str, x: float, y: float) -> World:
    if what == 'building':
        return made.world(buildings=(made.building(x, y),))
    if what == 'plant':
        return made.world(plants=(made.plant(x, y),))
    return made.world(lamps=(made.lamp(x, y),))


@pytest.mark.parametrize('what', PAINTERS)
def test_ids_cover_what_is_painted(what: str) -> None:
    world = world_with(what, 12.0, 2.0)
    view = view_at(world, LENS, 0.0)
    (seen,) = PAINTERS[what](world).in_view(view)
    canvas = np.full((LENS.height, LENS.width, 3), (255, 0, 255), np.uint8)
    ids = np.zeros(canvas.shape[:2], np.uint8)
    seen.paint(canvas, view)
    seen.paint_ids(ids, 9)
    painted = (canvas != (255, 0, 255)).any(axis=2)
    covered = ids == 9
    assert covered.sum() > 100
    # Soft edges and a lamp's head are painted a little farther than they hide.
    assert (painted & covered).sum() > 0.97 * covered.sum()
    assert covered.sum() > 0.6 * painted.sum()
    columns = np.flatnonzero(covered.any(axis=0))
    assert seen.standing.left <= columns[0]
    assert seen.standing.right >= columns[-1] - 1


@pytest.mark.parametrize('what', PAINTERS)
@pytest.mark.parametrize('place', [(-12.0, 0.0), (3.0, 40.0)])
def test_what_is_out_of_view_is_left_out(what: str, place: tuple[float, float]) -> None:
    world = world_with(what, *place)
    assert list(PAINTERS[what](world).in_view(view_at(world, LENS, 0.0))) == []


def test_a_building_is_where_the_camera_sees_its_corners() -> None:
    world = world_with('building', 20.0, 0.0)
    view = view_at(world, LENS, 0.0)
    (seen,) = BuildingPicture(world).in_view(view)
    ids = np.zeros((LENS.height, LENS.width), np.uint8)
    seen.paint_ids(ids, 1)
    corners = np.array([[18.0, y, z] for y in (-2.0, 2.0) for z in (0.0, 6.0)])
    pixels, _ = view.canvas_of(corners)
    rows, columns = np.flatnonzero(ids.any(axis=1)), np.flatnonzero(ids.any(axis=0))
    found = (columns[0], rows[0], columns[-1], rows[-1])
    expected = np.clip([*pixels.min(axis=0), *pixels.max(axis=0)], 0, None)
    assert found == pytest.approx(tuple(expected), abs=1.1)


def test_a_wall_that_runs_past_the_camera_is_cut_there_and_still_painted() -> None:
    world = made.world(buildings=(made.building(10.0, 4.0, size=(60.0, 2.0)),))
    view = view_at(world, LENS, 0.0)
    (seen,) = BuildingPicture(world).in_view(view)
    ids = np.zeros((LENS.height, LENS.width), np.uint8)
    seen.paint_ids(ids, 1)
    assert ids[LENS.height // 2, :40].all()
    assert not ids[LENS.height // 2, -100:].any()
    canvas = np.zeros((LENS.height, LENS.width, 3), np.uint8)
    seen.paint(canvas, view)
    assert canvas[LENS.height // 2, :40].min() > 0


def test_a_roof_is_seen_from_above_only() -> None:
    low, high = (made.building(12.0, 0.0, height=h) for h in (1.0, 6.0))
    painter = {h: BuildingPicture(made.world(buildings=(b,))) for h, b in ((1, low), (6, high))}
    view = view_at(made.world(), LENS, 0.0)
    faces = {h: len(next(iter(p.in_view(view)))._seen) for h, p in painter.items()}
    assert faces == {1: 2, 6: 1}


def test_leaves_get_smaller_by_two_and_keep_their_colour() -> None:
    crowns = crown_textures(1, False, False, 2)
    assert [crown.shape[0] for crown in crowns] == [256, 128, 64, 32, 16, 8]
    means = [crown.reshape(-1, 4).mean(axis=0) for crown in crowns]
    assert means[-1] == pytest.approx(means[0], rel=0.03)
    # Premultiplied: no colour where there is no leaf.
    assert (crowns[0][..., :3].max(axis=2) <= crowns[0][..., 3]).all()

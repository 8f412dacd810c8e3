"""Ground that is not flat is the same for movers, pictures and truth."""

from __future__ import annotations

from dataclasses import dataclass, replace

import hand_made_world as made
import numpy as np
import pytest

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.ground_depth import GroundDepth
from mmedge_lab.simulation.terrain import Relief, gradient, grounded, shadow_places
from mmedge_lab.simulation.view import Lens, view_at
from mmedge_ros.core.data_types import FloatArray

NONE, AHEAD = np.zeros(1), np.array([1.0, 0.0])
BANK = Relief(0.0 * AHEAD, 0.1 * AHEAD[None], NONE, NONE, AHEAD, 12.0, -1.4, 2.0)


@dataclass(frozen=True)
class Hillside:
    """Ground that rises by ``grade`` along x, without end."""

    grade: float

    def heights(self, places: FloatArray) -> FloatArray:
        return np.asarray(self.grade * places[..., 0])


def test_ground_of_one_wave_is_as_high_and_steep_as_the_wave() -> None:
    wave = replace(BANK, bank=0.0, amplitudes=np.array([1.5]))
    x = np.linspace(-50.0, 50.0, 21)
    places = np.column_stack([x, 0.1 * x])
    np.testing.assert_allclose(wave.heights(places), 1.5 * np.sin(0.1 * x), atol=1e-12)
    slope = np.column_stack([0.15 * np.cos(0.1 * x), 0.0 * x])
    np.testing.assert_allclose(gradient(wave, places), slope, atol=1e-6)
    assert wave.heights(np.array([90.0, 90.0])) == 0.0


@pytest.mark.parametrize('seed', [1, 2, 3])
def test_the_drone_keeps_off_sloping_ground_on_which_all_that_grows_stands(seed: int) -> None:
    world = build_world('meadow_day_near', seed, 4.0, condition='slope')
    assert world.terrain is not None
    assert all(p.base == world.terrain.heights(p.position) for p in world.plants)
    places = np.array([world.path.state(t).pose.translation for t in (0.0, 2.0, 4.0)])
    assert (places[:, 2] - world.terrain.heights(places[:, :2])).min() > 1.7


def test_a_slope_is_refused_where_the_ground_is_level() -> None:
    with pytest.raises(SimulationError, match='scenario of meadow or park'):
        build_world('street_day_near', 1, 4.0, condition='slope')


def test_a_mover_stands_on_the_slope_with_each_foot_and_climbs_with_it() -> None:
    flat = made.person(1, 8.0, 2.0, velocity=(1.2, 0.5))
    walker = grounded(made.world([flat]), Hillside(0.2)).movers[0]
    state, body = walker.state(1.0), walker.body(1.0)
    np.testing.assert_allclose(state.position, [9.2, 2.5, 1.84])
    np.testing.assert_allclose(state.velocity, [1.2, 0.5, 0.24])
    np.testing.assert_allclose(body.velocities[:, 2], 0.24)
    raised = (body.centres - flat.body(1.0).centres)[:, 2]
    assert raised[0] == pytest.approx(1.84), 'the head is above the middle'
    assert raised[[-3, -1]] == pytest.approx([1.84 - 0.0188, 1.84 + 0.0188])


def test_a_shadow_falls_where_the_ray_meets_the_slope() -> None:
    x, y = shadow_places(Hillside(0.2), np.array([10.0, 3.0, 4.0]), np.array([0.75, 0.0]))
    assert y == 3.0
    assert 4.0 - 0.2 * x == pytest.approx((x - 10.0) / 0.75)


@pytest.mark.parametrize('terrain', [Hillside(0.1), Hillside(-0.1), replace(BANK, width=4.0)])
def test_a_pixel_shows_the_ground_that_projects_to_it(terrain: Hillside | Relief) -> None:
    world = made.park()
    lens = Lens(world.rig.camera)
    view = view_at(world, lens, 0.0)
    pixels = np.random.default_rng(1).uniform((5.0, 260.0), (640.0, 470.0), (400, 2)).astype(int)
    found = GroundDepth(terrain, lens).at(view).depths[pixels[:, 1], pixels[:, 0]][:, None]
    plane = (pixels - lens.centre) / lens.focal
    ends = view.to_optical.inverse().apply(np.column_stack([plane * found, found]))
    ends[:, 2] = terrain.heights(ends[:, :2])
    off = np.abs(view.canvas_of(ends)[0] - pixels).max(axis=1)
    assert np.median(off) < 0.05
    assert off.max() < 1.0


def test_a_bank_hides_the_legs_of_who_is_below_it_in_picture_and_truth() -> None:
    people = made.person(1, 13.3, 0.0), made.person(2, 9.0, 2.0)
    camera = CameraSimulator(grounded(made.park(*people), BANK), effects=False)
    picture, truth = camera.picture(0.0), camera.truth(0.0)
    for person in people:
        person.begin = np.array([-9.0, 0.0, 0.0])
    bare = camera.picture(0.0).image
    below, before = picture.objects
    assert before.visibility > 0.95
    assert below.box is not None
    x0, y0, x1, y1 = (round(side) for side in below.box)
    changed = np.abs(picture.image.astype(int) - bare).max(axis=2) > 20
    painted = changed[y0:y1, x0:x1].any(axis=1)
    # From 3 m up, past the crest at 11 to 12 m, one sees about what is 0.8 m above their feet.
    assert below.visibility == pytest.approx(0.55, abs=0.12)
    assert painted.mean() == pytest.approx(0.55, abs=0.12)
    assert truth == picture.objects

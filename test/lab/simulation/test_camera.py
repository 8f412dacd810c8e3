"""Pictures agree with the truth that goes with them."""

from __future__ import annotations

from functools import cache

import hand_made_scenery as made
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.world import Mover


@cache
def bare_picture(barrel: float) -> NDArray[np.int64]:
    world = made.world(model=made.camera(barrel))
    return CameraSimulator(world, effects=False).picture(0.0).image.astype(int)


def drawn_box(image: NDArray[np.uint8], bare: NDArray[np.int64]) -> tuple[int, ...] | None:
    """The box of the pixels that differ between two pictures."""
    # A pixel of the edge is covered in part, and its neighbours share in it by interpolation.
    changed = np.abs(image - bare).max(axis=2) > 20
    if not changed.any():
        return None
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


@cache
def camera_on(label: str, barrel: float) -> tuple[CameraSimulator, made.StraightMover]:
    mover = made.car(1, 9.0, 0.0) if label == 'car' else made.person(1, 9.0, 0.0)
    return CameraSimulator(made.world(mover, model=made.camera(barrel)), effects=False), mover


@settings(deadline=None, max_examples=25)
@given(
    x=st.floats(4.5, 45.0), bearing=st.floats(-0.55, 0.55), heading=st.floats(0.0, 6.2),
    barrel=st.sampled_from([-0.1, 0.0]), label=st.sampled_from(['person', 'person', 'car']),
)  # fmt: skip
def test_a_box_is_where_the_mover_changes_the_picture(
    x: float, bearing: float, heading: float, barrel: float, label: str
) -> None:
    camera, mover = camera_on(label, barrel)
    x += 4.0 * (label == 'car')
    mover.begin, mover.heading = np.array([x, bearing * x, 0.0]), heading
    picture = camera.picture(0.0)
    truth = picture.objects[0].box
    assert truth is not None
    assert drawn_box(picture.image, bare_picture(barrel)) == pytest.approx(tuple(truth), abs=1.5)


def test_a_mover_on_the_edge_of_the_picture_has_a_box_cut_there_and_is_partly_visible() -> None:
    (seen,) = CameraSimulator(made.world(made.person(1, 5.0, 4.3))).truth(0.0)
    assert seen.box is not None
    assert seen.box.x0 == 0.0
    assert 0.1 < seen.visibility < 0.9


@pytest.mark.parametrize('place', [(-5.0, 0.0), (6.0, 30.0), (0.1, 0.0)])
def test_a_mover_out_of_view_has_no_box(place: tuple[float, float]) -> None:
    (seen,) = CameraSimulator(made.world(made.person(1, *place))).truth(0.0)
    assert seen.box is None
    assert seen.visibility == 0.0


def test_every_mover_is_told_of_in_order_with_its_label() -> None:
    movers: tuple[Mover, ...] = (made.person(4, 9, 0), made.car(2, 12, 3), made.person(7, -5, 0))
    seen = CameraSimulator(made.world(*movers)).truth(0.0)
    assert [(s.id, s.label) for s in seen] == [(4, 'person'), (2, 'car'), (7, 'person')]


def test_one_who_stands_free_is_wholly_visible() -> None:
    (seen,) = CameraSimulator(made.world(made.person(1, 10, 0))).truth(0.0)
    assert seen.visibility == pytest.approx(1.0, abs=0.02)


def test_one_behind_another_is_hidden_and_keeps_the_whole_box() -> None:
    alone = CameraSimulator(made.world(made.person(1, 12, 0))).truth(0.0)[0]
    both = CameraSimulator(made.world(made.person(1, 12, 0), made.person(2, 8, 0))).truth(0.0)
    assert both[0].visibility < 0.6
    assert both[0].box == alone.box
    assert both[1].visibility == pytest.approx(1.0, abs=0.02)


def test_a_building_hides_who_is_behind_it_and_not_who_is_before_it() -> None:
    house = made.building(12.0, 0.0, size=(4.0, 8.0))
    before, behind = made.person(1, 9.0, 0.0), made.person(2, 15.0, 0.5)
    seen = CameraSimulator(made.world(before, behind, buildings=(house,))).truth(0.0)
    assert seen[0].visibility == pytest.approx(1.0, abs=0.02)
    assert seen[1].visibility == 0.0


def test_a_low_wall_hides_the_legs_only() -> None:
    wall = made.building(12.0, 0.0, size=(0.3, 8.0), height=1.0)
    (seen,) = CameraSimulator(made.world(made.person(1, 14.0, 0.0), buildings=(wall,))).truth(0.0)
    assert 0.3 < seen.visibility < 0.8


def test_a_tree_hides_part_of_who_is_behind_it() -> None:
    world = made.world(made.person(1, 14.0, 0.0), plants=(made.plant(10.0, 0.0, trunk=0.0),))
    (seen,) = CameraSimulator(world).truth(0.0)
    assert seen.visibility < 0.7


def test_what_hides_a_mover_in_the_truth_hides_it_in_the_picture() -> None:
    house = (made.building(12.0, 0.0, size=(4.0, 8.0)),)
    images = [
        CameraSimulator(made.world(*movers, buildings=house), effects=False).picture(0.0).image
        for movers in ((), (made.person(2, 15.0, 0.5),))
    ]
    assert np.array_equal(*images)


def test_the_same_instant_gives_the_same_bytes_whatever_was_asked_before() -> None:
    world = made.world(made.person(1, 9, 0, velocity=(0.5, 1.0)), lit='night')
    first, second = CameraSimulator(world), CameraSimulator(world)
    expected = first.picture(1.25)
    for t in (0.0, 3.0, 0.7):
        second.picture(t)
    again = second.picture(1.25)
    assert np.array_equal(expected.image, again.image)
    assert expected.objects == again.objects == second.truth(1.25)


def test_two_instants_differ_in_their_noise() -> None:
    camera = CameraSimulator(made.world(lit='night'))
    assert not np.array_equal(camera.picture(0.0).image, camera.picture(1 / 30).image)


def test_pictures_are_as_the_camera_model_says() -> None:
    image = CameraSimulator(made.world()).picture(0.0).image
    assert image.shape == (480, 640, 3)
    assert image.dtype == np.uint8


def test_night_is_dark_and_a_lit_lamp_brightens_the_ground_and_who_stands_there() -> None:
    someone = made.person(1, 9.0, 0.0)
    luma = {}
    for name, lamps in (('dark', ()), ('lit', (made.lamp(10.0, 2.0, lit=True),))):
        world = made.world(someone, lit='night', lamps=lamps)
        camera = CameraSimulator(world, effects=False)
        picture = camera.picture(0.0)
        box = picture.objects[0].box
        assert box is not None
        x, y = round(0.5 * (box.x0 + box.x1)), round(box.y0 + 0.35 * box.height)
        luma[name] = (
            picture.image[y - 4 : y + 5, x - 4 : x + 5].mean(),
            picture.image[round(box.y1) + 3 : round(box.y1) + 20, x - 40 : x - 20].mean(),
        )
    day = CameraSimulator(made.world(someone)).picture(0.0).image.mean()
    night = CameraSimulator(made.world(someone, lit='night')).picture(0.0).image.mean()
    assert night < 0.4 * day
    assert luma['lit'][0] > 1.5 * luma['dark'][0]
    assert luma['lit'][1] > 1.5 * luma['dark'][1]


def test_fog_takes_the_contrast_of_who_is_far_away() -> None:
    images = {}
    for lit in ('day', 'fog'):
        mover = made.person(1, 6.0, 0.0)
        camera = CameraSimulator(made.world(mover, lit=lit), effects=False)
        for x in (6.0, 40.0, -9.0):
            mover.begin = np.array([x, 0.0, 0.0])
            images[lit, x] = camera.picture(0.0).image.astype(int)
    near, far, bare = ([images[lit, x] for lit in ('day', 'fog')] for x in (6.0, 40.0, -9.0))
    day, fog = ([float(np.abs(seen[i] - bare[i]).max()) for seen in (near, far)] for i in (0, 1))
    assert fog[1] < 0.25 * day[1]
    assert fog[0] > 2.0 * fog[1]


def test_movers_cast_shadows_away_from_the_sun() -> None:
    world, empty = made.world(made.person(1, 9.0, 0.0)), made.world()
    shadowed, plain = (CameraSimulator(w).picture(0.0).image.astype(int) for w in (world, empty))
    camera = CameraSimulator(world)
    box = camera.truth(0.0)[0].box
    assert box is not None
    darker = (plain - shadowed).mean(axis=2) > 25
    ground = slice(round(box.y1) - 25, round(box.y1) + 10)
    # The sun stands behind the drone and to the left, so shadows fall to the right.
    right = darker[ground, round(box.x1) : round(box.x1) + 40].sum()
    left = darker[ground, round(box.x0) - 40 : round(box.x0)].sum()
    assert right > 40
    assert left < 0.3 * right


def test_more_movers_than_can_be_told_apart_are_refused() -> None:
    crowd = [made.person(i, 10.0, 0.0) for i in range(255)]
    with pytest.raises(SimulationError, match='255 movers'):
        CameraSimulator(made.world(*crowd))

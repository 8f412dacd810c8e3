"""Pictures agree with the truth that goes with them."""

from __future__ import annotations

from functools import cache

import hand_made_world as made
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmedge_lab.simulation.camera import CameraSimulator


@cache
def bare_picture(barrel: float) -> NDArray[np.int64]:
    world = made.park(model=made.camera(barrel))
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
    return CameraSimulator(made.park(mover, model=made.camera(barrel)), effects=False), mover


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
    (seen,) = CameraSimulator(made.park(made.person(1, 5.0, 4.3))).truth(0.0)
    assert seen.box is not None
    assert seen.box.x0 == 0.0
    assert 0.1 < seen.visibility < 0.9


def test_one_behind_another_is_hidden_and_keeps_the_whole_box() -> None:
    alone = CameraSimulator(made.park(made.person(1, 12, 0))).truth(0.0)[0]
    both = CameraSimulator(made.park(made.person(1, 12, 0), made.person(2, 8, 0))).truth(0.0)
    assert both[0].visibility < 0.6
    assert both[0].box == alone.box
    assert both[1].visibility == pytest.approx(1.0, abs=0.02)


def test_a_building_hides_who_is_behind_it_and_not_who_is_before_it() -> None:
    house = made.house(10.0, 0.0, width=8.0, depth=4.0, height=6.0)
    before, behind = made.person(1, 9.0, 0.0), made.person(2, 15.0, 0.5)
    seen = CameraSimulator(made.park(before, behind, buildings=(house,))).truth(0.0)
    assert seen[0].visibility == pytest.approx(1.0, abs=0.02)
    assert seen[1].visibility == 0.0


def test_what_hides_a_mover_in_the_truth_hides_it_in_the_picture() -> None:
    house = (made.house(10.0, 0.0, width=8.0, depth=4.0, height=6.0),)
    images = [
        CameraSimulator(made.park(*movers, buildings=house), effects=False).picture(0.0).image
        for movers in ((), (made.person(2, 15.0, 0.5),))
    ]
    assert np.array_equal(*images)


def test_the_same_instant_gives_the_same_bytes_whatever_was_asked_before() -> None:
    world = made.park(made.person(1, 9, 0, velocity=(0.5, 1.0)), lit='night')
    first, second = CameraSimulator(world), CameraSimulator(world)
    expected = first.picture(1.25)
    for t in (0.0, 3.0, 0.7):
        second.picture(t)
    again = second.picture(1.25)
    assert np.array_equal(expected.image, again.image)
    assert expected.objects == again.objects == second.truth(1.25)

"""Outlines enclose their bodies and count what they cover."""

from __future__ import annotations

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_lab.simulation.outline import outlines_of, paint_ids
from mmedge_lab.simulation.view import Lens, View, view_at

WORLD = made.world()


@pytest.fixture(scope='module')
def view() -> View:
    return view_at(WORLD, Lens(WORLD.rig.camera), 0.0)


def test_the_box_is_that_of_the_projected_sphere_rims(view: View) -> None:
    ball = made.StraightMover(
        1, 'person', np.array([8.0, 0.0, 0.0]), np.zeros(3), 0.0,
        (('head', (1, 2, 3), ((0.0, 0.0, 1.0, 0.5),)),),
    )  # fmt: skip
    (outline,) = outlines_of([ball], 0.0, view)
    turns = np.linspace(0.0, 2.0 * np.pi, 400)
    sphere = np.array(
        [
            [8.0 + 0.5 * np.sin(e) * np.cos(a), 0.5 * np.sin(e) * np.sin(a), 1.0 + 0.5 * np.cos(e)]
            for a in turns
            for e in turns[:200]
        ]
    )
    pixels, _ = WORLD.rig.camera.project(view.to_optical.apply(sphere))
    assert outline.box is not None
    expected = [*pixels.min(axis=0) + 0.5, *pixels.max(axis=0) + 0.5]
    assert tuple(outline.box) == pytest.approx(expected, abs=0.3)


def test_parts_are_ordered_from_far_to_near(view: View) -> None:
    (outline,) = outlines_of([made.person(1, 8.0, 0.0, heading=np.pi / 2)], 0.0, view)
    names = [outline.body.names[part] for part in outline.parts]
    # Who walks to the left of the picture turns the left side to the camera.
    assert names.index('left_arm') > names.index('torso')
    assert names.index('right_arm') < names.index('torso')


def test_the_wheels_on_the_far_side_of_a_car_are_behind_its_body(view: View) -> None:
    (outline,) = outlines_of([made.car(1, 9.0, 0.0, heading=np.pi / 2)], 0.0, view)
    near, far = (
        next(
            i for i, part in enumerate(outline.parts)
            if outline.body.names[part] == 'wheel'
            and (outline.body.centres[outline.body.first[part], 0] < 9.0) == is_near
        )
        for is_near in (True, False)
    )  # fmt: skip
    body = [outline.body.names[part] for part in outline.parts].index('body')
    assert far < body < near


def test_the_area_of_a_mover_counts_what_is_outside_of_the_canvas(view: View) -> None:
    ids = np.zeros((view.lens.height, view.lens.width), np.uint8)
    (inside,) = outlines_of([made.person(1, 8.0, 0.0)], 0.0, view)
    (across,) = outlines_of([made.person(2, 8.0, 7.0)], 0.0, view)
    whole = paint_ids(ids, inside, 1)
    assert whole == (ids == 1).sum()
    cut = paint_ids(ids, across, 2)
    assert 0 < (ids == 2).sum() < 0.9 * cut


def test_a_mover_so_near_that_it_fills_the_sky_is_measured_on_a_coarser_raster(
    view: View,
) -> None:
    ids = np.zeros((view.lens.height, view.lens.width), np.uint8)
    near = made.person(1, 0.5, 0.0)
    near.begin = np.array([0.5, 0.0, 2.0])
    (outline,) = outlines_of([near], 0.0, view)
    area = paint_ids(ids, outline, 1)
    assert (ids == 1).sum() > 10_000
    assert area >= 0.95 * (ids == 1).sum()


def test_movers_behind_the_camera_have_no_outline(view: View) -> None:
    movers = [made.person(1, -8.0, 0.0), made.person(2, -0.8, 0.0), made.person(3, 8.0, 0.0)]
    assert [o.mover.id for o in outlines_of(movers, 0.0, view)] == [3]
    assert outlines_of([], 0.0, view) == []

"""Things smear as they move over the picture, and stay where they are."""

from __future__ import annotations

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_ros.lab.simulation.camera import CameraSimulator
from mmedge_ros.lab.simulation.motion_blur import camera_motion, own_motion, smeared
from mmedge_ros.lab.simulation.view import Lens, view_at


def test_motion_over_the_canvas_is_that_of_a_point_ahead() -> None:
    world = made.world(path=made.Hover(np.array([0.5, 1.0, 0.2]), turn=0.4))
    lens = Lens(world.rig.camera)
    view = view_at(world, lens, 0.0)
    distance = 12.0
    point = view.position + view.to_optical.rotation.T @ np.array([0.0, 0.0, distance])
    step = 1e-4
    before, after = (view_at(world, lens, t).canvas_of(point[None])[0][0] for t in (-step, step))
    expected = (after - before) / (2.0 * step)
    assert camera_motion(view, world.path.state(0.0), distance) == pytest.approx(
        expected, rel=1e-3
    )


def test_the_own_motion_of_something_is_that_of_its_place_on_the_canvas() -> None:
    world = made.world()
    view = view_at(world, Lens(world.rig.camera), 0.0)
    place, velocity, step = np.array([9.0, 2.0, 0.0]), np.array([1.5, -3.0, 0.0]), 1e-4
    before, after = (view.canvas_of((place + s * velocity)[None])[0][0] for s in (-step, step))
    expected = (after - before) / (2.0 * step)
    assert own_motion(view, place, velocity) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize('smear', [(0.0, 9.0), (7.0, -4.0), (200.0, 0.0)])
def test_a_smeared_dot_keeps_its_light_and_its_middle(smear: tuple[float, float]) -> None:
    picture = np.zeros((81, 81, 3), np.uint8)
    picture[39:42, 39:42] = 255
    blurred = smeared(picture, np.array(smear))[..., 0].astype(float)
    rows, columns = np.mgrid[:81, :81]
    assert blurred.sum() == pytest.approx(9 * 255.0, rel=0.1)
    assert (blurred * columns).sum() / blurred.sum() == pytest.approx(40.0, abs=0.1)
    assert (blurred * rows).sum() / blurred.sum() == pytest.approx(40.0, abs=0.1)


def test_next_to_no_motion_leaves_a_picture_as_it_is() -> None:
    picture = np.zeros((9, 9, 3), np.uint8)
    assert smeared(picture, np.array([0.3, 0.2])) is picture


def test_who_runs_across_the_picture_at_night_is_blurred_and_in_place() -> None:
    bare = CameraSimulator(made.world(lit='night'), effects=False).picture(0.0).image.astype(int)
    middles, widths = [], []
    for speed in (0.0, 12.0):
        runner = made.person(1, 7.0, 0.0, velocity=(0.0, speed))
        camera = CameraSimulator(made.world(runner, lit='night'), effects=False)
        change = np.abs(camera.picture(0.0).image - bare).sum(axis=(0, 2))
        columns = np.arange(len(change))
        middles.append((change * columns).sum() / change.sum())
        widths.append(np.sqrt((change * (columns - middles[-1]) ** 2).sum() / change.sum()))
    assert middles[1] == pytest.approx(middles[0], abs=0.7)
    assert widths[1] > widths[0] + 0.8

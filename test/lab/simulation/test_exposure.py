"""Things smear as they move over the picture, and stay where they are."""

from __future__ import annotations

from dataclasses import replace

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_lab.simulation.camera import CameraSimulator
from mmedge_lab.simulation.exposure import PictureNoise, camera_motion, own_motion, smeared
from mmedge_lab.simulation.view import Lens, view_at


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


@pytest.mark.parametrize('turn', [1.5, -0.8])
def test_motion_blur_smears_a_dot_but_leaves_its_middle(turn: float) -> None:
    path = made.Hover(np.zeros(3), turn=turn)
    world = made.world(lit='night', path=path)
    lens = Lens(world.rig.camera)
    canvas = np.zeros((lens.height, lens.width, 3), np.uint8)
    canvas[250:253, 300:303] = 255
    view, drone = view_at(world, lens, 0.0), world.path.state(0.0)
    blurred = PictureNoise(world).blur(canvas, view, drone, 10.0)[..., 0].astype(float)
    rows, columns = np.mgrid[: lens.height, : lens.width]
    middle = [(blurred * grid).sum() / blurred.sum() for grid in (columns, rows)]
    assert middle == pytest.approx([301.0, 251.0], abs=0.15)
    assert (blurred > 5).any(axis=0).sum() > 3 + 0.5 * abs(turn) * 0.02 * lens.focal


def test_a_still_drone_blurs_nothing() -> None:
    world = made.world(lit='night')
    lens = Lens(world.rig.camera)
    canvas = np.random.default_rng(0).integers(0, 255, (lens.height, lens.width, 3), np.uint8)
    noise = PictureNoise(world)
    blurred = noise.blur(canvas, view_at(world, lens, 0.0), world.path.state(0.0), 10.0)
    assert np.array_equal(blurred, canvas)


@pytest.mark.parametrize('level', [1.5, 6.0])
def test_a_dark_picture_is_as_noisy_as_the_light_says(level: float) -> None:
    world = made.world()
    world = replace(world, light=replace(world.light, noise=level))
    grey = np.full((480, 640, 3), 100, np.uint8)
    noise = PictureNoise(world)
    deviation = noise.expose(grey, 0.5)[220:260, 280:360].astype(float).std()
    assert deviation == pytest.approx(np.hypot(level, 1.0), rel=0.15)


def test_noise_belongs_to_the_instant_and_the_seed() -> None:
    grey = np.full((480, 640, 3), 100, np.uint8)
    noise, other = PictureNoise(made.world(seed=1)), PictureNoise(made.world(seed=2))
    assert np.array_equal(noise.expose(grey, 0.5), noise.expose(grey, 0.5))
    assert not np.array_equal(noise.expose(grey, 0.5), noise.expose(grey, 0.6))
    assert not np.array_equal(noise.expose(grey, 0.5), other.expose(grey, 0.5))


def test_corners_are_darker_than_the_middle() -> None:
    grey = np.full((480, 640, 3), 200, np.uint8)
    exposed = PictureNoise(made.world()).expose(grey, 0.0).astype(float)
    assert exposed[:20, :20].mean() < 0.95 * exposed[230:250, 310:330].mean()

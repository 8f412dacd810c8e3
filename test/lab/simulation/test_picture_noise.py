"""Blur keeps things where they are, and noise is as strong as the light says."""

from __future__ import annotations

from dataclasses import replace

import hand_made_scenery as made
import numpy as np
import pytest

from mmedge_ros.lab.simulation.picture_noise import PictureNoise
from mmedge_ros.lab.simulation.view import Lens, view_at


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

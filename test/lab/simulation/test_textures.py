"""Tiles repeat without a seam and look like themselves."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.simulation.textures import (
    TILE,
    lattice_noise,
    noise_tile,
    surface_tile,
    wall_texture,
)


@pytest.mark.parametrize(('coarse', 'fine'), [(200.0, 2.0), (20.0, 1.5), (512.0, 40.0)])
def test_noise_repeats_without_a_seam(coarse: float, fine: float) -> None:
    noise = noise_tile(np.random.default_rng(1), 512, 1.0, coarse, fine)
    assert noise.shape == (512, 512)
    assert noise.mean() == pytest.approx(0.0, abs=0.02)
    assert noise.std() == pytest.approx(1.0, abs=0.1)
    inside = np.abs(np.diff(noise, axis=0)).mean()
    assert 0.0 < np.abs(noise[0] - noise[-1]).mean() < 1.6 * inside


@pytest.mark.parametrize('surface', ['grass', 'asphalt', 'gravel', 'paving'])
def test_every_surface_has_a_tile(surface: str) -> None:
    tile = surface_tile(surface, 0.04, np.random.default_rng(2))
    assert tile.shape == (TILE, TILE, 3)
    assert 40 < tile.mean() < 200
    assert tile.std() > 3


def test_lattice_noise_is_anchored_in_the_world() -> None:
    lattice = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float32)
    whole = lattice_noise(lattice, 5.0, np.array([-10.0, 4.0]), 0.25, (80, 60))
    part = lattice_noise(lattice, 5.0, np.array([-10.0 + 5.0, 4.0 + 2.5]), 0.25, (20, 20))
    assert part == pytest.approx(whole[10:30, 20:40], abs=0.05)


def test_high_walls_have_windows_that_may_shine_and_low_ones_do_not() -> None:
    random = np.random.default_rng(4)
    wall, glow = wall_texture(10.0, 7.0, (120, 140, 165), 1.0, random)
    scale = 24.0  # pixels per metre
    assert wall.shape == (round(7.0 * scale), round(10.0 * scale), 3)
    assert 0.05 < (glow > 0).mean() < 0.6
    low, dark = wall_texture(10.0, 1.2, (120, 140, 165), 1.0, random)
    assert not dark.any()
    assert low.std() < wall.std()

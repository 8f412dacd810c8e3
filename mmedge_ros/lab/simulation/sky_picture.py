"""The sky and what stands along the horizon: clouds, far woods, far roofs."""

from __future__ import annotations

import math

import cv2
import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.light import air_colour
from mmedge_ros.lab.simulation.textures import Floats, Image, noise_tile
from mmedge_ros.lab.simulation.view import View
from mmedge_ros.lab.simulation.world import World

# Panorama: pixels per radian, and elevations it covers, rad.
_SCALE = 330.0
_LOWEST, _HIGHEST = -0.06, 1.25
_HALF_FIELD = 1.2
# The far wood reaches down to here; above, the panorama hides the ground's far end.
_FOOT = -0.006
_STEP = 16


class Sky:
    """One world's panorama, lit, and how it comes onto a canvas."""

    def __init__(self, world: World) -> None:
        random = np.random.default_rng((world.seed, world.ground.seed & 0x7FFFFFFF, 2))
        once = _panorama(world, random)
        pad = math.ceil(_HALF_FIELD * _SCALE)
        self._panorama: Image = np.concatenate([once[:, -pad:], once, once[:, :pad]], axis=1)
        self._pad = pad

    def paint(self, canvas: Image, view: View, upward: Floats) -> None:
        """Paint the panorama where a canvas looks above the horizon.

        :param upward: (H, 2), how far up the rays of each row's ends go for a depth of 1
        """
        above = (upward > _FOOT * 1.6).any(axis=1)
        rows_above = np.flatnonzero(above)
        if not len(rows_above):
            return
        bottom = int(rows_above[-1]) + 1
        columns, rows = self._places(view, bottom)
        sky = cv2.remap(
            self._panorama, columns, rows, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        mask = (rows < np.float32((_HIGHEST - _FOOT) * _SCALE)).view(np.uint8)
        cv2.copyTo(sky, mask, canvas[:bottom])

    def _places(self, view: View, bottom: int) -> tuple[Floats, Floats]:
        """Return panorama columns and rows (bottom, W) of canvas pixels.

        Found on a grid and interpolated: angles change smoothly over a picture.
        """
        lens = view.lens
        counts = (math.ceil(bottom / _STEP) + 2, math.ceil(lens.width / _STEP) + 2)
        u = (np.arange(counts[1]) - 0.5) * _STEP - 0.5
        v = (np.arange(counts[0]) - 0.5) * _STEP - 0.5
        x, y = np.meshgrid((u - lens.centre[0]) / lens.focal, (v - lens.centre[1]) / lens.focal)
        rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ view.to_optical.rotation
        ahead = view.to_optical.rotation[2]
        bearing = math.atan2(ahead[1], ahead[0])
        turned = np.arctan2(
            rays[..., 1] * math.cos(bearing) - rays[..., 0] * math.sin(bearing),
            rays[..., 0] * math.cos(bearing) + rays[..., 1] * math.sin(bearing),
        )
        elevation = np.arctan2(rays[..., 2], np.hypot(rays[..., 0], rays[..., 1]))
        middle = self._pad + (bearing % (2.0 * math.pi)) * _SCALE
        column = middle + np.clip(turned, -_HALF_FIELD, _HALF_FIELD) * _SCALE
        row = (_HIGHEST - elevation) * _SCALE
        grid = np.stack([column, row], axis=-1).astype(np.float32)
        size = (counts[1] * _STEP, counts[0] * _STEP)
        fine = cv2.resize(grid, size, interpolation=cv2.INTER_LINEAR)
        fine = fine[_STEP : _STEP + bottom, _STEP : _STEP + lens.width]
        return np.ascontiguousarray(fine[..., 0]), np.ascontiguousarray(fine[..., 1])


def _panorama(world: World, random: np.random.Generator) -> Image:
    width = round(2.0 * math.pi * _SCALE)
    height = round((_HIGHEST - _LOWEST) * _SCALE)
    elevation = np.asarray(_HIGHEST - (np.arange(height) + 0.5) / _SCALE, np.float64)
    horizon, zenith = (np.array(c, np.float64) for c in world.light.sky)
    share = np.clip(elevation / 0.9, 0.0, 1.0) ** 0.55
    sky = horizon + share[:, None, None] * (zenith - horizon)
    picture = np.repeat(sky, width, axis=1)
    _add_clouds(picture, elevation, world, random)
    _add_far_rows(picture, elevation, world, random)
    return np.asarray(np.clip(np.rint(picture), 0, 255), np.uint8)


def _add_clouds(
    picture: FloatArray, elevation: FloatArray, world: World, random: np.random.Generator
) -> None:
    if math.isfinite(world.light.fog_visibility):
        return
    noise = noise_tile(random, 1024, 1.55, 420, 3)
    # Clouds lie on a plane, so they crowd towards the horizon.
    rows = np.clip(180.0 / np.maximum(elevation + 0.12, 0.05), 0.0, 4000.0).astype(int) % 1024
    width = picture.shape[1]
    columns = (np.arange(width) * 1024) // width
    cover = noise[np.ix_(rows, columns)]
    amount = np.clip((cover - random.uniform(0.0, 1.1)) * 0.7, 0.0, 1.0)
    amount *= np.clip(elevation / 0.15, 0.0, 1.0)[:, None] * 0.8
    bright = np.clip(world.light.sky[0] * 1.12 + 6.0, 0, 250)
    picture += (bright - picture) * amount[..., None]


def _add_far_rows(
    picture: FloatArray, elevation: FloatArray, world: World, random: np.random.Generator
) -> None:
    """Paint woods, and roofs where there is a town, nearer rows lower and less pale."""
    light, width = world.light, picture.shape[1]
    level = (light.ambient + 0.5 * light.sun) * np.array(light.tint)
    fog = math.isfinite(light.fog_visibility)
    town = world.surroundings in ('street', 'yard')
    for distance, top in ((900.0, 0.035), (420.0, 0.028), (250.0, 0.034)):
        clear = 0.0 if fog else math.exp(-distance / 900.0)
        wood = random.uniform(0.8, 1.1) * np.array([52.0, 74.0, 62.0])
        colour = wood * level * clear + air_colour(light) * (1.0 - clear)
        ridge = top * (0.55 + 0.16 * _ring_noise(random, width, 1.3, width))
        ridge = np.maximum(ridge + 0.0028 * _ring_noise(random, width, 0.5, 60.0), 0.003)
        if town:
            ridge = np.maximum(ridge, _roofs(random, width, 1.6 * top))
        cover = np.clip((ridge[None] - elevation[:, None]) * _SCALE + 0.5, 0.0, 1.0)
        texture = 1.0 + 0.1 * clear * noise_tile(random, 256, 0.7, 40)
        rows, columns = np.arange(len(elevation)) % 256, np.arange(width) % 256
        painted = colour * texture[np.ix_(rows, columns)][..., None]
        near = slice(np.searchsorted(-elevation, -0.2), None)
        picture[near] += (painted[near] - picture[near]) * cover[near, :, None]


def _ring_noise(
    random: np.random.Generator, width: int, slope: float, coarse: float
) -> FloatArray:
    spectrum = np.fft.rfft(random.standard_normal(width))
    frequency = np.fft.rfftfreq(width)
    with np.errstate(divide='ignore'):
        weight = np.where(frequency >= 1.0 / coarse, frequency**-slope, 0.0)
    weight[0] = 0.0
    noise = np.fft.irfft(spectrum * weight, n=width)
    return np.asarray(noise / max(float(noise.std()), 1e-9), np.float64)


def _roofs(random: np.random.Generator, width: int, top: float) -> FloatArray:
    ridge = np.zeros(width)
    at = 0
    while at < width:
        wide = int(random.integers(8, 40))
        if random.random() < 0.45:
            ridge[at : at + wide] = top * random.uniform(0.4, 1.0)
        at += wide
    return ridge

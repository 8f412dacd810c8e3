"""Paints what is always there: the ground up to the horizon, and the sky behind it.

How coarse a map of the ground is used follows from how large a patch each pixel sees, jittered
a little from pixel to pixel so that no edges show between the maps.
"""

from __future__ import annotations

import math

import cv2
import numpy as np

from mmedge_lab.simulation.ground_atlas import LEVELS, GroundAtlas
from mmedge_lab.simulation.light import air_colour, extinction
from mmedge_lab.simulation.textures import Floats, Image, noise_tile
from mmedge_lab.simulation.view import Lens, View
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import FloatArray

# The index of a map is kept as a byte: so many steps to a map, and so many maps below 0.
_STEPS = 16.0
_BELOW = 4.0
# How far a pixel's choice of map strays.
_JITTER = 0.35
# Of the light, what air has to take before it is worth reckoning.
_SHOWS = 0.012
# Detail finer than the finest map: m per pixel, pixels, and contrast by surface.
_DETAIL = 0.008
_DETAIL_SIZE = 512
_CONTRAST = {'grass': 0.2, 'asphalt': 0.09, 'gravel': 0.16, 'paving': 0.06}
# Detail comes in so many strengths, the last of them none.
_STRENGTHS = 6
_LOWEST_EYE = 0.05
_HILLS = 150.0  # m: nearer ground may stand out against the sky


class GroundPicture:
    """Paints ground and sky of one world onto canvases of one lens."""

    def __init__(self, world: World, lens: Lens) -> None:
        random = np.random.default_rng((world.seed, world.ground.seed & 0x7FFFFFFF, 1))
        self._atlas = GroundAtlas(world, lens.focal)
        self._sky = Sky(world)
        shape = (lens.height, lens.width)
        self._columns = np.arange(lens.width, dtype=np.float32)[None]
        self._rows = np.arange(lens.height, dtype=np.float32)[:, None]
        self._jitter = random.uniform(-_JITTER, _JITTER, shape).astype(np.float32)
        # Kept from picture to picture: to get fresh memory takes as long as to fill it.
        self._canvas: Image = np.empty((*shape, 3), np.uint8)
        self._work = [np.empty(shape, np.float32) for _ in range(6)]
        self._index: Image = np.empty(shape, np.uint8)
        self._extinction = extinction(world.light)
        hidden = np.arange(255, -1, -1) / 255.0
        self._scattered = [
            np.rint(hidden * level).astype(np.uint8) for level in air_colour(world.light)
        ]
        level = np.arange(256) / _STEPS - _BELOW
        self._map_of = np.clip(np.rint(level), 0, LEVELS - 1).astype(int)
        self._scale_of = self._atlas.scale[self._map_of]
        self._detail = _details(_CONTRAST[world.ground.surface], random)
        # Detail fades out where its own pixels become smaller than the picture's.
        fade = level + math.log2(self._atlas.finest / _DETAIL)
        strength = np.clip(np.rint((fade + 0.5) * 2.0), 0, _STRENGTHS - 1)
        self._detail_row_of = (strength * _DETAIL_SIZE).astype(np.float32)

    def paint(self, view: View, depths: Floats | None = None) -> Image:
        """Return a canvas with ground and sky; it is valid until the next one is painted.

        :param depths: (H, W) m of ground that is not flat
        """
        lens = view.lens
        to_world = view.to_optical.rotation.T / lens.focal
        first = -to_world @ np.append(lens.centre, -lens.focal)
        # World directions of pixels whose depth is 1, as sums over columns and rows.
        for i, direction in enumerate(self._work[:3]):
            along = np.float32(to_world[i, 0]) * self._columns
            np.add(
                along, np.float32(to_world[i, 1]) * self._rows + np.float32(first[i]), direction
            )
        upward = self._work[2]
        # No row is ground whose both ends look up: the horizon is a straight line.
        ends, hills = upward[:, [0, -1]], None if depths is None else depths < _HILLS
        ground = (ends < 0.0).any(axis=1)
        if hills is not None:
            ground |= hills.any(axis=1)
        if ground.any():
            self._paint_ground(int(np.argmax(ground)), view, depths)
        before = self._canvas if hills is None else self._canvas.copy()
        self._sky.paint(self._canvas, view, ends)
        if hills is not None:
            cv2.copyTo(before, hills.view(np.uint8), self._canvas)
        return self._canvas

    def _paint_ground(self, top: int, view: View, depths: Floats | None) -> None:
        """Paint the rows from ``top`` on, whose directions are computed."""
        atlas, height = self._atlas, max(float(view.position[2]), _LOWEST_EYE)
        canvas, index = self._canvas[top:], self._index[top:]
        x, y, z, depth, level, spare = (work[top:] for work in self._work)
        # Towards the horizon the ground goes on as it is at the end of the last map.
        steep = np.negative(z, spare)
        if depths is not None:
            np.divide(np.float32(height), depths[top:], out=steep)
        np.maximum(steep, np.float32(height / atlas.far), out=steep)
        np.divide(np.float32(height), steep, depth)
        x *= depth
        y *= depth
        # log2 of the patch's mean width h / f * steep^-1.5 over the finest resolution.
        offset = math.log2(height / (view.lens.focal * atlas.finest)) + _BELOW
        cv2.log(steep, level)
        cv2.scaleAdd(level, -1.5 / math.log(2.0), self._jitter[top:], level)
        np.maximum(level, np.float32(-offset), out=level)
        cv2.convertScaleAbs(level, index, _STEPS, _STEPS * offset)
        # The camera's own place goes with each map's.
        own = view.position[:2, None] * self._scale_of
        begin = (atlas.column[self._map_of] + own[0], atlas.row[self._map_of] + own[1])
        scale = cv2.LUT(index, self._scale_of)
        places = []
        for metres, table, into in zip((x, y), begin, (level, spare), strict=True):
            np.multiply(metres, scale, into)
            into += cv2.LUT(index, table.astype(np.float32))
            places.append(into)
        cv2.remap(atlas.image, places[0], places[1], cv2.INTER_LINEAR, canvas)
        self._add_detail(canvas, x, y, index, view)
        self._add_air(canvas, depth)

    def _add_detail(self, canvas: Image, x: Floats, y: Floats, index: Image, view: View) -> None:
        """Roughen ground so near that the finest map is blurred there."""
        none = int(np.argmax(self._detail_row_of == self._detail_row_of[-1]))
        near = np.flatnonzero((index[:, ::64] < none).any(axis=1))
        if not len(near):
            return
        part = slice(int(near[0]), None)
        size, places = float(_DETAIL_SIZE), []
        for metres, own in ((x, view.position[0]), (y, view.position[1])):
            tiles = metres[part] * np.float32(1.0 / (_DETAIL * size))
            tiles += np.float32(own / (_DETAIL * size) % 1.0)
            tiles -= np.floor(tiles)
            tiles *= np.float32(size)
            places.append(tiles)
        places[1] += cv2.LUT(index[part], self._detail_row_of)
        grain = cv2.remap(self._detail, places[0], places[1], cv2.INTER_LINEAR)
        cv2.multiply(canvas[part], cv2.merge([grain] * 3), dst=canvas[part], scale=1.0 / 128.0)

    def _add_air(self, canvas: Image, depth: Floats) -> None:
        """Pale the ground by distance, in the rows where that shows."""
        far = np.flatnonzero((depth[:, ::64] * self._extinction > _SHOWS).any(axis=1))
        if not len(far):
            return
        part = canvas[: int(far[-1]) + 1]
        clear = cv2.exp(depth[: len(part)] * np.float32(-self._extinction))
        share = cv2.convertScaleAbs(clear, alpha=255.0)
        cv2.multiply(part, cv2.merge([share] * 3), dst=part, scale=1.0 / 255.0)
        scattered = cv2.merge([cv2.LUT(share, table) for table in self._scattered])
        cv2.add(part, scattered, dst=part)


def _details(contrast: float, random: np.random.Generator) -> Image:
    """Return tiles below each other, ever weaker, with an edge more to interpolate into."""
    tile = noise_tile(random, _DETAIL_SIZE, 0.35, 40, 2.0)
    tile = np.concatenate([tile, tile[:, :1]], axis=1)
    strengths = contrast * np.linspace(1.0, 0.0, _STRENGTHS)
    stack = np.concatenate([128.0 * (1.0 + strength * tile) for strength in strengths])
    stack = np.concatenate([stack, stack[-1:]])
    return np.asarray(np.clip(np.rint(stack), 0, 255), np.uint8)


# Panorama: pixels per radian, and elevations it covers, rad.
_PANORAMA_SCALE = 330.0
_LOWEST, _HIGHEST = -0.06, 1.25
_HALF_FIELD = 1.2
# The far wood reaches down to here; above, the panorama hides the ground's far end.
_FOOT = -0.006
_GRID = 16


class Sky:
    """One world's panorama, lit, and how it comes onto a canvas."""

    def __init__(self, world: World) -> None:
        random = np.random.default_rng((world.seed, world.ground.seed & 0x7FFFFFFF, 2))
        once = _panorama(world, random)
        pad = math.ceil(_HALF_FIELD * _PANORAMA_SCALE)
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
        mask = (rows < np.float32((_HIGHEST - _FOOT) * _PANORAMA_SCALE)).view(np.uint8)
        cv2.copyTo(sky, mask, canvas[:bottom])

    def _places(self, view: View, bottom: int) -> tuple[Floats, Floats]:
        """Return panorama columns and rows (bottom, W) of canvas pixels.

        Computed on a grid and interpolated: angles change smoothly over a picture.
        """
        lens = view.lens
        counts = (math.ceil(bottom / _GRID) + 2, math.ceil(lens.width / _GRID) + 2)
        u = (np.arange(counts[1]) - 0.5) * _GRID - 0.5
        v = (np.arange(counts[0]) - 0.5) * _GRID - 0.5
        x, y = np.meshgrid((u - lens.centre[0]) / lens.focal, (v - lens.centre[1]) / lens.focal)
        rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ view.to_optical.rotation
        ahead = view.to_optical.rotation[2]
        bearing = math.atan2(ahead[1], ahead[0])
        turned = np.arctan2(
            rays[..., 1] * math.cos(bearing) - rays[..., 0] * math.sin(bearing),
            rays[..., 0] * math.cos(bearing) + rays[..., 1] * math.sin(bearing),
        )
        elevation = np.arctan2(rays[..., 2], np.hypot(rays[..., 0], rays[..., 1]))
        middle = self._pad + (bearing % (2.0 * math.pi)) * _PANORAMA_SCALE
        column = middle + np.clip(turned, -_HALF_FIELD, _HALF_FIELD) * _PANORAMA_SCALE
        row = (_HIGHEST - elevation) * _PANORAMA_SCALE
        grid = np.stack([column, row], axis=-1).astype(np.float32)
        size = (counts[1] * _GRID, counts[0] * _GRID)
        fine = cv2.resize(grid, size, interpolation=cv2.INTER_LINEAR)
        fine = fine[_GRID : _GRID + bottom, _GRID : _GRID + lens.width]
        return np.ascontiguousarray(fine[..., 0]), np.ascontiguousarray(fine[..., 1])


def _panorama(world: World, random: np.random.Generator) -> Image:
    width = round(2.0 * math.pi * _PANORAMA_SCALE)
    height = round((_HIGHEST - _LOWEST) * _PANORAMA_SCALE)
    elevation = np.asarray(_HIGHEST - (np.arange(height) + 0.5) / _PANORAMA_SCALE, np.float64)
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
    town = world.scenario.surroundings in ('street', 'yard')
    for distance, top in ((900.0, 0.035), (420.0, 0.028), (250.0, 0.034)):
        clear = 0.0 if fog else math.exp(-distance / 900.0)
        wood = random.uniform(0.8, 1.1) * np.array([52.0, 74.0, 62.0])
        colour = wood * level * clear + air_colour(light) * (1.0 - clear)
        ridge = top * (0.55 + 0.16 * _ring_noise(random, width, 1.3, width))
        ridge = np.maximum(ridge + 0.0028 * _ring_noise(random, width, 0.5, 60.0), 0.003)
        if town:
            ridge = np.maximum(ridge, _roofs(random, width, 1.6 * top))
        cover = np.clip((ridge[None] - elevation[:, None]) * _PANORAMA_SCALE + 0.5, 0.0, 1.0)
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

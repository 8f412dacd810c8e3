"""The lit ground of one world, painted once: maps of it from fine and near to coarse and far.

Sun, the shadows of what stands still and the pools of lamps are in it already. Each map is half
as fine as the one before and reaches farther; all lie side by side in one atlas, so that one
resampling draws the whole ground.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from mmedge_lab.simulation.light import lamp_light, level_ground_light
from mmedge_lab.simulation.terrain import shadow_places
from mmedge_lab.simulation.textures import Floats, Image, lattice_noise, pyramid, surface_tile
from mmedge_lab.simulation.world import Ground, Lamp, SceneLight, Terrain, World
from mmedge_ros.core.data_types import FloatArray

LEVELS = 9
_RESOLUTIONS = (0.02, 0.03, 0.04, 0.06, 0.08)
_LARGEST_SIDE = 2200
# Depth is along the axis; towards the corners of a picture the ground is farther.
_CORNER = 1.45
_FACES = 0.3  # m between the places whose slope is looked at
_MARKING = (225, 225, 222)
_SHIFT = 4


@dataclass(frozen=True, eq=False)
class GroundMap:
    """One map: pixel (0, 0) is at ``origin`` (2,) m, x to the right, y with the rows."""

    origin: FloatArray
    resolution: float
    shape: tuple[int, int]

    def pixels(self, points: FloatArray) -> FloatArray:
        """Return the pixels (N, 2) of places (N, 2) m."""
        return np.asarray((points - self.origin) / self.resolution, np.float64)

    def fixed(self, points: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        """Return places as OpenCV's drawing functions take them with a shift of 4 bits."""
        pixels = np.clip(self.pixels(points), -30_000.0, 30_000.0)
        return np.rint(pixels * (1 << _SHIFT)).astype(np.int32)


class GroundAtlas:
    """All maps of a world's ground for a camera of ``focal`` px.

    A place (x, y) m is at column ``x * scale[k] + column[k]`` and row ``y * scale[k] + row[k]``
    of map k, whose resolution is ``finest * 2**k`` m. Nothing deeper than ``far`` m is painted.
    """

    def __init__(self, world: World, focal: float) -> None:
        random = np.random.default_rng((world.seed, world.ground.seed & 0x7FFFFFFF))
        times = np.linspace(0.0, world.seconds, max(2, min(400, int(4 * world.seconds))))
        path = np.array([world.path.state(float(t)).pose.translation for t in times])
        self.finest, maps = _maps(path, focal)
        self.far = _reach(self.finest, LEVELS - 1, focal, 1.0) / _CORNER
        painter = _Painter(world, self.finest, random)
        width = sum(m.shape[1] for m in maps)
        self.image: Image = np.zeros((max(m.shape[0] for m in maps), width, 3), np.uint8)
        self.scale = np.zeros(LEVELS, np.float32)
        self.column = np.zeros(LEVELS, np.float32)
        self.row = np.zeros(LEVELS, np.float32)
        left = 0
        for k, ground_map in enumerate(maps):
            rows, columns = ground_map.shape
            self.image[:rows, left : left + columns] = painter.paint(ground_map, k)
            self.scale[k] = 1.0 / ground_map.resolution
            self.column[k] = left - ground_map.origin[0] / ground_map.resolution
            self.row[k] = -ground_map.origin[1] / ground_map.resolution
            left += columns


def _maps(path: FloatArray, focal: float) -> tuple[float, list[GroundMap]]:
    """Return the finest resolution that fits and the maps' places."""
    low, high = path[:, :2].min(axis=0), path[:, :2].max(axis=0)
    height = max(float(path[:, 2].max()), 1.0)
    for finest in _RESOLUTIONS:
        side = float((high - low).max()) + 2.0 * _reach(finest, 0, focal, height)
        if side / finest <= _LARGEST_SIDE:
            break
    maps = []
    for k in range(LEVELS):
        resolution = finest * 2**k
        reach = _reach(finest, k, focal, height)
        # On whole pixels of the world, so that tiles meet.
        begin = np.floor((low - reach) / resolution)
        end = np.minimum(np.ceil((high + reach) / resolution), begin + 2 * _LARGEST_SIDE)
        columns, rows = (int(v) for v in end - begin)
        maps.append(GroundMap(begin * resolution, resolution, (rows, columns)))
    return finest, maps


def _reach(finest: float, k: int, focal: float, height: float) -> float:
    """Return how far away map k is still used, in m.

    The ground under a pixel at depth d is d / f wide and d^2 / (f h) long; a map is used up to
    where the mean of the two is twice its resolution.
    """
    footprint = finest * 2.0 ** (k + 1)
    depth = (footprint * focal) ** (2.0 / 3.0) * height ** (1.0 / 3.0)
    return float(_CORNER * depth + 2.0)


class _Painter:
    def __init__(self, world: World, finest: float, random: np.random.Generator) -> None:
        self._world = world
        ground: Ground = world.ground
        names = {ground.surface, *(strip.surface for strip in ground.strips)}
        self._tiles = {
            name: pyramid(surface_tile(name, finest, random), 4) for name in sorted(names)
        }
        # Random values whose smooth interpolation is noise that repeats.
        self._lattices = [random.standard_normal((64, 64)).astype(np.float32) for _ in range(4)]

    def paint(self, ground_map: GroundMap, k: int) -> Image:
        """Return one map, lit."""
        ground = self._world.ground
        colour = _tiled(self._tiles[ground.surface][k], ground_map)
        for strip in ground.strips:
            mask = _band(ground_map, strip.line, strip.width)
            if strip.surface == 'gravel':
                mask = self._ragged(mask, ground_map)
            colour = _mixed(colour, _tiled(self._tiles[strip.surface][k], ground_map), mask)
            if strip.surface == 'asphalt':
                _mark(colour, ground_map, strip.line, strip.width)
        light = self._light(ground_map)
        # As bytes, which is four times as fast; the textures hide what rounding adds.
        top = float(light.max())
        factors = cv2.convertScaleAbs(light, alpha=255.0 / top)
        return np.asarray(cv2.multiply(colour, factors, scale=top / 255.0), np.uint8)

    def _ragged(self, mask: Image, ground_map: GroundMap) -> Image:
        """Return a mask whose edges wander, as those of trodden paths do."""
        noise = _smooth_noise([(0.7, 1.0, self._lattices[0])], ground_map)
        edge = cv2.multiply(mask, cv2.bitwise_not(mask), scale=1.4 / 255.0)
        wandering = cv2.multiply(edge.astype(np.float32), noise) + mask
        return np.asarray(cv2.convertScaleAbs(np.maximum(wandering, 0.0)), np.uint8)

    def _light(self, ground_map: GroundMap) -> Floats:
        """Return BGR factors (H, W, 3), uneven as ground is."""
        world = self._world
        ambient, sun = level_ground_light(world.light)
        shade = _static_shadows(world, ground_map)
        # Factors of a byte of shadow, by its value.
        table = ambient + sun * (1.0 - np.arange(256)[:, None] / 255.0)
        light = np.asarray(cv2.merge([
            cv2.LUT(shade, table[:, i].astype(np.float32)) for i in range(3)
        ]), np.float32)  # fmt: skip
        for lamp in world.lamps:
            if lamp.lit:
                _add_pool(light, ground_map, lamp)
        cells = zip((9.0, 37.0, 140.0), (0.035, 0.05, 0.06), self._lattices[1:], strict=True)
        level = _smooth_noise(list(cells), ground_map) + np.float32(1.0)
        if world.terrain is not None:
            level *= _slope_light(world.terrain, world.light, ground_map)
        return np.asarray(cv2.multiply(light, cv2.merge([level] * 3)), np.float32)


def _slope_light(terrain: Terrain, light: SceneLight, ground_map: GroundMap) -> Floats:
    """Return how bright (H, W) ground is beside level ground, for how it faces sun and sky."""
    shape, resolution = ground_map.shape, ground_map.resolution
    step = max(1, round(_FACES / resolution))
    apart = step * resolution
    y, x = (np.arange(-(-side // step) + 1) + 0.5 - 0.5 / step for side in shape)
    places = ground_map.origin + apart * np.stack(np.meshgrid(x, y), axis=-1)
    down, along = np.gradient(terrain.heights(places), apart)
    slope = np.stack([along, down], axis=-1)
    upright = 1.0 / np.sqrt(1.0 + (slope * slope).sum(axis=-1))
    sun = light.sun_direction
    facing = np.maximum((sun[2] - slope @ sun[:2]) * upright, 0.0)
    factor = 0.5 * light.ambient * (1.0 + upright) + light.sun * facing
    factor /= light.ambient + light.sun * max(float(sun[2]), 0.05)
    size = (len(x) * step, len(y) * step)
    fine = cv2.resize(factor.astype(np.float32), size, interpolation=cv2.INTER_LINEAR)
    return np.asarray(fine[: shape[0], : shape[1]], np.float32)


def _add_pool(light: Floats, ground_map: GroundMap, lamp: Lamp) -> None:
    """Add what a lamp gives to BGR factors (H, W, 3)."""
    column, row = ground_map.pixels(lamp.position[None])[0].tolist()
    reach = lamp.reach / ground_map.resolution
    x0, x1 = (int(np.clip(column + s * reach, 0, ground_map.shape[1])) for s in (-1, 1))
    y0, y1 = (int(np.clip(row + s * reach, 0, ground_map.shape[0])) for s in (-1, 1))
    if x1 <= x0 or y1 <= y0:
        return
    # By a table of distances; on large maps the square root of millions takes its time.
    x = (np.arange(x0, x1, dtype=np.float32) - np.float32(column)) / np.float32(reach)
    y = (np.arange(y0, y1, dtype=np.float32) - np.float32(row)) / np.float32(reach)
    away = cv2.sqrt(x[None] ** 2 + y[:, None] ** 2)
    index = cv2.convertScaleAbs(away, alpha=255.0)
    table = lamp_light(lamp, np.linspace(0.0, lamp.reach, 256)).astype(np.float32)
    light[y0:y1, x0:x1] += cv2.merge([cv2.LUT(index, table[:, i].copy()) for i in range(3)])


def _smooth_noise(octaves: list[tuple[float, float, Floats]], ground_map: GroundMap) -> Floats:
    """Return the sum (H, W) of noises given by cell (m), weight and lattice.

    It is computed on fewer points where cells are many pixels wide, and interpolated.
    """
    finest = min(cell for cell, _, _ in octaves) / ground_map.resolution
    step = int(np.clip(finest / 6.0, 1, 32))
    rows, columns = (-(-side // step) + 1 for side in ground_map.shape)
    # Where the interpolation below puts the coarse pixels' centres.
    origin = ground_map.origin + 0.5 * (step - 1) * ground_map.resolution
    total = np.zeros((rows, columns), np.float32)
    for cell, weight, lattice in octaves:
        total += np.float32(weight) * lattice_noise(
            lattice, cell, origin, step * ground_map.resolution, (rows, columns)
        )
    if step == 1:
        return total[: ground_map.shape[0], : ground_map.shape[1]]
    fine = cv2.resize(total, (columns * step, rows * step), interpolation=cv2.INTER_LINEAR)
    return np.asarray(fine[: ground_map.shape[0], : ground_map.shape[1]], np.float32)


def _tiled(tile: Image, ground_map: GroundMap) -> Image:
    begin = np.rint(ground_map.origin / ground_map.resolution).astype(int)
    rows = (begin[1] + np.arange(ground_map.shape[0])) % tile.shape[0]
    columns = (begin[0] + np.arange(ground_map.shape[1])) % tile.shape[1]
    return np.asarray(tile.take(rows, axis=0).take(columns, axis=1), np.uint8)


def _mixed(below: Image, above: Image, mask: Image) -> Image:
    """Return pictures (H, W, 3) mixed by a mask (H, W) of bytes."""
    kept = cv2.multiply(below, cv2.merge([cv2.bitwise_not(mask)] * 3), scale=1.0 / 255.0)
    added = cv2.multiply(above, cv2.merge([mask] * 3), scale=1.0 / 255.0)
    return np.asarray(cv2.add(kept, added), np.uint8)


def _band(ground_map: GroundMap, line: FloatArray, width: float) -> Image:
    """Return a mask (H, W) of bytes: the ground within ``width`` / 2 of a line."""
    mask = np.zeros(ground_map.shape, np.uint8)
    thickness = max(1, round(width / ground_map.resolution))
    cv2.polylines(mask, [ground_map.fixed(line)], False, 255, thickness, cv2.LINE_AA, _SHIFT)
    sigma = min(3.0, max(0.5, 0.06 / ground_map.resolution))
    return np.asarray(cv2.GaussianBlur(mask, (0, 0), sigma), np.uint8)


def _mark(colour: Image, ground_map: GroundMap, line: FloatArray, width: float) -> None:
    """Paint the markings of a road: dashes along its middle, a line along each edge."""
    mask = np.zeros(ground_map.shape, np.uint8)
    steps = np.hypot(*np.diff(line, axis=0).T)
    total = np.concatenate([[0.0], np.cumsum(steps)])
    along = np.arange(0.0, total[-1], 0.5)
    fine = np.column_stack([np.interp(along, total, line[:, i]) for i in (0, 1)])
    ahead = np.gradient(fine, axis=0)
    left = np.column_stack([-ahead[:, 1], ahead[:, 0]])
    left /= np.maximum(np.hypot(left[:, 0], left[:, 1]), 1e-9)[:, None]
    thickness = max(1, round(0.14 / ground_map.resolution))
    strength = min(1.0, 0.14 / ground_map.resolution)
    dashes = [ground_map.fixed(fine[i : i + 6]) for i in range(0, len(fine) - 6, 14)]
    edges = [ground_map.fixed(fine + side * (0.5 * width - 0.3) * left) for side in (-1.0, 1.0)]
    cv2.polylines(mask, dashes, False, 255, thickness, cv2.LINE_AA, _SHIFT)
    cv2.polylines(mask, edges, False, 200, thickness, cv2.LINE_AA, _SHIFT)
    x, y, wide, tall = cv2.boundingRect(mask)
    if wide and tall:
        part = colour[y : y + tall, x : x + wide]
        share = cv2.convertScaleAbs(mask[y : y + tall, x : x + wide], alpha=0.8 * strength)
        part[:] = _mixed(part, np.full(part.shape, _MARKING, np.uint8), np.asarray(share))


def _static_shadows(world: World, ground_map: GroundMap) -> Image:
    """Return how much (H, W) of the sun buildings and plants take away, 255 for all of it."""
    sun = world.light.sun_direction
    slide = -sun[:2] / max(float(sun[2]), 0.12)
    mask = np.zeros(ground_map.shape, np.uint8)

    def fall(foot: FloatArray, base: float, height: float) -> FloatArray:
        if world.terrain is None:
            return np.asarray(foot + slide * height, np.float64)
        return shadow_places(world.terrain, np.append(foot, base + height), slide)

    for plant in world.plants:
        foot = np.asarray(plant.position, np.float64)
        middle = fall(foot, plant.base, plant.trunk_height + 0.5 * plant.crown_height)
        crown = _crown_shadow(plant.crown_radius, 0.5 * plant.crown_height, slide)
        cv2.fillConvexPoly(mask, ground_map.fixed(middle + crown), 205, cv2.LINE_AA, _SHIFT)
        if plant.trunk_radius > 0.0:
            stem = ground_map.fixed(np.array([foot, middle]))
            thickness = max(1, round(2.0 * plant.trunk_radius / ground_map.resolution))
            cv2.polylines(mask, [stem], False, 230, thickness, cv2.LINE_AA, _SHIFT)
    for lamp in world.lamps:
        pole = np.array([lamp.position, fall(lamp.position, lamp.base, lamp.height)])
        if ground_map.resolution < 0.2:
            thickness = max(1, round(0.12 / ground_map.resolution))
            cv2.polylines(mask, [ground_map.fixed(pole)], False, 200, thickness, cv2.LINE_AA, 4)
    for building in world.buildings:
        foot = np.asarray(building.footprint, np.float64)
        points = ground_map.fixed(np.vstack([foot, foot + slide * building.height]))
        cv2.fillConvexPoly(mask, cv2.convexHull(points), 255, cv2.LINE_AA, _SHIFT)
    soft = cv2.GaussianBlur(mask, (0, 0), min(6.0, max(0.6, 0.12 / ground_map.resolution)))
    return np.asarray(soft, np.uint8)


def _crown_shadow(radius: float, half_height: float, slide: FloatArray) -> FloatArray:
    """Return the outline (N, 2) m of an ellipsoid's shadow about its middle."""
    turn = np.linspace(0.0, 2.0 * math.pi, 24, endpoint=False)
    length = float(np.hypot(*slide))
    along = slide / length if length > 1e-9 else np.array([1.0, 0.0])
    across = np.array([-along[1], along[0]])
    long = math.hypot(radius, half_height * length)
    return np.asarray(
        long * np.cos(turn)[:, None] * along + radius * np.sin(turn)[:, None] * across, np.float64
    )

"""Paints trees and bushes: clumps of leaves with light between them, on trunks."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_lab.simulation.compositing import CanvasArea, area_within, lay_over, mix_colour, tinted
from mmedge_lab.simulation.light import air_colour, clearness, lamps_at
from mmedge_lab.simulation.painting_order import Standing
from mmedge_lab.simulation.textures import Image, pyramid
from mmedge_lab.simulation.view import SHIFT, View, fixed_point
from mmedge_lab.simulation.world import Plant, World
from mmedge_ros.core.data_types import FloatArray

_SIZE = 256
_REACH = 112.0
# Grey level of a leaf in full light.
LEAF = 160.0
_NEAREST = 0.6
# Different textures of one sort; a wood is a few kinds of trees, many times.
_KINDS = 4
_SLIM = 3.2
_BARK = np.array([58.0, 72.0, 84.0])
# Half of a texture's side that the crown's radius takes.
FILL = _REACH / (0.5 * _SIZE)


class Clump(NamedTuple):
    """A clump of leaves in the crown's unit disc, y up."""

    x: float
    y: float
    radius: float


@functools.lru_cache(maxsize=64)
def crown_textures(kind: int, slim: bool, bush: bool, light: int) -> tuple[Image, ...]:
    """Return leaves that fill a crown's bounding square: BGRA, 256 pixels a side and smaller.

    They are of one neutral colour of ``LEAF``, multiplied by their alpha, and lit from the
    upper right; ``light`` 0..4 is how much of the light comes from there. ``slim`` crowns run
    to a point, a ``bush`` stands on the ground; ``kind`` varies those of a sort.
    """
    random = np.random.default_rng((kind, slim, bush))
    leaves = np.zeros((_SIZE, _SIZE, 4), np.uint8)
    clumps = _clumps(random, slim, bush)
    _paint_inside(leaves, clumps)
    for depth, (x, y, radius) in enumerate(clumps):
        share = depth / len(clumps)
        middle = 0.5 * (_SIZE - 1) + _REACH * np.array([x, -y])
        count = round(430 * radius)
        turns = random.uniform(0.0, 2.0 * math.pi, count)
        away = np.sqrt(random.uniform(size=count)) * radius * _REACH
        offsets = away[:, None] * np.column_stack([np.cos(turns), np.sin(turns)])
        # What faces the light is bright, what lies deep in the crown is dark.
        height = 0.3 * (x + y) + 0.5 * (offsets[:, 0] - offsets[:, 1]) / (radius * _REACH)
        level = 0.6 + 0.4 * share + 0.11 * light * height + random.normal(0.0, 0.1, count)
        shades = LEAF * np.maximum(level, 0.2)[:, None] * random.uniform(0.9, 1.1, (count, 3))
        spots = np.rint((middle + offsets) * 4).astype(int)
        axes = random.uniform((5.0, 4.0), (14.0, 9.0), (count, 2)).astype(int)
        angles = random.uniform(0.0, 180.0, count)
        for spot, size, angle, shade in zip(
            spots.tolist(), axes.tolist(), angles.tolist(), np.minimum(shades, 255.0).tolist(),
            strict=True,
        ):  # fmt: skip
            cv2.ellipse(leaves, spot, size, angle, 0, 360, (*shade, 255), -1, cv2.LINE_8, 2)
    # Softened, which multiplies colours by alpha as well.
    return tuple(pyramid(np.asarray(cv2.GaussianBlur(leaves, (0, 0), 0.7), np.uint8), 8))


def _paint_inside(leaves: Image, clumps: list[Clump]) -> None:
    """Fill the middle with what is seen between the outer leaves: the dark inside."""
    shade = (0.42 * LEAF,) * 3
    for x, y, radius in clumps:
        centre = np.rint(0.5 * (_SIZE - 1) + 0.93 * _REACH * np.array([x, -y])).astype(int)
        cv2.circle(leaves, centre.tolist(), round(0.8 * radius * _REACH), (*shade, 255), -1)


def _clumps(random: np.random.Generator, slim: bool, bush: bool) -> list[Clump]:
    """Return clumps of leaves in the unit disc, back to front."""
    clumps = []
    # Rings from the middle out, so that no part of the crown stays bare.
    for ring, count in ((0.0, 2), (0.3, 7), (0.55, 13), (0.75, 20)):
        for i in range(count):
            turn = 2.0 * math.pi * (i + random.uniform(-0.4, 0.4)) / count
            x = ring * math.cos(turn) + random.uniform(-0.08, 0.08)
            y = ring * math.sin(turn) + random.uniform(-0.08, 0.08)
            radius = random.uniform(0.17, 0.27)
            if slim:
                narrow = 0.25 + 0.5 * (1.0 - y)
                x, radius = x * narrow, radius * max(narrow, 0.5)
            elif bush and y < 0.0:
                # Bushes widen to the ground.
                x *= 1.0 + 0.35 * y * y
            away = math.hypot(x, y)
            inward = min(1.0, (1.0 - radius) / max(away, 1e-6))
            clumps.append(Clump(x * inward, y * inward, radius))
    # The outer ones lie behind, so that the middle comes out as what is nearest.
    return sorted(clumps, key=lambda c: c.x**2 + c.y**2 + random.uniform(0.0, 0.45), reverse=True)


@dataclass(frozen=True, eq=False)
class _Kind:
    """What one plant looks like: leaves of ever smaller textures, BGRA premultiplied.

    ``colour`` (3,) are factors on them, ``lamps`` (3,) what light lamps add.
    """

    plant: Plant
    leaves: tuple[Image, ...]
    colour: FloatArray
    lamps: FloatArray


class SeenPlant:
    """A plant in view; ``paint`` and ``paint_ids`` cover the same pixels."""

    def __init__(
        self, painter: PlantPicture, kind: _Kind, matrix: FloatArray, size: float,
        trunk: FloatArray | None, bounds: tuple[float, float, float, float],
    ) -> None:  # fmt: skip
        self._painter = painter
        self._kind = kind
        self._matrix = matrix  # (2, 3), canvas pixels from the crown's unit square
        self._size = size
        self._trunk = trunk
        self._bounds = bounds
        self._placed: tuple[CanvasArea, Image] | None = None
        reach = kind.plant.crown_radius
        self.standing = Standing(
            kind.plant.position, bounds[0], bounds[2], reach=reach, height=kind.plant.base
        )

    def paint(self, canvas: Image, view: View) -> None:
        """Paint the plant onto a canvas."""
        level, clear = self._painter.level(self._kind, view)
        air = self._painter.air
        if self._trunk is not None:
            colour = mix_colour(_BARK * level, clear, air)
            cv2.fillConvexPoly(canvas, fixed_point(self._trunk), colour, cv2.LINE_AA, SHIFT)
        area, leaves = self._leaves(canvas.shape)
        if not area.empty:
            alpha = np.asarray(cv2.extractChannel(leaves, 3), np.uint8)
            lay_over(area.of(canvas), tinted(leaves, level * self._kind.colour, clear, air), alpha)

    def paint_ids(self, ids: Image, number: int) -> None:
        """Enter what the plant covers into a canvas (H, W) of ids."""
        if self._trunk is not None:
            cv2.fillConvexPoly(ids, fixed_point(self._trunk), number, cv2.LINE_8, SHIFT)
        area, leaves = self._leaves(ids.shape)
        if not area.empty:
            alpha = cv2.extractChannel(leaves, 3)
            covered = cv2.threshold(alpha, 127, number, cv2.THRESH_BINARY)[1]
            cv2.copyTo(covered, covered, area.of(ids))

    def _leaves(self, shape: tuple[int, ...]) -> tuple[CanvasArea, Image]:
        """Return where on the canvas the crown lies, and its leaves there."""
        if self._placed is None:
            area = area_within(self._bounds, shape)
            leaves: Image = np.zeros((0, 0, 4), np.uint8)
            if not area.empty:
                textures = self._kind.leaves
                finer = [t for t in textures if t.shape[0] >= 1.6 * self._size]
                texture = finer[-1] if finer else textures[0]
                reach = 0.5 * texture.shape[0] * FILL
                matrix = np.column_stack(
                    [self._matrix[:, :2] / reach, self._matrix[:, 2] - (area.x0, area.y0)]
                )
                matrix[:, 2] -= matrix[:, :2] @ np.full(2, 0.5 * (texture.shape[0] - 1))
                size = (area.width, area.height)
                leaves = np.asarray(cv2.warpAffine(texture, matrix, size), np.uint8)
            self._placed = (area, leaves)
        return self._placed


class PlantPicture:
    """Paints the plants of one world."""

    def __init__(self, world: World) -> None:
        self._light = world.light
        self.air = air_colour(world.light)
        light = round(4.0 * world.light.sun / (world.light.sun + world.light.ambient))
        self._kinds = []
        for plant in world.plants:
            slim = plant.crown_height > _SLIM * plant.crown_radius
            bush = plant.trunk_radius <= 0.0
            leaves = crown_textures(plant.seed % _KINDS, slim, bush, light)
            lamps = 0.45 * lamps_at(world.lamps, plant.position)
            self._kinds.append(_Kind(plant, leaves, np.array(plant.colour) / LEAF, lamps))
        self._points = np.array([_axis(plant) for plant in world.plants]).reshape(-1, 4, 3)

    def in_view(self, view: View) -> Iterator[SeenPlant]:
        """Find the plants of which something is on the canvas."""
        canvas, depths = view.canvas_of(self._points)
        flip = float(view.to_optical.rotation[0] @ self._light.sun_direction) < 0.0
        for i in np.flatnonzero(depths.min(axis=1) > _NEAREST).tolist():
            seen = self._seen(self._kinds[i], canvas[i], depths[i], view, flip)
            if seen is not None:
                yield seen

    def _seen(
        self, kind: _Kind, points: FloatArray, depths: FloatArray, view: View, flip: bool
    ) -> SeenPlant | None:
        """Place a plant whose foot, trunk's end, crown's middle and top are at ``points``."""
        plant, lens = kind.plant, view.lens
        (x, y), (top_x, top_y) = points[2].tolist(), points[3].tolist()
        scale = view.pixels_per_metre(float(depths[2]))
        wide = plant.crown_radius * scale
        up = np.array([top_x - x, top_y - y]) / max(math.hypot(top_x - x, top_y - y), 1e-6)
        height = float(view.position[2]) - plant.base
        down = abs(height - plant.trunk_height - 0.5 * plant.crown_height)
        sine = min(down / max(float(depths[2]), down, 1e-6), 1.0)
        half = 0.5 * plant.crown_height * math.sqrt(1.0 - sine * sine)
        tall = math.hypot(half, plant.crown_radius * sine) * scale
        reach = math.hypot(wide, tall)
        bounds = (x - reach, y - reach, x + reach, y + reach)
        foot = points[0]
        if (
            x + reach < 0.0
            or x - reach > lens.width
            or y - reach > lens.height
            or max(y + reach, float(foot[1])) < 0.0
            or reach < 0.7
        ):
            return None
        side = np.array([-up[1], up[0]]) * (-wide if flip else wide)
        matrix = np.column_stack([side, -tall * up, points[2]])
        trunk = None
        if plant.trunk_radius > 0.0:
            trunk = upright(points[0], points[1], plant.trunk_radius * scale,
                            0.65 * plant.trunk_radius * scale)  # fmt: skip
        return SeenPlant(self, kind, matrix, 2.0 * max(wide, tall), trunk, bounds)

    def level(self, kind: _Kind, view: View) -> tuple[FloatArray, float]:
        """Return BGR factors (3,) of leaves as they look from here, and how clear the air is."""
        light, place = self._light, kind.plant.position
        x, y = (float(v) for v in view.position[:2] - place)
        away = math.hypot(x, y)
        front = (x * light.sun_direction[0] + y * light.sun_direction[1]) / max(away, 1e-6)
        level = 0.85 * light.ambient + light.sun * (0.5 + 0.28 * front)
        clear = clearness(light, math.hypot(away, float(view.position[2])))
        return np.asarray(level * np.array(light.tint) + kind.lamps, np.float64), clear


def upright(foot: FloatArray, top: FloatArray, below: float, above: float) -> FloatArray:
    """Return the canvas outline (4, 2) of something thin between two points (2,).

    ``below`` and ``above`` are half its widths in pixels; never less than a quarter, or it
    would come and go.
    """
    axis = top - foot
    across = np.array([-axis[1], axis[0]]) / max(math.hypot(*axis.tolist()), 1e-6)
    low, high = max(below, 0.25) * across, max(above, 0.25) * across
    return np.array([foot - low, foot + low, top + high, top - high])


def _axis(plant: Plant) -> FloatArray:
    """Return a plant's foot, its trunk's end, its crown's middle and top, (4, 3) m."""
    heights = np.array([0.0, 0.35, 0.5, 1.0]) * plant.crown_height + plant.trunk_height
    heights[0] = 0.0
    return np.array([[*plant.position, plant.base + height] for height in heights])

"""Paints street lamps; lit ones glow."""

from __future__ import annotations

import math
from collections.abc import Iterator

import cv2
import numpy as np

from mmedge_lab.simulation.compositing import area_of, mix_colour
from mmedge_lab.simulation.light import LAMP_COLOUR, air_colour, clearness, lamp_light
from mmedge_lab.simulation.painting_order import Standing
from mmedge_lab.simulation.plant_picture import upright
from mmedge_lab.simulation.textures import Image
from mmedge_lab.simulation.view import SHIFT, View, fixed_point
from mmedge_lab.simulation.world import Lamp, World
from mmedge_ros.core.data_types import FloatArray

_NEAREST = 0.6
_POLE = np.array([88.0, 90.0, 92.0])
_GLASS = np.array([215.0, 225.0, 230.0])
_LIT_GLASS = np.array([205.0, 238.0, 255.0])
_POLE_RADIUS = 0.055
_HEAD = (0.3, 0.11)


class SeenLamp:
    """A lamp in view; ``points`` (2, 2) are its foot and head on the canvas."""

    def __init__(
        self, painter: LampPicture, lamp: Lamp, points: FloatArray, depths: FloatArray, view: View
    ) -> None:
        self._painter = painter
        self._lamp = lamp
        self._head = points[1]
        self._scale = view.pixels_per_metre(float(depths[1]))
        foot = 1.3 * _POLE_RADIUS * view.pixels_per_metre(float(depths[0]))
        self._pole = upright(points[0], points[1], foot, _POLE_RADIUS * self._scale)
        reach = _HEAD[0] * self._scale + 2.0
        left, right = sorted(points[:, 0].tolist())
        self.standing = Standing(lamp.position, left - reach, right + reach, height=lamp.base)

    def paint(self, canvas: Image, view: View) -> None:
        """Paint the lamp onto a canvas."""
        level, clear = self._painter.level(self._lamp, view)
        air = self._painter.air
        pole = mix_colour(_POLE * level, clear, air)
        cv2.fillConvexPoly(canvas, fixed_point(self._pole), pole, cv2.LINE_AA, SHIFT)
        glass = _GLASS * level
        if self._lamp.lit:
            _glow(canvas, self._head, self._scale, clear)
            glass = _LIT_GLASS
        x, y = fixed_point(self._head).tolist()
        wide, tall = (round(16 * max(0.5, size * self._scale)) for size in _HEAD)
        colour = mix_colour(glass, clear, air)
        cv2.ellipse(canvas, (x, y), (wide, tall), 0, 0, 360, colour, -1, cv2.LINE_AA, SHIFT)

    def paint_ids(self, ids: Image, number: int) -> None:
        """Enter what the pole covers into a canvas (H, W) of ids."""
        cv2.fillConvexPoly(ids, fixed_point(self._pole), number, cv2.LINE_8, SHIFT)


class LampPicture:
    """Paints the lamps of one world."""

    def __init__(self, world: World) -> None:
        self._light = world.light
        self._lamps = world.lamps
        self.air = air_colour(world.light)
        self._points = np.array(
            [
                [[*lamp.position, lamp.base + height] for height in (0.0, lamp.height)]
                for lamp in world.lamps
            ]
        ).reshape(-1, 2, 3)

    def in_view(self, view: View) -> Iterator[SeenLamp]:
        """Find the lamps of which something is on the canvas."""
        canvas, depths = view.canvas_of(self._points)
        low, high = canvas.min(axis=1), canvas.max(axis=1)
        margin = 40.0
        seen = (depths.min(axis=1) > _NEAREST) & (high > -margin).all(axis=1)
        seen &= (low < (view.lens.width + margin, view.lens.height + margin)).all(axis=1)
        for i in np.flatnonzero(seen).tolist():
            yield SeenLamp(self, self._lamps[i], canvas[i], depths[i], view)

    def level(self, lamp: Lamp, view: View) -> tuple[FloatArray, float]:
        """Return BGR factors (3,) of a lamp's parts, and how clear the air before it is."""
        light = self._light
        level = (light.ambient + 0.5 * light.sun) * np.array(light.tint)
        if lamp.lit:
            level = level + 0.3 * lamp_light(lamp, np.zeros(()))
        x, y = (float(v) for v in view.position[:2] - lamp.position)
        clear = clearness(light, math.hypot(x, y, float(view.position[2])))
        return np.asarray(level, np.float64), clear


def _glow(canvas: Image, place: FloatArray, scale: float, clear: float) -> None:
    radius = float(np.clip(2.2 * scale, 6.0, 90.0))
    area = area_of(place[None], canvas.shape, radius)
    if area.empty:
        return
    x = np.arange(area.x0, area.x1, dtype=np.float32) - np.float32(place[0])
    y = np.arange(area.y0, area.y1, dtype=np.float32) - np.float32(place[1])
    away = (x[None] ** 2 + y[:, None] ** 2) / np.float32(radius**2)
    halo = 0.5 * clear * np.clip(1.0 - away, 0.0, 1.0) ** 2 / (1.0 + 60.0 * away)
    levels = cv2.merge([cv2.convertScaleAbs(halo, alpha=255.0 * float(c)) for c in LAMP_COLOUR])
    part = area.of(canvas)
    cv2.add(part, levels, dst=part)

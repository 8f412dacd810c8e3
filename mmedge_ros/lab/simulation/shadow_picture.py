"""The shadows of movers on the ground: of the sun, and where a body is close to the ground."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.compositing import area_of
from mmedge_ros.lab.simulation.light import level_ground_light
from mmedge_ros.lab.simulation.outline import Outline
from mmedge_ros.lab.simulation.textures import Image
from mmedge_ros.lab.simulation.view import SHIFT, View, fixed_point
from mmedge_ros.lab.simulation.world import Body, Light

_RING = 8
_TURN = np.linspace(0.0, 2.0 * np.pi, _RING, endpoint=False)
_CIRCLE = np.column_stack([np.cos(_TURN), np.sin(_TURN)])
# Below this the sun's shadows are too long and pale to tell.
_LOWEST_SUN = 0.07
_PALEST = 0.05
# How much of the sky's light a body takes from the ground right below it, and how low it is.
_CONTACT = 0.5
_TOUCHING = 0.2
_WIDER = 1.9
# Ground nearer to the camera's plane than this is not shaded, in metres.
_NEAREST = 0.3
_SOFTEST = 10.0
# Movers farther than this from the canvas cast no shadow on it, in pixels.
_AWAY = 400.0


class ShadowPicture:
    """Darkens the ground under and behind movers."""

    def __init__(self, light: Light) -> None:
        self._sun = light.sun_direction
        ambient, sun = level_ground_light(light)
        self._strength = float((sun / (sun + ambient)).mean())
        if self._sun[2] < _LOWEST_SUN or self._strength < _PALEST:
            self._strength = 0.0

    def paint(self, canvas: Image, view: View, outlines: Sequence[Outline]) -> None:
        """Darken a canvas on which there is nothing but ground and sky yet."""
        for outline in outlines:
            left, _, right, bottom = outline.bounds
            if right > -_AWAY and bottom > -_AWAY and left < view.lens.width + _AWAY:
                self._shade(canvas, view, outline)

    def _shade(self, canvas: Image, view: View, outline: Outline) -> None:
        body = outline.body
        first = body.first
        shapes: list[tuple[NDArray[np.float32], float]] = []
        if self._strength:
            rings = _on_canvas(self._cast(body), view)
            if rings is not None:
                shapes = [(rings[a:b], self._strength) for a, b in pairwise(first)]
        level = 1.0 - (1.0 - _CONTACT) * (1.0 - self._strength)
        below, low = _below(body, outline.mover.label)
        rings = _on_canvas(below, view)
        if rings is not None:
            touching = np.logical_or.reduceat(low, first[:-1])
            shapes += [
                (rings[first[i] : first[i + 1]][low[first[i] : first[i + 1]]], level)
                for i in np.flatnonzero(touching).tolist()
            ]
        if shapes:
            blur = min(max(0.6, 0.03 * view.pixels_per_metre(outline.depth)), _SOFTEST)
            _darken(canvas, shapes, blur)

    def _cast(self, body: Body) -> FloatArray:
        """Return the outlines (N, 8, 2) m of the spheres' shadows on the ground."""
        sun = self._sun
        middles = body.centres[:, :2] - body.centres[:, 2:] * (sun[:2] / sun[2])
        along = sun[:2] / max(float(np.hypot(*sun[:2])), 1e-9)
        across = np.array([-along[1], along[0]])
        # A ball's shadow is an ellipse, longer by the sine of the sun's height.
        ring = _CIRCLE[:, :1] * along / sun[2] + _CIRCLE[:, 1:] * across
        return np.asarray(middles[:, None] + body.radii[:, None, None] * ring, np.float64)


def _below(body: Body, label: str) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return rings (N, 8, 2) m on the ground below the spheres, and which are close to it."""
    car = label == 'car'
    wide = 0.8 if car else _WIDER
    rings = body.centres[:, None, :2] + wide * body.radii[:, None, None] * _CIRCLE
    low = body.centres[:, 2] - body.radii < (0.5 if car else _TOUCHING)
    return np.asarray(rings, np.float64), np.asarray(low, bool)


def _on_canvas(rings: FloatArray, view: View) -> NDArray[np.float32] | None:
    """Return canvas pixels of places (N, K, 2) m on the ground; None if some lie behind."""
    optical = rings @ view.to_optical.rotation[:, :2].T + view.to_optical.translation
    if optical[..., 2].min() < _NEAREST:
        return None
    return view.canvas(optical).astype(np.float32)


def _darken(
    canvas: Image, shapes: Sequence[tuple[NDArray[np.float32], float]], blur: float
) -> None:
    """Darken a canvas within the hulls of points, each by a share of its light."""
    hulls = [
        np.asarray(cv2.convexHull(ring.reshape(-1, 2)), np.float64).reshape(-1, 2)
        for ring, _ in shapes
    ]
    area = area_of(np.concatenate(hulls), canvas.shape, 3.0 * blur)
    if area.empty:
        return
    mask = np.zeros((area.height, area.width), np.uint8)
    for hull, (_, level) in zip(hulls, shapes, strict=True):
        points = fixed_point(hull - (area.x0, area.y0))
        cv2.fillConvexPoly(mask, points, 255.0 * level, cv2.LINE_8, SHIFT)
    kept = cv2.bitwise_not(cv2.GaussianBlur(mask, (0, 0), blur))
    part = area.of(canvas)
    cv2.multiply(part, cv2.merge([kept] * 3), dst=part, scale=1.0 / 255.0)

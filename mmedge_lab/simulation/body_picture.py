"""Paints movers and their shadows: rounded, shaded, clothed bodies from hulls of outlines.

A body is painted on a finer canvas of its own: colours, and beside them a relief, whose slopes
give every pixel a direction to shade by. Reduced to the canvas's own pixels, its edges are soft
by exactly the share of each pixel that it covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.compositing import CanvasArea, area_of, area_within, lay_over, tinted
from mmedge_lab.simulation.exposure import LONGEST, own_motion, smeared
from mmedge_lab.simulation.light import air_colour, clearness, lamps_at, level_ground_light
from mmedge_lab.simulation.outline import Outline
from mmedge_lab.simulation.terrain import shadow_places
from mmedge_lab.simulation.textures import Floats, Image, noise_tile, pyramid
from mmedge_lab.simulation.view import OUTLINE_POINTS, SHIFT, View, fixed_point
from mmedge_lab.simulation.world import Body, SceneLight, Terrain, World
from mmedge_ros.core.data_types import FloatArray

_RING = 8
_TURN = np.linspace(0.0, 2.0 * np.pi, _RING, endpoint=False)
_CIRCLE = np.column_stack([np.cos(_TURN), np.sin(_TURN)])
# Below this the sun's shadows are too long and pale to show.
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

    def __init__(
        self, light: SceneLight, thick_air: bool = False, terrain: Terrain | None = None
    ) -> None:
        """Take the light; in ``thick_air`` shadows pale with distance as all else does."""
        self._air = light if thick_air else None
        self._terrain = terrain
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
            rings = _on_canvas(self._cast(body), view, self._terrain)
            if rings is not None:
                shapes = [(rings[a:b], self._strength) for a, b in pairwise(first)]
        level = 1.0 - (1.0 - _CONTACT) * (1.0 - self._strength)
        below, low = _below(body, outline.mover.label, self._terrain)
        rings = _on_canvas(below, view, self._terrain)
        if rings is not None:
            touching = np.logical_or.reduceat(low, first[:-1])
            shapes += [
                (rings[first[i] : first[i + 1]][low[first[i] : first[i + 1]]], level)
                for i in np.flatnonzero(touching).tolist()
            ]
        if shapes:
            if self._air is not None:
                clear = clearness(self._air, outline.depth)
                shapes = [(ring, clear * share) for ring, share in shapes]
            blur = min(max(0.6, 0.03 * view.pixels_per_metre(outline.depth)), _SOFTEST)
            _darken(canvas, shapes, blur)

    def _cast(self, body: Body) -> FloatArray:
        """Return the outlines (N, 8, 2) m of the spheres' shadows on the ground."""
        sun = self._sun
        middles = body.centres[:, :2] - body.centres[:, 2:] * (sun[:2] / sun[2])
        if self._terrain is not None:
            middles = shadow_places(self._terrain, body.centres, -sun[:2] / sun[2])
        along = sun[:2] / max(float(np.hypot(*sun[:2])), 1e-9)
        across = np.array([-along[1], along[0]])
        # A ball's shadow is an ellipse, longer by the sine of the sun's height.
        ring = _CIRCLE[:, :1] * along / sun[2] + _CIRCLE[:, 1:] * across
        return np.asarray(middles[:, None] + body.radii[:, None, None] * ring, np.float64)


def _below(
    body: Body, label: str, terrain: Terrain | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return rings (N, 8, 2) m on the ground below the spheres, and which are close to it."""
    car = label == 'car'
    wide = 0.8 if car else _WIDER
    rings = body.centres[:, None, :2] + wide * body.radii[:, None, None] * _CIRCLE
    lowest = body.centres[:, 2] - body.radii
    if terrain is not None:
        lowest -= terrain.heights(body.centres[:, :2])
    low = lowest < (0.5 if car else _TOUCHING)
    return np.asarray(rings, np.float64), np.asarray(low, bool)


def _on_canvas(
    rings: FloatArray, view: View, terrain: Terrain | None
) -> NDArray[np.float32] | None:
    """Return canvas pixels of places (N, K, 2) m on the ground; None if some lie behind."""
    optical = rings @ view.to_optical.rotation[:, :2].T + view.to_optical.translation
    if terrain is not None:
        optical += terrain.heights(rings)[..., None] * view.to_optical.rotation[:, 2]
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


# Shells of a part, as shares of its radius, and how high they stand above its rim.
_SHELLS = np.array([1.0, 0.9, 0.74, 0.52, 0.25])
_HEIGHTS = np.sqrt(1.0 - _SHELLS**2).tolist()
_ALL, _FEW = range(5), (0, 2, 3)
# OpenCV fills this much (pixels) beyond a polygon's edge.
_BRIM = 0.5
# How much of a part's depth before the others shows as relief.
_RELIEF = 0.35
_STEEPEST = 2.2
_FOLD_TILE = 512
# Pixels of the tiles per metre of body; how high folds are, m; how uneven colours are.
_TILE_SCALE = 300.0
_FOLD_HEIGHT = 0.009
_WEAVE = 0.07
_BARE, _HARD, _CLOTH = 1, 2, 255
_SKIN_PARTS = frozenset({'head', 'neck', 'left_hand', 'right_hand'})
_HARD_PARTS = frozenset({'body', 'cabin', 'roof', 'wheel', 'head_light', 'tail_light'})


class BodyPicture:
    """Paints the movers of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._air = air_colour(world.light)
        self._exposure = world.light.exposure
        random = np.random.default_rng((world.seed, 3))
        folds = noise_tile(random, _FOLD_TILE, 1.3, 120, 8)
        # Cloth hangs: folds run more down than across.
        folds = np.asarray(cv2.GaussianBlur(folds, (0, 0), sigmaX=1.0, sigmaY=5.0), np.float32)
        self._folds = pyramid(folds, 16)
        self._weave = pyramid(noise_tile(random, _FOLD_TILE, 0.5, 60, 1.5), 16)

    def paint(self, canvas: Image, view: View, outline: Outline) -> None:
        """Paint one mover onto a canvas."""
        state = outline.state
        smear = own_motion(view, state.position, state.velocity) * self._exposure
        reach = min(float(np.abs(smear).max()), LONGEST)
        area = area_within(outline.bounds, canvas.shape, 1.0 + 0.5 * reach)
        if area.empty:
            return
        x0, y0, x1, y1 = outline.bounds
        fine = _fineness(max(x1 - x0, y1 - y0))
        colours, relief = self._shapes(outline, area, fine, view)
        light = self._shading(colours, relief, area, fine, view, outline)
        kind = cv2.extractChannel(colours, 3)
        lit = cv2.multiply(cv2.cvtColor(colours, cv2.COLOR_BGRA2BGR), light, dtype=cv2.CV_8U)
        mask = cv2.threshold(kind, 0, 255, cv2.THRESH_BINARY)[1]
        picture = cv2.merge([*cv2.split(lit), mask])
        if fine > 1:
            size = (area.width, area.height)
            picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
        picture = smeared(np.asarray(picture, np.uint8), smear)
        away = float(np.linalg.norm(state.position - view.position))
        clear = clearness(self._world.light, away)
        alpha = np.asarray(cv2.extractChannel(picture, 3), np.uint8)
        lay_over(area.of(canvas), tinted(picture, np.ones(3), clear, self._air), alpha)

    def _shapes(
        self, outline: Outline, area: CanvasArea, fine: int, view: View
    ) -> tuple[Image, Floats]:
        """Return colours (H, W, 4) and relief (H, W) on a canvas ``fine`` times as fine.

        The fourth channel is the kind of surface, 0 where there is nothing.
        """
        size = (area.height * fine, area.width * fine)
        colours = np.zeros((*size, 4), np.uint8)
        relief = np.zeros(size, np.float32)
        corner = np.array([area.x0, area.y0]) - 0.5
        body, scale = outline.body, fine * view.pixels_per_metre(outline.depth)
        middles = (outline.middles[:, None] - corner) * fine - 0.5
        apart = (outline.rims - corner) * fine - 0.5 - middles
        length = np.sqrt((apart * apart).sum(axis=2, keepdims=True))
        apart *= np.maximum(1.0 - _BRIM / np.maximum(length, _BRIM), 0.0)
        shells = fixed_point(middles + _SHELLS[:, None, None, None] * apart)
        shells = shells.reshape(len(_SHELLS), -1, 2)
        for part, hull in zip(outline.parts, outline.hulls, strict=True):
            begin = body.first[part]
            points = shells.take(hull + begin * OUTLINE_POINTS, axis=1)
            radius = scale * float(body.radii[begin])
            name = body.names[part]
            kind = _BARE if name in _SKIN_PARTS else _HARD if name in _HARD_PARTS else _CLOTH
            colour = (*body.colours[part].tolist(), kind)
            cv2.fillConvexPoly(colours, points[0], colour, cv2.LINE_8, SHIFT)
            ahead = outline.depth - float(outline.depths[begin])
            base = _RELIEF * scale * min(max(ahead, -0.5), 0.5)
            for i in _FEW if radius < 4.0 else _ALL:
                height = base + radius * _HEIGHTS[i]
                cv2.fillConvexPoly(relief, points[i], height, cv2.LINE_8, SHIFT)
            if name == 'head':
                _paint_face(colours, outline, part, fine, corner, view)
        return colours, relief

    def _shading(
        self,
        colours: Image,
        relief: Floats,
        area: CanvasArea,
        fine: int,
        view: View,
        outline: Outline,
    ) -> Floats:
        """Return BGR factors (H, W, 3)."""
        light = self._world.light
        scale = fine * view.pixels_per_metre(outline.depth)
        cloth = (colours[..., 3] == _CLOTH).view(np.uint8)
        anchor = fine * (outline.middles[0] - (area.x0, area.y0))
        folds = _cut(self._folds, relief.shape, scale, anchor, outline.mover.id)
        weave = _cut(self._weave, relief.shape, 1.7 * scale, anchor, outline.mover.id)
        uneven = cv2.copyTo(weave, cloth) * np.float32(_WEAVE) + np.float32(1.0)
        smooth = cv2.GaussianBlur(relief, (0, 0), min(max(0.6, 0.012 * scale), 4.0))
        rough = cv2.scaleAdd(cv2.copyTo(folds, cloth), _FOLD_HEIGHT * scale, smooth)
        x = _limited(np.asarray(cv2.Sobel(rough, cv2.CV_32F, 1, 0, scale=0.125), np.float32))
        y = _limited(np.asarray(cv2.Sobel(rough, cv2.CV_32F, 0, 1, scale=0.125), np.float32))
        uneven_length = uneven / np.sqrt(x * x + y * y + np.float32(1.0))
        rotation = view.to_optical.rotation

        def facing(direction: FloatArray) -> Floats:
            """Cosine between what a pixel faces and a direction, uneven as cloth is."""
            along_x, along_y, along_z = (np.float32(-v) for v in direction)
            return np.asarray((along_x * x + along_y * y + along_z) * uneven_length, np.float32)

        sky = np.float32(0.72) * uneven + np.float32(0.28) * facing(rotation[:, 2])
        sunny = np.maximum(facing(rotation @ light.sun_direction), np.float32(0.0))
        tint = np.array(light.tint)
        lamps = lamps_at(self._world.lamps, outline.state.position[:2])
        from_sky, from_sun = light.ambient * tint + 0.8 * lamps, light.sun * tint
        both = cv2.merge([sky, sunny])
        return np.asarray(cv2.transform(both, np.column_stack([from_sky, from_sun])), np.float32)


def _cut(
    tiles: list[Floats], shape: tuple[int, ...], scale: float, anchor: FloatArray, turn: int
) -> Floats:
    """Return a cut of the tile whose metres are nearest to ``scale`` pixels.

    It hangs on ``anchor`` (2,), a pixel that moves with the body.
    """
    level = round(math.log2(max(_TILE_SCALE / scale, 1.0)))
    tile = tiles[min(level, len(tiles) - 1)]
    x, y = (round(v) for v in anchor.tolist())
    rows = np.arange(31 * turn - y, 31 * turn - y + shape[0]) % tile.shape[0]
    columns = np.arange(17 * turn - x, 17 * turn - x + shape[1]) % tile.shape[1]
    return np.asarray(tile.take(rows, axis=0).take(columns, axis=1), np.float32)


def _limited(slopes: Floats) -> Floats:
    steep = np.float32(_STEEPEST)
    return np.asarray(np.minimum(np.maximum(slopes, -steep), steep), np.float32)


def _fineness(size: float) -> int:
    """Return how many fine pixels make one of the canvas for a body of ``size`` px."""
    for limit, fine in ((36.0, 4), (75.0, 3), (280.0, 2)):
        if size < limit:
            return fine
    return 1


def _paint_face(
    colours: Image, outline: Outline, part: int, fine: int, corner: FloatArray, view: View
) -> None:
    """Paint the eyes and mouth of a person that looks towards the camera."""
    body = outline.body
    skull, size = body.centres[body.first[part]], float(body.radii[body.first[part]])
    heading = outline.state.heading
    ahead = np.array([math.cos(heading), math.sin(heading), 0.0])
    left = np.array([-ahead[1], ahead[0], 0.0])
    towards = view.position - skull
    towards /= max(float(np.linalg.norm(towards)), 1e-6)
    pixels = fine * size * view.pixels_per_metre(float(outline.depths[body.first[part]]))
    if towards @ ahead < 0.15 or pixels < 5.0:
        return

    def spot(place: FloatArray, wide: float, tall: float, colour: FloatArray) -> None:
        x, y = ((view.canvas_of(place[None])[0][0] - corner) * fine - 0.5).tolist()
        axes = (max(1, round(wide * pixels)), max(1, round(tall * pixels)))
        centre = (round(x), round(y))
        cv2.ellipse(colours, centre, axes, 0, 0, 360, (*colour.tolist(), _BARE), -1)

    skin = body.colours[part]
    for side in (-0.38, 0.38):
        eye = skull + size * (0.86 * ahead + side * left + np.array([0.0, 0.0, -0.05]))
        if (eye - skull) @ towards >= 0.2 * size:
            spot(eye, 0.17, 0.09, 0.45 * skin)
    mouth = skull + size * (0.85 * ahead + np.array([0, 0, -0.75]))
    spot(mouth, 0.25, 0.06, 0.75 * skin * (0.85, 0.85, 1.1))

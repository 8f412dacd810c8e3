"""Paints buildings, containers and low walls: textured faces of upright prisms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np

from mmedge_lab.simulation.compositing import area_of
from mmedge_lab.simulation.light import air_colour, clearness, lamps_at
from mmedge_lab.simulation.painting_order import Standing
from mmedge_lab.simulation.textures import Image, noise_tile, pyramid, wall_texture
from mmedge_lab.simulation.view import SHIFT, View, fixed_point
from mmedge_lab.simulation.world import Building, World
from mmedge_ros.core.data_types import FloatArray

_NEAR = 0.1
# Tangents of the directions that faces are cut at; wider than any canvas.
_WIDE = 2.9
_CUTS = np.array([[1.0, 0.0, _WIDE], [-1.0, 0.0, _WIDE], [0.0, 1.0, _WIDE], [0.0, -1.0, _WIDE]])
_GLOW = np.array([120.0, 195.0, 235.0])
_ROOF_SCALE = 8.0
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Face:
    """A rectangle in space: ``origin`` (3,) m, ``across`` and ``along`` (3,) m span it.

    ``pictures`` are its lit texture and ever smaller ones of it; ``along`` runs down its rows.
    """

    origin: FloatArray
    across: FloatArray
    along: FloatArray
    outward: FloatArray
    pictures: tuple[Image, ...]

    @property
    def corners(self) -> FloatArray:
        """Corners (4, 3) m, in a ring."""
        spanned = [np.zeros(3), self.across, self.across + self.along, self.along]
        return np.asarray(self.origin + np.array(spanned), np.float64)


class SeenBuilding:
    """A building in view: the outlines (N, 2) of its visible faces on the canvas."""

    def __init__(
        self, painter: BuildingPicture, building: Building, seen: list[tuple[Face, FloatArray]]
    ) -> None:
        self._painter = painter
        self._seen = seen
        points = np.concatenate([outline for _, outline in seen])
        foot = np.asarray(building.footprint, np.float64)
        left, right = float(points[:, 0].min()), float(points[:, 0].max())
        self.standing = Standing(foot.mean(axis=0), left, right, foot)

    def paint(self, canvas: Image, view: View) -> None:
        """Paint the building onto a canvas."""
        for face, outline in self._seen:
            self._painter.paint_face(canvas, view, face, outline)

    def paint_ids(self, ids: Image, number: int) -> None:
        """Enter what the building covers into a canvas (H, W) of ids."""
        for _, outline in self._seen:
            cv2.fillConvexPoly(ids, fixed_point(outline), number, cv2.LINE_8, SHIFT)


class BuildingPicture:
    """Paints the buildings of one world."""

    def __init__(self, world: World) -> None:
        self._light = world.light
        self._air = air_colour(world.light)
        self._buildings = world.buildings
        self._faces = [face for b in world.buildings for face in _faces(b, world)]
        self._owner = [i for i in range(len(world.buildings)) for _ in range(5)]
        self._corners = np.array([f.corners for f in self._faces]).reshape(-1, 4, 3)
        self._outward = np.array([f.outward for f in self._faces]).reshape(-1, 3)
        self._offset = (self._outward * self._corners[:, 0]).sum(axis=1)

    def in_view(self, view: View) -> Iterator[SeenBuilding]:
        """Find the buildings of which something is on the canvas."""
        facing = self._outward @ view.position > self._offset
        optical = view.to_optical.apply(self._corners)
        canvas = view.canvas(optical)
        # A face of which every corner is in front of all planes needs no cutting.
        whole = (optical[..., 2] > _NEAR).all(axis=1)
        whole &= (optical @ _CUTS.T > 0.0).all(axis=(1, 2))
        seen: dict[int, list[tuple[Face, FloatArray]]] = {}
        for i in np.flatnonzero(facing).tolist():
            outline = canvas[i] if whole[i] else _cut_outline(optical[i], view)
            shape = (view.lens.height, view.lens.width)
            if outline is None or area_of(outline, shape, 0.0).empty:
                continue
            seen.setdefault(self._owner[i], []).append((self._faces[i], outline))
        for owner, faces in seen.items():
            yield SeenBuilding(self, self._buildings[owner], faces)

    def paint_face(self, canvas: Image, view: View, face: Face, outline: FloatArray) -> None:
        """Paint one face, inside of its outline, onto a canvas."""
        area = area_of(outline, canvas.shape, 1.0)
        extent = np.ptp(outline, axis=0)
        picture = face.pictures[0]
        for smaller in face.pictures[1:]:
            if smaller.shape[0] < extent[1] or smaller.shape[1] < extent[0]:
                break
            picture = smaller
        rows, columns = picture.shape[:2]
        matrix = view.matrix()
        spanned = np.column_stack(
            [
                matrix[:, :3] @ face.across / columns,
                matrix[:, :3] @ face.along / rows,
                matrix @ np.append(face.origin, 1.0),
            ]
        )
        # Texture pixels are centred half a pixel in; the area's corner is the new origin.
        half = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
        move = np.array([[1.0, 0.0, -area.x0], [0.0, 1.0, -area.y0], [0.0, 0.0, 1.0]])
        warped = cv2.warpPerspective(
            picture, move @ spanned @ half, (area.width, area.height),
            flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE,
        )  # fmt: skip
        middle = face.origin + 0.5 * (face.across + face.along)
        clear = clearness(self._light, float(np.linalg.norm(middle - view.position)))
        matrix = np.column_stack([clear * np.eye(3), (1.0 - clear) * self._air])
        warped = cv2.transform(warped, matrix)
        mask = np.zeros((area.height, area.width), np.uint8)
        shape = fixed_point(outline - (area.x0, area.y0))
        cv2.fillConvexPoly(mask, shape, 255, cv2.LINE_8, SHIFT)
        cv2.copyTo(warped, mask, area.of(canvas))


def _cut_outline(corners: FloatArray, view: View) -> FloatArray | None:
    """Return a face's outline (N, 2) on the canvas, cut at what can be projected."""
    polygon = _cut(corners, np.array([0.0, 0.0, 1.0]), _NEAR)
    for plane in _CUTS:
        if len(polygon) < 3:
            return None
        polygon = _cut(polygon, plane, 0.0)
    return view.canvas(polygon) if len(polygon) > 2 else None


def _cut(polygon: FloatArray, normal: FloatArray, limit: float) -> FloatArray:
    """Return the part of a convex polygon (N, 3) whose points p have p . normal >= limit."""
    inside = polygon @ normal - limit
    if (inside >= 0.0).all():
        return polygon
    kept = []
    for i in range(len(polygon)):
        a, b = inside[i - 1], inside[i]
        if (a >= 0.0) != (b >= 0.0):
            kept.append(polygon[i - 1] + (polygon[i] - polygon[i - 1]) * (a / (a - b)))
        if b >= 0.0:
            kept.append(polygon[i])
    return np.array(kept).reshape(-1, 3)


def _faces(building: Building, world: World) -> Iterator[Face]:
    """Make the four walls and the roof of a building."""
    random = np.random.default_rng((building.seed, 5))
    foot = np.asarray(building.footprint, np.float64)
    up = building.height * _UP
    lit = {'night': 0.3, 'lamps': 0.35, 'dusk': 0.25}.get(world.light.name, 0.0)
    for a, b in zip(foot, np.roll(foot, -1, axis=0), strict=True):
        # From outside, a wall's left end is its second corner.
        across = np.append(a - b, 0.0)
        width = float(np.linalg.norm(across))
        outward = np.array([(b - a)[1], -(b - a)[0], 0.0]) / max(width, 1e-9)
        wall, glow = wall_texture(width, building.height, building.colour, lit, random)
        light = _light_on(world, outward, 0.5 * (a + b) + outward[:2])
        picture = wall * light + glow[..., None] * _GLOW
        yield Face(np.append(b, 0.0) + up, across, -up, outward, _pictures(picture))
    yield _roof(building, world, random)


def _roof(building: Building, world: World, random: np.random.Generator) -> Face:
    foot = np.asarray(building.footprint, np.float64)
    across, along = np.append(foot[1] - foot[0], 0.0), np.append(foot[3] - foot[0], 0.0)
    sides = [float(np.linalg.norm(side)) * _ROOF_SCALE for side in (along, across)]
    size = [max(2, min(256, round(side))) for side in sides]
    grain = 1.0 + 0.06 * noise_tile(random, 256, 0.6, 64)[: size[0], : size[1]]
    colour = 0.6 * np.array(building.colour) + 0.4 * random.uniform(60.0, 130.0)
    picture = grain[..., None] * colour * _light_on(world, _UP, foot.mean(axis=0))
    top = np.append(foot[0], building.height)
    return Face(top, across, along, _UP, _pictures(picture))


def _light_on(world: World, outward: FloatArray, place: FloatArray) -> FloatArray:
    """Return BGR factors (3,) of a face."""
    light = world.light
    sky = light.ambient * (0.78 + 0.22 * float(outward[2]))
    sun = light.sun * max(0.0, float(outward @ light.sun_direction))
    lamps = 0.6 * lamps_at(world.lamps, place)
    return np.asarray((sky + sun) * np.array(light.tint) + lamps, np.float64)


def _pictures(picture: FloatArray) -> tuple[Image, ...]:
    """Return a picture as bytes, and ever smaller ones of it."""
    return tuple(pyramid(np.clip(np.rint(picture), 0, 255).astype(np.uint8), 7))

"""The simulated camera: pictures of a world, and what they truly show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import cv2
import numpy as np

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.body_picture import BodyPicture, ShadowPicture
from mmedge_lab.simulation.building_picture import BuildingPicture, SeenBuilding
from mmedge_lab.simulation.camera_faults import CameraFaults
from mmedge_lab.simulation.exposure import PictureNoise
from mmedge_lab.simulation.ground_depth import GroundDepth, VisibleGround, spared
from mmedge_lab.simulation.ground_picture import GroundPicture
from mmedge_lab.simulation.lamp_picture import LampPicture, SeenLamp
from mmedge_lab.simulation.outline import Outline, outlines_of, paint_ids
from mmedge_lab.simulation.painting_order import Standing, painting_order
from mmedge_lab.simulation.plant_picture import PlantPicture, SeenPlant
from mmedge_lab.simulation.textures import Image
from mmedge_lab.simulation.view import Lens, View, view_at
from mmedge_lab.simulation.world import World
from mmedge_ros.core.data_types import Box, FloatArray

# Ids of movers on the canvas of ids are 1 to 254; 255 is everything that stands.
_STATIC = 255
_MOST_MOVERS = 254
_JPEG_QUALITY = 88


def as_jpeg(picture: Image) -> bytes:
    """Return a picture (H, W, 3) BGR as the simulated camera sends it.

    :raises SimulationError: if OpenCV was built without JPEG
    """
    done, data = cv2.imencode('.jpg', picture, (cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY))
    if not done:
        raise SimulationError('OpenCV cannot write JPEG; install a build that can')
    return bytes(data)


class PicturedObject(NamedTuple):
    """One mover in a picture.

    ``box`` encloses its whole outline, hidden parts too, cut at the picture (0 to its width
    and height); None if no part of it is there. ``visibility`` is the share (0..1) of the
    outline that is in the picture and not hidden.
    """

    id: int
    label: str
    box: Box | None
    visibility: float


@dataclass(frozen=True, eq=False)
class TruePicture:
    """``image`` is (H, W, 3) uint8 BGR; ``objects`` are all movers of the world."""

    image: Image
    objects: tuple[PicturedObject, ...]


_Seen: TypeAlias = SeenPlant | SeenLamp | SeenBuilding


class _Thing(NamedTuple):
    """Something to paint: what stands (``seen``) or a mover's ``outline``."""

    standing: Standing
    seen: _Seen | None
    outline: Outline | None


class CameraSimulator:
    """Takes pictures of a world at any instants, in any order."""

    def __init__(self, world: World, effects: bool = True) -> None:
        """Make a camera; it prepares the surroundings, in a second or two, at its first picture.

        :param effects: movers' shadows, blur and noise; without them a picture changes only
            where a mover is
        """
        if len(world.movers) > _MOST_MOVERS:
            raise SimulationError(
                f'a world with {len(world.movers)} movers; a camera holds {_MOST_MOVERS} apart'
            )
        self._world = world
        self._effects = effects
        self._lens = Lens(world.rig.camera)
        self._faults = CameraFaults(world)
        self._depth = GroundDepth(world.terrain, self._lens) if world.terrain else None

    @cached_property
    def _painters(self) -> tuple[PlantPicture, LampPicture, BuildingPicture]:
        return PlantPicture(self._world), LampPicture(self._world), BuildingPicture(self._world)

    @cached_property
    def _ground(self) -> GroundPicture:
        return GroundPicture(self._world, self._lens)

    @cached_property
    def _movers(self) -> tuple[BodyPicture, ShadowPicture, PictureNoise]:
        world = self._world
        shadows = ShadowPicture(world.light, world.hard is not None, world.terrain)
        return BodyPicture(world), shadows, PictureNoise(world)

    def picture(self, t: float) -> TruePicture:
        """Return the picture taken at the instant ``t`` (s), the middle of its exposure."""
        view = view_at(self._world, self._lens, t)
        things = self._things(view, t)
        ground = self._depth.at(view) if self._depth else None
        canvas = self._ground.paint(view, ground.depths if ground else None)
        bodies, shadows, noise = self._movers
        outlines = [thing.outline for thing in things if thing.outline is not None]
        if self._effects:
            cast = [o for o in outlines if ground is None or ground.shows(o.state.position)]
            shadows.paint(canvas, view, cast)
        for thing in things:
            with spared(ground, canvas, thing.standing):
                if thing.seen is not None:
                    thing.seen.paint(canvas, view)
                if thing.outline is not None:
                    bodies.paint(canvas, view, thing.outline)
        if self._effects:
            distance = float(np.median([o.depth for o in outlines])) if outlines else 20.0
            drone = self._world.path.state(t)
            canvas = noise.blur(canvas, view, drone, max(distance, 2.0))
        image = self._lens.bend(canvas, view.turn)
        if self._effects:
            image = noise.expose(self._faults.strike(image, t), t)
        return TruePicture(image, self._seen(things, ground, view))

    def truth(self, t: float) -> tuple[PicturedObject, ...]:
        """Return the objects of ``picture(t)`` without painting it."""
        view = view_at(self._world, self._lens, t)
        ground = self._depth.at(view) if self._depth else None
        return self._seen(self._things(view, t), ground, view)

    def _seen(
        self, things: list[_Thing], ground: VisibleGround | None, view: View
    ) -> tuple[PicturedObject, ...]:
        ids = np.zeros((self._lens.height, self._lens.width), np.uint8)
        moving = [thing.standing for thing in things if thing.outline is not None]
        left = min((standing.left for standing in moving), default=0.0)
        right = max((standing.right for standing in moving), default=0.0)
        outlines: dict[int, tuple[Outline, int, float]] = {}
        for thing in things:
            standing = thing.standing
            if thing.outline is not None:
                number = len(outlines) + 1
                with spared(ground, ids, standing):
                    area = paint_ids(ids, thing.outline, number)
                outlines[thing.outline.mover.id] = (thing.outline, number, area)
            elif thing.seen and standing.left < right and left < standing.right:
                with spared(ground, ids, standing):
                    thing.seen.paint_ids(ids, _STATIC)
        ids = np.asarray(cv2.bitwise_and(ids, self._lens.inside), np.uint8)
        counts = cv2.calcHist([ids], [0], None, [256], [0, 256]).ravel()
        seen = []
        for mover in self._world.movers:
            box, visibility = None, 0.0
            if mover.id in outlines:
                outline, number, area = outlines[mover.id]
                box = outline.box
                if box is not None:
                    box = self._lens.rolled(box, view.turn)
                    visibility = float(min(counts[number] / max(area, 1.0), 1.0))
            seen.append(PicturedObject(mover.id, mover.label, box, visibility))
        return tuple(seen)

    def _things(self, view: View, t: float) -> list[_Thing]:
        """Return everything in view, farthest first."""
        things = []
        for outline in outlines_of(self._world.movers, t, view):
            x0, _, x1, _ = outline.bounds
            apart = outline.body.centres - outline.state.position
            reach = float(np.abs(apart[:, :2]).max())
            place, height = outline.state.position[:2], float(outline.state.position[2])
            standing = Standing(place, x0, x1, _prism(outline), reach, height)
            things.append(_Thing(standing, None, outline))
        standing_in_view = (seen for painter in self._painters for seen in painter.in_view(view))
        things += [_Thing(seen.standing, seen, None) for seen in standing_in_view]
        order = painting_order(view.position[:2], [thing.standing for thing in things])
        return [things[i] for i in order]


def _prism(outline: Outline) -> FloatArray | None:
    """Return the corners (4, 2) m of a car on the ground; None for what is compact."""
    if outline.mover.label != 'car':
        return None
    body, heading = outline.body, outline.state.heading
    turn = np.array([[np.cos(heading), np.sin(heading)], [-np.sin(heading), np.cos(heading)]])
    local = (body.centres[:, :2] - outline.state.position[:2]) @ turn.T
    low = (local - body.radii[:, None]).min(axis=0)
    high = (local + body.radii[:, None]).max(axis=0)
    ring = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    return np.asarray(outline.state.position[:2] + ring @ turn, np.float64)

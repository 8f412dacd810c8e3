"""A world made by hand, in which everything is where a test puts it.

The drone hovers at ``HEIGHT`` m above the origin and looks along x, ``PITCH`` rad down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mmedge_lab.simulation.scenario import Scenario
from mmedge_lab.simulation.world import (
    Body,
    Building,
    DroneState,
    Ground,
    Lamp,
    Mover,
    MoverState,
    Plant,
    Rig,
    SceneLight,
    Strip,
    Timing,
    World,
)
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import Transform

HEIGHT = 3.0
PITCH = 0.3
# Parts of somebody 1.75 m tall: name, colour, spheres as x ahead, y left, z up, radius.
PERSON = (
    ('head', (150, 175, 215), ((0.0, 0.0, 1.65, 0.1),)),
    ('torso', (90, 50, 160), ((0.0, 0.15, 1.4, 0.08), (0.0, -0.15, 1.4, 0.08),
                              (0.0, 0.1, 0.95, 0.1), (0.0, -0.1, 0.95, 0.1))),
    ('left_arm', (90, 50, 160), ((0.0, 0.22, 1.38, 0.06), (0.05, 0.28, 0.85, 0.05))),
    ('right_arm', (90, 50, 160), ((0.0, -0.22, 1.38, 0.06), (0.05, -0.28, 0.85, 0.05))),
    ('left_leg', (95, 65, 45), ((0.0, 0.1, 0.9, 0.09), (0.1, 0.12, 0.06, 0.06))),
    ('right_leg', (95, 65, 45), ((0.0, -0.1, 0.9, 0.09), (-0.1, -0.12, 0.06, 0.06))),
)  # fmt: skip
CAR = (
    ('body', (40, 40, 160), tuple((x, y, z, 0.15) for x in (-1.9, 1.9) for y in (-0.7, 0.7)
                                  for z in (0.4, 0.7))),
    ('cabin', (50, 50, 50), tuple((x, y, z, 0.1) for x in (-1.2, 0.6) for y in (-0.6, 0.6)
                                  for z in (0.8, 1.35))),
    ('wheel', (30, 30, 30), ((1.2, 0.75, 0.3, 0.3),)),
    ('wheel', (30, 30, 30), ((1.2, -0.75, 0.3, 0.3),)),
)  # fmt: skip


@dataclass(eq=False)
class StraightMover:
    """Moves on a straight line, turned by ``heading``; a test may move it in between."""

    id: int
    label: str
    begin: FloatArray
    velocity: FloatArray
    heading: float
    parts: tuple[
        tuple[str, tuple[int, int, int], tuple[tuple[float, float, float, float], ...]], ...
    ]
    reflectivity: float = 1.0

    def state(self, t: float) -> MoverState:
        return MoverState(self.begin + t * self.velocity, self.velocity, self.heading)

    def body(self, t: float) -> Body:
        spheres = np.array([sphere for _, _, part in self.parts for sphere in part])
        c, s = math.cos(self.heading), math.sin(self.heading)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        counts = [len(part) for _, _, part in self.parts]
        return Body(
            centres=spheres[:, :3] @ turn.T + self.begin + t * self.velocity,
            velocities=np.tile(self.velocity, (len(spheres), 1)),
            radii=spheres[:, 3],
            first=(0, *np.cumsum(counts).tolist()),
            names=tuple(name for name, _, _ in self.parts),
            colours=np.array([colour for _, colour, _ in self.parts], np.uint8),
        )


def person(
    number: int, x: float, y: float, heading: float = math.pi,
    velocity: tuple[float, float] = (0, 0),
) -> StraightMover:  # fmt: skip
    return StraightMover(
        number, 'person', np.array([x, y, 0.0]), np.array([*velocity, 0.0]), heading, PERSON
    )


def car(number: int, x: float, y: float, heading: float = 0.0) -> StraightMover:
    return StraightMover(number, 'car', np.array([x, y, 0.0]), np.zeros(3), heading, CAR)


@dataclass(frozen=True, eq=False)
class Hover:
    """The drone's path: it stays, or drifts and turns evenly."""

    velocity: FloatArray
    turn: float = 0.0
    height: float = HEIGHT

    def state(self, t: float) -> DroneState:
        c, s = math.cos(self.turn * t), math.sin(self.turn * t)
        rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        place = np.array([0.0, 0.0, self.height]) + t * self.velocity
        return DroneState(
            Transform(rotation, place), self.velocity, np.array([0.0, 0.0, self.turn])
        )


def building(
    x: float, y: float, size: tuple[float, float] = (4.0, 4.0), height: float = 6.0
) -> Building:
    half = 0.5 * np.array(size)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half + (x, y)
    return Building(corners, height, (120, 140, 165), 3)


def light(name: str = 'day') -> SceneLight:
    day = SceneLight(
        name='day',
        sun_direction=np.array([-0.5, 0.5, math.sqrt(0.5)]),
        sun=0.7,
        ambient=0.4,
        tint=(1.0, 1.0, 1.0),
        fog_visibility=math.inf,
        exposure=0.002,
        noise=1.5,
        sky=np.array([[225.0, 215.0, 200.0], [215.0, 165.0, 110.0]]),
    )
    night = replace(
        day, name='night', sun=0.05, ambient=0.14, exposure=0.02, noise=6.0,
        sky=np.array([[38.0, 26.0, 20.0], [22.0, 12.0, 8.0]]),
    )  # fmt: skip
    fog = replace(day, name='fog', sun=0.08, ambient=0.6, fog_visibility=40.0)
    return {'day': day, 'night': night, 'lamps': replace(night, name='lamps'), 'fog': fog}[name]


def camera(barrel: float = -0.08) -> CameraModel:
    matrix = np.array([[410.0, 0.0, 322.0], [0.0, 411.0, 236.0], [0.0, 0.0, 1.0]])
    return CameraModel(640, 480, matrix, np.array([barrel, 0.01, 2e-4, -3e-4, 0.0]))


def rig(model: CameraModel | None = None) -> Rig:
    c, s = math.cos(PITCH), math.sin(PITCH)
    down = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    return Rig(
        camera=model or camera(),
        camera_pose=Transform(down @ OPTICAL_TO_BODY, np.zeros(3)),
        radar_pose=Transform(down, np.zeros(3)),
        camera_timing=Timing(0.0, 1 / 30, 0.0, 0.015, 0.0),
        radar_timing=Timing(0.0, 1 / 20, 0.0, 0.03, 0.0),
    )


def world(
    *movers: Mover,
    buildings: tuple[Building, ...] = (),
    plants: tuple[Plant, ...] = (),
    lamps: tuple[Lamp, ...] = (),
    lit: str = 'day',
    path: Hover | None = None,
    model: CameraModel | None = None,
    seed: int = 5,
) -> World:
    road = Strip(np.array([[-60.0, 6.0], [60.0, 6.0]]), 3.0, 'asphalt')
    return World(
        scenario=Scenario('park', lit, 'near'),
        seed=seed,
        seconds=4.0,
        ground=Ground('grass', (road,), 7),
        buildings=buildings,
        plants=plants,
        lamps=lamps,
        light=light(lit),
        movers=movers,
        path=path or Hover(np.zeros(3)),
        rig=rig(model),
    )

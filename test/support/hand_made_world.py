"""Worlds of one's own making: what a sensor must see is plain to reckon."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

LOOKING_FORWARD = Transform.identity()


@dataclass(frozen=True)
class Ball:
    """A sphere that moves straight on; ``height`` is that of its middle."""

    place: tuple[float, float] = (10.0, 0.0)
    speed: tuple[float, float] = (0.0, 0.0)
    height: float = 1.0
    radius: float = 0.3
    reflectivity: float = 1.0
    id: int = 1
    label: str = 'person'

    def state(self, t: float) -> MoverState:
        velocity = np.array([*self.speed, 0.0])
        return MoverState(np.array([*self.place, 0.0]) + t * velocity, velocity, 0.0)

    def body(self, t: float) -> Body:
        state = self.state(t)
        return Body(
            (state.position + np.array([0.0, 0.0, self.height]))[None],
            state.velocity[None],
            np.array([self.radius]),
            (0, 1),
            ('torso',),
            np.full((1, 3), 128, np.uint8),
        )


@dataclass(frozen=True)
class StraightFlight:
    """A drone that flies straight on while it turns about the upright axis."""

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    height: float = 1.0
    yaw_rate: float = 0.0

    def state(self, t: float) -> DroneState:
        yaw = self.yaw_rate * t
        turned = np.array(
            [
                [math.cos(yaw), -math.sin(yaw), 0.0],
                [math.sin(yaw), math.cos(yaw), 0.0],
                [0.0, 0.0, 1.0],
            ]
        )
        velocity = np.array(self.velocity)
        place = np.array([0.0, 0.0, self.height]) + t * velocity
        turn = np.array([0.0, 0.0, self.yaw_rate])
        return DroneState(Transform(turned, place), velocity, turn)


def rig(radar_pose: Transform = LOOKING_FORWARD) -> Rig:
    """A camera and a radar that look forward."""
    k = np.array([[420.0, 0.0, 319.5], [0.0, 420.0, 239.5], [0.0, 0.0, 1.0]])
    return Rig(
        camera=CameraModel(640, 480, k, np.zeros(5)),
        camera_pose=Transform(OPTICAL_TO_BODY, np.zeros(3)),
        radar_pose=radar_pose,
        camera_timing=Timing(0.011, 1 / 30, 4e-4, 0.015, 0.0015),
        radar_timing=Timing(0.02, 0.05, 6e-4, 0.026, 0.0015),
    )


def house(x: float, y: float, width: float = 6.0, depth: float = 4.0, height: float = 8.0):
    """Return an upright house whose near wall stands at ``x``, with its middle at ``y``."""
    low, high = y - 0.5 * width, y + 0.5 * width
    corners = np.array([[x, low], [x + depth, low], [x + depth, high], [x, high]])
    return Building(corners, height, (120, 120, 120), 1)


def world(
    movers: Sequence[Mover] = (),
    buildings: Sequence[Building] = (),
    plants: Sequence[Plant] = (),
    lamps: Sequence[Lamp] = (),
    path: StraightFlight | None = None,
    radar_pose: Transform = LOOKING_FORWARD,
    seed: int = 1,
    seconds: float = 1.0,
) -> World:
    """Return a meadow by day with what is given."""
    up: FloatArray = np.array([0.0, 0.0, 1.0])
    sky = np.full((2, 3), 200.0)
    return World(
        scenario=Scenario('meadow', 'day', 'near'),
        seed=seed,
        seconds=seconds,
        ground=Ground('grass', (), 1),
        buildings=tuple(buildings),
        plants=tuple(plants),
        lamps=tuple(lamps),
        light=SceneLight('day', up, 0.7, 0.4, (1.0, 1.0, 1.0), math.inf, 0.001, 1.0, sky),
        movers=tuple(movers),
        path=path or StraightFlight(),
        rig=rig(radar_pose),
    )


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
    return {'day': day, 'night': night}[name]


def camera(barrel: float = -0.08) -> CameraModel:
    matrix = np.array([[410.0, 0.0, 322.0], [0.0, 411.0, 236.0], [0.0, 0.0, 1.0]])
    return CameraModel(640, 480, matrix, np.array([barrel, 0.01, 2e-4, -3e-4, 0.0]))


def park(
    *movers: Mover,
    buildings: tuple[Building, ...] = (),
    lit: str = 'day',
    model: CameraModel | None = None,
) -> World:
    """Return a meadow with a road; the drone hovers 3 m up and looks ``PITCH`` rad down."""
    c, s = math.cos(PITCH), math.sin(PITCH)
    down = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
    road = Strip(np.array([[-60.0, 6.0], [60.0, 6.0]]), 3.0, 'asphalt')
    return replace(
        world(movers, buildings, path=StraightFlight(height=3.0), seed=5, seconds=4.0),
        ground=Ground('grass', (road,), 7),
        light=light(lit),
        rig=Rig(
            camera=model or camera(),
            camera_pose=Transform(down @ OPTICAL_TO_BODY, np.zeros(3)),
            radar_pose=Transform(down, np.zeros(3)),
            camera_timing=Timing(0.0, 1 / 30, 0.0, 0.015, 0.0),
            radar_timing=Timing(0.0, 1 / 20, 0.0, 0.03, 0.0),
        ),
    )

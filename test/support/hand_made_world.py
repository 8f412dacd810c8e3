"""Worlds of one's own making: what a sensor must see is plain to reckon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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

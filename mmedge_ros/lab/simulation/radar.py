"""The simulated radar: one scan of a world at any instant."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.lab.simulation.line_of_sight import LineOfSight
from mmedge_ros.lab.simulation.radar_clutter import Clutter
from mmedge_ros.lab.simulation.radar_detector import RadarParameters, Signals, detect
from mmedge_ros.lab.simulation.radar_echoes import (
    Echoes,
    WallMirrors,
    ground_ghosts,
    joined,
    mover_echoes,
)
from mmedge_ros.lab.simulation.world import World

_STREAM = 31
# The biggest mover: nothing of it reaches farther from its middle.
_MOVER_REACH = 4.0
# Weaker over the noise, an echo is not worth asking what hides it.
_FAINT = 1.0


class RadarSimulator:
    """Looks at a world; scans depend on the instant and their number only."""

    def __init__(self, world: World, parameters: RadarParameters | None = None) -> None:
        self.parameters = parameters or RadarParameters()
        self._world = world
        self._clutter = Clutter(world)
        self._sight = LineOfSight(world.buildings, world.plants)
        self._mirrors = WallMirrors(world.buildings)

    def scan(self, t: float, number: int) -> NDArray[np.float32]:
        """Return the scan whose middle is ``t`` s into the flight, (N, 6) float32.

        Columns are x, y, z (m, radar_link: x forward, y left, z up), velocity (m/s, positive =
        receding), snr and noise (dB). ``number`` chooses the noise.
        """
        drone = self._world.path.state(t)
        pose = drone.pose.compose(self._world.rig.radar_pose)
        arm = pose.translation - drone.pose.translation
        velocity = drone.velocity + np.cross(drone.angular_velocity, arm)
        random = np.random.default_rng((self._world.seed, _STREAM, number))
        return detect(self._signals(t, pose, velocity), self.parameters, random)

    def _signals(self, t: float, pose: Transform, velocity: FloatArray) -> Signals:
        """Return everything in the field of view that is not lost in the noise."""
        eye = pose.translation
        echoes, seen_through = self._echoes(t, pose)
        rays = echoes.positions - eye
        distance = np.maximum(np.sqrt(np.einsum('nk,nk->n', rays, rays)), 1e-3)
        rays /= distance[:, None]
        snr = self._snr(echoes.reflectivity, distance, rays @ pose.rotation)
        chosen = np.flatnonzero(snr > _FAINT)
        hidden = self._sight.blocked(eye, echoes.positions[chosen]) & ~seen_through[chosen]
        chosen = chosen[~hidden]
        heard = snr[chosen] * 10.0 ** (-0.1 * self._sight.foliage(eye, echoes.positions[chosen]))
        chosen, heard = chosen[heard > _FAINT], heard[heard > _FAINT]
        cosines = rays[chosen] @ pose.rotation
        return Signals(
            distance[chosen],
            np.einsum('nk,nk->n', echoes.velocities[chosen] - velocity, rays[chosen]),
            cosines[:, 1],
            cosines[:, 2],
            heard,
            echoes.steadiness[chosen],
        )

    def _echoes(self, t: float, pose: Transform) -> tuple[Echoes, NDArray[np.bool_]]:
        """Return all echoes, and which of them (N,) no building can hide.

        Those are mirror images: they lie behind the wall that shows them.
        """
        eye, reach = pose.translation, self.parameters.farthest
        near = [
            mover
            for mover in self._world.movers
            if math.dist(mover.state(t).position[:2], eye[:2]) < reach + _MOVER_REACH
        ]
        movers, brightest = mover_echoes(near, t, eye)
        direct = [
            movers,
            self._clutter.echoes(t, eye, pose.rotation[:, 0], reach),
            ground_ghosts(brightest, eye),
        ]
        mirrored = self._mirrors.ghosts(brightest, eye)
        echoes = joined([*direct, mirrored])
        count = len(echoes.reflectivity)
        return echoes, np.arange(count) >= count - len(mirrored.reflectivity)

    def _snr(self, reflectivity: FloatArray, distance: FloatArray, ray: FloatArray) -> FloatArray:
        """Return power over noise (N,), linear: the radar equation and the antenna's gain."""
        p = self.parameters
        azimuth = np.arctan2(ray[:, 1], ray[:, 0])
        elevation = np.arcsin(np.clip(ray[:, 2], -1.0, 1.0))
        loss = 6.0 * (
            (azimuth / p.azimuth_half_gain) ** 2 + (elevation / p.elevation_half_gain) ** 2
        )
        snr = reflectivity * 10.0 ** (0.1 * (p.snr_at_1m - loss)) / distance**4
        seen = (np.abs(azimuth) < p.azimuth_limit) & (np.abs(elevation) < p.elevation_limit)
        return np.where(seen, snr, 0.0)

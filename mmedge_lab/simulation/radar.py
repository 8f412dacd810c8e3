"""The simulated radar: one scan of a world at any instant, and what hides echoes from it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.hardships import Hardships, within
from mmedge_lab.simulation.radar_cube import (
    APART,
    LOG_MEAN,
    bins,
    group_peak,
    mean_power,
    measure,
    reference,
    sent_cells,
)
from mmedge_lab.simulation.radar_detector import Signals, SimulatedRadarParameters, detect
from mmedge_lab.simulation.radar_echoes import (
    Clutter,
    Echoes,
    WallMirrors,
    ground_ghosts,
    joined,
    mover_echoes,
)
from mmedge_lab.simulation.radar_ground import GroundClutter
from mmedge_lab.simulation.radar_link import RadarLink
from mmedge_lab.simulation.world import Building, Mover, Plant, World
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.sensing.radar.chirp_configuration import (
    ChirpConfiguration,
    configurations_folder,
    read_configuration,
)

# Weissberger's modified exponential decay below 14 m of leaves at 77 GHz:
# 0.45 f^0.284 dB/m (f in GHz) on each of two ways.
FOLIAGE_LOSS = 2.0 * 0.45 * 77.0**0.284
# A point on a wall is not hidden by that wall, nor one in a crown's first leaves by rounding.
_SKIN = 0.05


class LineOfSight:
    """Answers for many points at once what a straight look at them meets.

    Arrays have the short axes first, edges (4) or coordinates, then buildings (B) or crowns
    (P), then points (N): reductions then run along memory.
    """

    def __init__(self, buildings: Sequence[Building], plants: Sequence[Plant]) -> None:
        corners = [np.asarray(b.footprint, np.float64) for b in buildings]
        self._corners = np.array(corners).reshape(-1, 4, 2).transpose(1, 2, 0)  # (4, 2, B)
        edges = np.roll(self._corners, -1, axis=0) - self._corners
        # Counter-clockwise: turned right by a quarter, an edge points outwards.
        self._outward = np.stack([edges[:, 1], -edges[:, 0]], axis=1)
        self._outward /= np.maximum(np.linalg.norm(self._outward, axis=1, keepdims=True), 1e-9)
        self._heights = np.array([b.height for b in buildings])
        crowns = [[*p.position, p.base + p.trunk_height + 0.5 * p.crown_height] for p in plants]
        self._crowns = np.array(crowns).reshape(-1, 3)
        axes = [[p.crown_radius, p.crown_radius, 0.5 * p.crown_height] for p in plants]
        self._axes = np.maximum(np.array(axes).reshape(-1, 3), 1e-3)

    def blocked(self, eye: FloatArray, points: FloatArray) -> NDArray[np.bool_]:
        """Mark (N,) those of the (N, 3) points that a building hides from ``eye`` (3,)."""
        rays = points - eye
        lengths = np.sqrt(np.einsum('nk,nk->n', rays, rays))
        chosen = self._in_the_way(eye, rays, lengths)
        if not len(chosen) or not len(points):
            return np.zeros(len(points), bool)
        outward = self._outward[..., chosen]
        # Signed distance of the eye from every wall's line, and how fast a ray gains on it.
        start = ((eye[:2, None] - self._corners[..., chosen]) * outward).sum(axis=1)[..., None]
        gain = outward[:, 0, :, None] * rays[:, 0] + outward[:, 1, :, None] * rays[:, 1]
        with np.errstate(divide='ignore', invalid='ignore'):
            crossing = -start / gain  # (4, B, N)
        enter = np.where(gain < 0, crossing, 0.0).max(axis=0)
        end = 1.0 - _SKIN / np.maximum(lengths, _SKIN)
        leave = np.where(gain > 0, crossing, end).min(axis=0)
        never = ((gain == 0) & (start > 0)).any(axis=0)
        enter, leave = np.maximum(enter, 0.0), np.minimum(leave, end)
        # Straight lines are lowest at one of their ends.
        lowest = eye[2] + np.where(rays[:, 2] < 0, leave, enter) * rays[:, 2]
        inside = (enter < leave) & ~never & (lowest < self._heights[chosen, None])
        return np.asarray(inside.any(axis=0), bool)

    def foliage(self, eye: FloatArray, points: FloatArray) -> FloatArray:
        """Return (N,) dB that leaves take from an echo, there and back."""
        rays = points - eye
        lengths = np.sqrt(np.einsum('nk,nk->n', rays, rays))
        away = np.linalg.norm(self._crowns - eye, axis=1) - self._axes.max(axis=1, initial=0.0)
        near = away < lengths.max(initial=0.0)
        if not near.any():
            return np.zeros(len(points))
        # In the space where a crown is the unit ball: |start + s step|^2 = 1.
        axes = self._axes[near]
        start = ((eye - self._crowns[near]) / axes)[..., None]  # (P, 3, 1)
        x, y, z = (rays[:, k] / axes[:, k, None] for k in range(3))
        a = np.maximum(x * x + y * y + z * z, 1e-12)
        b = x * start[:, 0] + y * start[:, 1] + z * start[:, 2]
        inside = b * b - a * ((start * start).sum(axis=1) - 1.0)
        root = np.sqrt(np.maximum(inside, 0.0))
        enter, leave = np.clip((-b - root) / a, 0.0, 1.0), np.clip((-b + root) / a, 0.0, 1.0)
        return np.asarray(FOLIAGE_LOSS * (leave - enter).sum(axis=0) * lengths, np.float64)

    def _in_the_way(
        self, eye: FloatArray, rays: FloatArray, lengths: FloatArray
    ) -> NDArray[np.intp]:
        """Return the buildings that these rays may meet: near enough, and not behind."""
        if not len(self._heights) or not len(rays):
            return np.zeros(0, np.intp)
        towards = self._corners - eye[:2, None]
        middle = rays[:, :2].mean(axis=0)
        near = np.hypot(towards[:, 0], towards[:, 1]).min(axis=0) < lengths.max()
        if (rays[:, :2] @ middle > 0).all():
            near &= (towards[:, 0] * middle[0] + towards[:, 1] * middle[1]).max(axis=0) > 0
        return np.flatnonzero(near)


def _motion(world: World, t: float) -> tuple[Transform, FloatArray]:
    """Return the radar's pose in odom and its velocity (3,) m/s."""
    drone = world.path.state(t)
    pose = drone.pose.compose(world.rig.radar_pose)
    arm = pose.translation - drone.pose.translation
    return pose, drone.velocity + np.cross(drone.angular_velocity, arm)


_BOARD_STREAM = 40
_SIDEWAYS, _LYING = 8.0, 15.0  # dB below upright from the front or behind
# Channels differ after calibration by some degrees and tenths of a dB.
_FAULTS = 0.04, math.radians(5.0)
_WIND = (1.0, 6.0)  # leaves at 0.05 m/s in light air, 0.3 in a breeze
_SHARED = 8  # range bins with one look at what hides the ground
_ALONG = np.linspace(0.1, 0.95, 12)[:, None, None]  # where ground is looked for on the way
_ROUGH = 0.3  # m by which its heights are off
# Blades of four rotors beside the radar, 0.3 to 0.5 m away, flash at any speed.
_FLASHES, _BLADE, _BLADE_SPEED = 8, 1e-3, 60.0  # m^2, m/s
# Transmitters couple into the receivers like plates 4 to 25 cm away; m^2 at 1 m.
_COUPLED, _COUPLING = np.linspace(0.04, 0.25, 6), 1e-4


def posture_loss(mover: Mover, t: float, eye: FloatArray) -> float:
    """Return dB by which a mover's cross-section falls short: of people sideways or lying.

    A body that is low for its length lies. Other movers have one cross-section from every side.
    """
    if mover.label != 'person':
        return 0.0
    body, state = mover.body(t), mover.state(t)
    reach = body.radii[:, None]
    extent = np.ptp(np.concatenate([body.centres - reach, body.centres + reach]), axis=0)
    height, length = float(extent[2]), float(np.hypot(extent[0], extent[1]))
    lying = 1.0 - min(max((height / max(length, 1e-9) - 0.4) / 0.5, 0.0), 1.0)
    sight = eye - state.position
    aspect = math.atan2(sight[1], sight[0]) - state.heading
    return lying * _LYING + (1.0 - lying) * _SIDEWAYS * math.sin(aspect) ** 2


class ChirpRadar:
    """A board that runs given chirps, by a link budget, in a hard world."""

    def __init__(self, world: World, hard: Hardships, chirps: ChirpConfiguration) -> None:
        self.link = RadarLink(chirps)
        self._world, self._hard = world, hard
        self._clutter = Clutter(world)
        self._ground = GroundClutter(world)
        self._sight = LineOfSight(world.buildings, world.plants)
        self._mirrors = WallMirrors(world.buildings)
        self._ranges: FloatArray = chirps.range_step * np.arange(1.0, chirps.range_bins)
        random = np.random.default_rng((world.seed, _BOARD_STREAM))
        self._wind = random.uniform(*_WIND)
        faults = random.normal(0.0, _FAULTS, (len(self.link.rows), 2))
        self._channels = np.exp(faults @ [1.0, 1.0j])

    def scan(self, t: float, number: int) -> NDArray[np.float32]:
        """Return a scan as `RadarSimulator` does."""
        pose, velocity = _motion(self._world, t)
        random = np.random.default_rng((self._world.seed, _BOARD_STREAM, number))
        movers, brightest = self._movers(self._world.movers, t, pose.translation)
        ghosts = self._mirrors.ghosts(brightest, pose.translation)
        near = self._near_field(pose, velocity, random)
        echoes = joined([movers, ghosts, self._still(t, pose), near])
        signals = self._signals(t, pose, velocity, echoes)
        return measure(signals, self.link, self._channels, random)

    def detection_probability(self, t: float) -> dict[int, float]:
        """Return what `RadarSimulator` does, in closed form.

        An echo's power in each cell is exponential (Swerling's first case) above noise and
        clutter and has to pass every threshold; neighbouring cells fade mostly together. Of
        grouped cells the strongest alone is sent; the mover's share of their power is its
        chance to be that one.
        """
        found = {mover.id: 0.0 for mover in self._world.movers}
        if not found or within(self._hard.radar_silent, t):
            return found
        pose, velocity = _motion(self._world, t)
        still = self._signals(t, pose, velocity, self._still(t, pose))
        background = 1.0 + mean_power(still, self.link)
        movers = [self._movers([m], t, pose.translation)[0] for m in self._world.movers]
        heard = [self._signals(t, pose, velocity, echoes) for echoes in movers]
        powers = [mean_power(signals, self.link) for signals in heard]
        every = background + np.sum(powers, axis=0)
        level = 10.0 * np.log10(every)
        rules = [reference(level, rule) + rule.decibel for rule in self.link.thresholds]
        needed = 10.0 ** (0.1 * (np.max(rules, axis=0) + LOG_MEAN))
        needed[~sent_cells(self.link)] = np.inf
        for mover, signals, power in zip(self._world.movers, heard, powers, strict=True):
            place = np.unique(bins(signals, self.link)[0])
            own, others = (group_peak(of, self.link) for of in (power, every - power - 1.0))
            own /= np.maximum(own + others, 1e-12)
            chance = own * np.exp(-needed / (background + power))
            missed = np.sort(1.0 - chance.ravel()[place[place >= 0]])
            found[mover.id] = 1.0 - float(np.prod(missed[:1]) * np.prod(missed[1:] ** APART))
        return found

    def _movers(self, movers: Sequence[Mover], t: float, eye: FloatArray) -> tuple[Echoes, Echoes]:
        """Return echoes of movers in reach with those by way of the ground, and the brightest."""
        reach = self._ranges[-1] + _MOVER_REACH
        near = [m for m in movers if math.dist(m.state(t).position[:2], eye[:2]) < reach]
        losses = [posture_loss(mover, t, eye) for mover in near]
        direct, brightest = mover_echoes(near, t, eye, losses)
        level = np.array([0.0, 0.0, self._ground.height(eye[:2])])
        lowered = brightest._replace(positions=brightest.positions - level)
        below = ground_ghosts(lowered, eye - level)
        below = below._replace(positions=below.positions + level)
        return self._seen(eye, joined([direct, below])), brightest

    def _seen(self, eye: FloatArray, echoes: Echoes, shared: int = 1) -> Echoes:
        """Return echoes as weak as what is in between lets them; ``shared`` look at one."""
        places = echoes.positions[::shared]
        share = 10.0 ** (-0.1 * self._sight.foliage(eye, places))
        share[self._sight.blocked(eye, places)] = 0.0
        if self._world.terrain is not None:
            way = eye + _ALONG * (places - eye)
            share[(way[..., 2] < self._ground.height(way[..., :2]) - _ROUGH).any(axis=0)] = 0.0
        share = np.repeat(share, shared)[: len(echoes.reflectivity)]
        return echoes._replace(reflectivity=echoes.reflectivity * share)

    def _still(self, t: float, pose: Transform) -> Echoes:
        """Return echoes of ground, buildings, poles and plants."""
        eye, forward = pose.translation, pose.rotation[:, 0]
        spots = self._clutter.echoes(t, eye, forward, float(self._ranges[-1]))
        spots = spots._replace(velocities=spots.velocities * self._wind)
        ground = self._ground.echoes(eye, math.atan2(forward[1], forward[0]), self._ranges)
        return joined([self._seen(eye, spots), self._seen(eye, ground, _SHARED)])

    def _near_field(
        self, pose: Transform, velocity: FloatArray, random: np.random.Generator
    ) -> Echoes:
        """Return flashes of the rotors, and what transmitters couple into the receivers."""
        flashes = _FLASHES if velocity.any() else 0  # a rig that stands still has no rotors
        coupled = len(_COUPLED)
        side = random.choice((-0.98, 0.98), flashes), random.uniform(-0.7, 0.7, coupled)
        left = np.concatenate(side)[:, None]
        rays = np.hstack([np.sqrt(1.0 - left**2), left, 0.0 * left]) @ pose.rotation.T
        far = np.append(random.uniform(0.3, 0.5, flashes), _COUPLED)[:, None]
        speeds = _BLADE_SPEED * np.append(random.uniform(-1.0, 1.0, flashes), np.zeros(coupled))
        strength = np.append(np.full(flashes, _BLADE), _COUPLING * _COUPLED**4)
        places, velocities = pose.translation + far * rays, velocity + speeds[:, None] * rays
        return Echoes(places, velocities, strength, np.zeros_like(strength))

    def _signals(self, t: float, pose: Transform, velocity: FloatArray, echoes: Echoes) -> Signals:
        rays = echoes.positions - pose.translation
        distance = np.maximum(np.sqrt(np.einsum('nk,nk->n', rays, rays)), 1e-3)
        rays /= distance[:, None]
        cosines = rays @ pose.rotation
        power = self.link.power(echoes.reflectivity, distance, cosines)
        if within(self._hard.radar_weak, t):
            power *= 10.0 ** (-0.1 * self._hard.brown_out)
        speed = np.einsum('nk,nk->n', echoes.velocities - velocity, rays)
        return Signals(distance, speed, cosines[:, 1], cosines[:, 2], power, echoes.steadiness)


_STREAM = 31
# The biggest mover: nothing of it reaches farther from its middle.
_MOVER_REACH = 4.0
# Weaker over the noise, an echo is not worth a look at what hides it.
_FAINT = 1.0


class RadarSimulator:
    """Looks at a world; scans depend on the instant and their number only.

    In a hard one it is a board that runs the world's ``chirps``, or those that are given.
    """

    def __init__(
        self,
        world: World,
        parameters: SimulatedRadarParameters | None = None,
        chirps: ChirpConfiguration | None = None,
    ) -> None:
        self.parameters = parameters or SimulatedRadarParameters()
        self._world = world
        if world.hard is not None:
            if chirps is None:
                chirps = read_configuration(configurations_folder() / f'{world.hard.chirps}.cfg')
            self._board = ChirpRadar(world, world.hard, chirps)
            return
        self._clutter = Clutter(world)
        self._sight = LineOfSight(world.buildings, world.plants)
        self._mirrors = WallMirrors(world.buildings)

    def scan(self, t: float, number: int) -> NDArray[np.float32]:
        """Return the scan whose middle is ``t`` s into the flight, (N, 6) float32.

        Columns are x, y, z (m, radar_link: x forward, y left, z up), velocity (m/s, positive =
        receding), snr and noise (dB). ``number`` chooses the noise.
        """
        if self._world.hard is not None:
            return self._board.scan(t, number)
        pose, velocity = _motion(self._world, t)
        random = np.random.default_rng((self._world.seed, _STREAM, number))
        return detect(self._signals(t, pose, velocity), self.parameters, random)

    def detection_probability(self, t: float) -> dict[int, float]:
        """Return by id of every mover how probable it is that a scan at ``t`` returns it.

        Only worlds that are hard tell; others return nothing.
        """
        return {} if self._world.hard is None else self._board.detection_probability(t)

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
        power = snr[chosen] * 10.0 ** (-0.1 * self._sight.foliage(eye, echoes.positions[chosen]))
        chosen, power = chosen[power > _FAINT], power[power > _FAINT]
        cosines = rays[chosen] @ pose.rotation
        return Signals(
            distance[chosen],
            np.einsum('nk,nk->n', echoes.velocities[chosen] - velocity, rays[chosen]),
            cosines[:, 1],
            cosines[:, 2],
            power,
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

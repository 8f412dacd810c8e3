"""The drone's own motion: where it flies, where it looks, how it leans and trembles.

The flight is drawn as positions over time, then the yaw that keeps the people in view, then the
tilt that the acceleration asks for. All of it becomes one smooth curve, so velocities are
derivatives of the pose at any instant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from mmedge_lab.simulation.curve import Curve
from mmedge_lab.simulation.scenario import DistanceBand, SeedStream, generator
from mmedge_lab.simulation.world import DroneState
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry.transforms import Transform

STEP = 0.05  # s between the knots of a flight
MARGIN = 2.0  # s that curves reach beyond the flight at both ends

_GRAVITY = 9.81
# Air resistance leans a drone at constant speed: acceleration it has to make up for, per m/s.
_DRAG = 0.2
_TAKE_OFF_SHARE = 0.3
_TAKE_OFF_HEIGHT = 0.4
_SPIN_UP = 0.3  # s on the ground at the begin of such a flight
_MANOEUVRES = ('hover', 'orbit', 'pass', 'approach', 'sweep')
_ORBIT = 0.9  # rad to either side, so that what stands around is seen from one side mostly


@dataclass(frozen=True, eq=False)
class FlownTrack:
    """Where the drone is, before it is known where it looks.

    ``positions`` (K, 3) m at ``times`` (K,) s; ``stage`` (2,) m is the middle of what it is to
    look at. One that ``sweeps`` turns to and fro.
    """

    times: FloatArray
    positions: FloatArray
    stage: FloatArray
    sweeps: bool


def knots(seconds: float, step: float) -> FloatArray:
    """Return instants (K,) s, ``step`` s apart, from before the flight until after it."""
    return np.arange(-MARGIN, seconds + MARGIN + step, step)


def draw_track(band: DistanceBand, seed: int, seconds: float) -> FlownTrack:
    """Draw where the drone flies around a stage at the origin."""
    random = generator(seed, SeedStream.PATH)
    times = knots(seconds, STEP)
    middle = 0.5 * (band.nearest + band.farthest)
    manoeuvre = str(random.choice(_MANOEUVRES))
    distance = middle * random.uniform(0.93, 1.07) + wander(times, random, 0.05 * middle)
    angle = random.uniform(-math.pi, math.pi) + wander(times, random, 0.6 / middle)
    speed = random.uniform(0.8, 3.8) * random.choice((-1.0, 1.0))
    way = speed * _activity(times, seconds, random)
    if manoeuvre == 'orbit':
        angle += _ORBIT * np.sin(way / (_ORBIT * middle))
    elif manoeuvre == 'pass':
        # To and fro across the line of sight, never so far that the people fall behind.
        width = min(0.7 * middle, 12.0)
        angle += np.arctan(width / middle * np.sin(way / width + random.uniform(-1.0, 1.0)))
    elif manoeuvre == 'approach':
        depth = 0.3 * (band.farthest - band.nearest)
        distance += 0.5 * depth * np.sin(way / (0.5 * depth) + random.uniform(-1.0, 1.0))
    height = random.uniform(band.lowest, band.highest)
    altitude = height + wander(times, random, 0.25)
    take_off = 0.0
    if random.random() < _TAKE_OFF_SHARE:
        take_off = min(random.uniform(2.5, 4.0), 0.5 * seconds)
        if take_off <= _SPIN_UP:
            take_off = 0.0  # too short to spin up in: the flight begins in the air
    if take_off:
        share = smooth_step((times - _SPIN_UP) / (take_off - _SPIN_UP))
        altitude = _TAKE_OFF_HEIGHT + (altitude - _TAKE_OFF_HEIGHT) * share
        # It climbs on the spot and leaves when it is nearly up.
        still = np.clip(times - 0.7 * take_off, 0.0, None)
        angle, distance = np.interp(still, times, angle), np.interp(still, times, distance)
    flat = smoothed(np.column_stack([np.cos(angle), np.sin(angle)]) * distance[:, None], 0.4)
    return FlownTrack(times, np.column_stack([flat, altitude]), np.zeros(2), manoeuvre == 'sweep')


class DronePath:
    """A flight along a track, looking at ``aim`` (K, 2) m, a point for each instant of it."""

    def __init__(self, track: FlownTrack, aim: FloatArray, seed: int) -> None:
        random = generator(seed, SeedStream.VIBRATION)
        towards = aim - track.positions[:, :2]
        yaw = np.unwrap(np.arctan2(towards[:, 1], towards[:, 0]))
        sweep = math.radians(13.0 if track.sweeps else 5.0)
        yaw = smoothed(yaw, 0.5) + wander(track.times, random, sweep)
        place = Curve(track.positions, STEP, track.times[0])
        lean = _lean(place, track.times, yaw)
        self._curve = Curve(
            np.column_stack([track.positions, yaw, lean]), STEP, float(track.times[0])
        )
        self._vibration = _Vibration(random)

    def state(self, t: float) -> DroneState:
        """Return pose and velocities at an instant, the vibration included."""
        values, rates = self._curve.at(t)
        tremble, tremble_rate = self._vibration.at(t)
        values, rates = values + tremble, rates + tremble_rate
        yaw, pitch, roll = values[3:]
        yaw_rate, pitch_rate, roll_rate = rates[3:]
        cy, sy, cp, sp = math.cos(yaw), math.sin(yaw), math.cos(pitch), math.sin(pitch)
        cr, sr = math.cos(roll), math.sin(roll)
        rotation = np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
        # Turns about the upright, then the yawed y, then the body's x axis.
        angular = np.array(
            [
                cy * cp * roll_rate - sy * pitch_rate,
                sy * cp * roll_rate + cy * pitch_rate,
                yaw_rate - sp * roll_rate,
            ]
        )
        return DroneState(Transform(rotation, values[:3]), rates[:3], angular)


class _Vibration:
    """What propellers and gusts do to the body: a few tones on position and attitude."""

    def __init__(self, random: np.random.Generator) -> None:
        frequency = np.concatenate([random.uniform(3.0, 9.0, 2), random.uniform(15.0, 45.0, 3)])
        self._omega = 2.0 * math.pi * frequency
        self._phase = random.uniform(0.0, 2.0 * math.pi, len(frequency))
        # In rad; 1e-3 rad is 0.4 px in the picture. Together 0.3 to 1.2 px.
        strength = random.uniform(0.7e-3, 2.9e-3)
        angles = random.normal(size=(3, len(frequency)))
        angles *= strength * math.sqrt(2.0) / np.linalg.norm(angles, axis=1, keepdims=True)
        # In m: about 0.03 m/s on each axis at every frequency.
        moves = 0.02 * random.normal(size=(3, len(frequency))) / self._omega
        self._amplitude = np.vstack([moves, angles])

    def at(self, t: float) -> tuple[FloatArray, FloatArray]:
        """Return offsets and rates of (x, y, z, yaw, pitch, roll)."""
        angle = self._omega * t + self._phase
        offset: FloatArray = self._amplitude @ np.sin(angle)
        rate: FloatArray = self._amplitude @ (np.cos(angle) * self._omega)
        return offset, rate


def _lean(place: Curve, times: FloatArray, yaw: FloatArray) -> FloatArray:
    """Return (K, 2) rad of pitch (nose down positive) and roll that carry the motion."""
    push = np.array([place.second(t) + _DRAG * place.at(t)[1] for t in times])
    forward = np.cos(yaw) * push[:, 0] + np.sin(yaw) * push[:, 1]
    left = np.cos(yaw) * push[:, 1] - np.sin(yaw) * push[:, 0]
    lift = _GRAVITY + push[:, 2]
    pitch = np.arctan2(forward, lift)
    roll = -np.arctan2(left, np.hypot(forward, lift))
    return smoothed(np.column_stack([pitch, roll]), 0.1)


def _activity(times: FloatArray, seconds: float, random: np.random.Generator) -> FloatArray:
    """Return seconds spent moving until each instant, (K,): a flight pauses now and then."""
    wave = np.sin(2.0 * math.pi * times / random.uniform(9.0, 20.0) + random.uniform(-3.1, 3.1))
    share = smooth_step(0.5 + 1.5 * (wave + 0.45))
    moving = np.cumsum(share) * STEP
    return np.asarray(moving - np.interp(0.5 * seconds, times, moving), np.float64)


def wander(times: FloatArray, random: np.random.Generator, amplitude: float) -> FloatArray:
    """Return slow drift about 0, (K,), such as wind and a pilot's thumb make."""
    frequency = random.uniform(0.05, 0.35, 3)
    phase = random.uniform(0.0, 2.0 * math.pi, 3)
    waves = np.sin(2.0 * math.pi * frequency * times[:, None] + phase)
    return np.asarray(amplitude * waves @ random.uniform(0.2, 0.5, 3), np.float64)


def smooth_step(x: FloatArray) -> FloatArray:
    """Return 0 to 1 for ``x`` of 0 to 1, with no speed and no acceleration at either end."""
    x = np.clip(x, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x * x), np.float64)


def smoothed(values: FloatArray, sigma: float) -> FloatArray:
    """Smooth rows over time with a Gaussian of ``sigma`` s."""
    return np.asarray(gaussian_filter1d(values, sigma / STEP, axis=0, mode='nearest'), np.float64)

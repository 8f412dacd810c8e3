"""A patrol: the drone flies between three stations, looks around at each, and returns.

From the first station it looks along an axis at the main stage. The second lies beyond that
stage, so that those on the main stage are behind the drone there. At the third it looks aside,
where nobody has a reason to be. It never looks to the one side nor back beyond the first station:
whoever leaves there is gone until coming back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_path import (
    MARGIN,
    STEP,
    FlownTrack,
    knots,
    smooth_step,
    smoothed,
    wander,
)
from mmedge_lab.simulation.scenario import DistanceBand, SeedStream, generator
from mmedge_ros.core.data_types import FloatArray

MAIN, BEYOND, ASIDE = 0, 1, 2
_ORDER = (MAIN, BEYOND, MAIN, ASIDE)
# How long it stays, s. Nobody is in view for more than a minute around a stay aside.
_STAYS = {MAIN: (40.0, 65.0), BEYOND: (45.0, 65.0), ASIDE: (60.0, 75.0)}
_SHORTEST_LEG = 5.0  # s
# Higher than people and vehicles that it flies over, m.
_LOWEST = 4.0
# Half of the widest camera's field of view, its mounting and the sway of the drone, rad.
_HALF_VIEW = math.radians(50.0)
# Farther away a person is less than 8 px tall, m.
_OUT_OF_SIGHT = 95.0
# So near, m, it may turn from before to behind the drone between two samples.
_BELOW = 6.0
_SAMPLE = 20  # knots between the instants at which it is asked what is in view


class Station(NamedTuple):
    """Where the drone stays, (3,) m, and the middle (2,) m of what it looks at."""

    eye: FloatArray
    stage: FloatArray


class Stay(NamedTuple):
    """The drone is at a station, by number, from ``begin`` to ``end`` s."""

    station: int
    begin: float
    end: float


@dataclass(frozen=True, eq=False)
class Patrol:
    """Where the drone is and looks: ``aim`` (K, 2) m, a point ahead at each knot of ``track``.

    ``axis`` rad is the direction from the first station to the main stage, at the origin.
    """

    track: FlownTrack
    aim: FloatArray
    axis: float
    stations: tuple[Station, ...]
    stays: tuple[Stay, ...]

    def never_seen(self, places: FloatArray) -> NDArray[np.bool_]:
        """Return which of ``places`` (N, 2) m are out of view all the time, (N,)."""
        eyes = self.track.positions[::_SAMPLE, None, :2]
        ahead = self.aim[::_SAMPLE, None] - eyes
        apart = places - eyes
        along = np.sum(ahead * apart, axis=2)
        across = ahead[..., 0] * apart[..., 1] - ahead[..., 1] * apart[..., 0]
        distance = np.hypot(apart[..., 0], apart[..., 1])
        ahead_of_it = np.abs(np.arctan2(across, along)) < _HALF_VIEW
        seen = (ahead_of_it & (distance < _OUT_OF_SIGHT)) | (distance < _BELOW)
        return np.asarray(~seen.any(axis=0), bool)


def draw_patrol(band: DistanceBand, seed: int, seconds: float, begins: int = MAIN) -> Patrol:
    """Draw a patrol around a stage at the origin that ``begins`` at a station."""
    random = generator(seed, SeedStream.PATH)
    times = knots(seconds, STEP)
    middle = 0.5 * (band.nearest + band.farthest)
    axis = random.uniform(-math.pi, math.pi)
    side = float(random.choice((-1.0, 1.0)))
    height = max(random.uniform(band.lowest, band.highest), _LOWEST)
    first = -middle * random.uniform(0.93, 1.07)
    # Along the axis, to the side, and where to look, rad to the side.
    plan = (
        (first, 0.0, 0.0),
        (first + band.farthest + random.uniform(6.0, 14.0), random.uniform(0.0, 6.0),
         math.radians(random.uniform(20.0, 35.0))),
        (first + random.uniform(2.0, 8.0), random.uniform(12.0, 20.0),
         math.radians(random.uniform(70.0, 80.0))),
    )  # fmt: skip
    turn = np.array([[math.cos(axis), math.sin(axis)], [-math.sin(axis), math.cos(axis)]])
    places = np.array([(along, side * aside) for along, aside, _ in plan]) @ turn
    yaws = axis + side * np.array([look for _, _, look in plan])
    looks = np.column_stack([np.cos(yaws), np.sin(yaws)])
    stations = tuple(
        Station(np.append(place, height), place + middle * look)
        for place, look in zip(places, looks, strict=True)
    )
    stays = _draw_stays(begins, places, seconds, random)
    # From station to station in one smooth step; at a station both ends are the same.
    ends = np.array([(s.begin, s.end) for s in stays])
    order = np.array([s.station for s in stays])
    before = np.clip(np.searchsorted(ends[:, 0], times, side='right') - 1, 0, len(stays) - 2)
    leg = ends[before + 1, 0] - ends[before, 1]
    share = smooth_step((times - ends[before, 1]) / leg)
    here, there = order[before], order[before + 1]
    flat, yaw = (
        values[here] + share[:, None] * (values[there] - values[here])
        for values in (places, yaws[:, None])
    )
    drift = [wander(times, random, 0.06 * middle) for _ in range(2)]
    altitude = height + wander(times, random, 0.25)
    positions = np.column_stack([smoothed(flat + np.column_stack(drift), 0.4), altitude])
    aim = positions[:, :2] + middle * np.column_stack([np.cos(yaw), np.sin(yaw)])
    return Patrol(
        FlownTrack(times, positions, np.zeros(2), sweeps=False), aim, axis, stations, stays
    )


def _draw_stays(
    begins: int, places: FloatArray, seconds: float, random: np.random.Generator
) -> tuple[Stay, ...]:
    """Draw stays in turn until after the flight's end, with time for the legs between them."""
    stays: list[Stay] = []
    now = -MARGIN
    first = _ORDER.index(begins)
    for station in cycle(_ORDER[first:] + _ORDER[:first]):
        if stays:
            leg = math.dist(places[stays[-1].station], places[station])
            now = stays[-1].end + max(leg / random.uniform(2.0, 3.5), _SHORTEST_LEG)
        stays.append(Stay(station, now, now + random.uniform(*_STAYS[station])))
        if now > seconds + MARGIN:
            return tuple(stays)
    raise AssertionError('the order of stations has no end')

"""How people walk among each other, and which ways cars and cyclists take past them.

People follow a social force (Helbing and Molnar, 1995) in its simplest form: each steers towards
the next place and is pushed off by others and by walls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.ndimage import gaussian_filter1d

from mmedge_lab.simulation.articulated import MoverCourse
from mmedge_lab.simulation.flight_path import FlownTrack, knots
from mmedge_lab.simulation.obstacles import Block, Obstacles
from mmedge_lab.simulation.scenario import DistanceBand
from mmedge_lab.simulation.world import Strip
from mmedge_ros.core.data_types import FloatArray

STEP = 0.1  # s between the knots of a course

# How far to either side of the line of sight people choose their places, rad.
_WEDGE, _WIDE = math.radians(28.0), math.radians(44.0)
# One place in so many may lie where the drone does not look.
_LEAVING = 0.15
_ARRIVED = 0.8  # m
_RELAXATION = 0.5  # s in which a walker takes up the wanted speed
_CLEARANCE = 0.45  # m that ways keep off walls
_ROAM_STEPS = 20
# A vehicle pushes from where it is and where it will be within a second.
_LOOK_AHEAD = (0, 4, 9)
_VEHICLE_REACH = 1.5


class WalkingArea(Protocol):
    """Gives places to walk to."""

    def place(self, t: float, begin: FloatArray) -> FloatArray:
        """Return a place (2,) m to be at from about ``t`` s on, reached from ``begin`` (2,) m."""


class Visit(NamedTuple):
    """A time from ``begin`` to ``end`` s within an ``area``; then one leaves to ``exits``."""

    begin: float
    end: float
    area: WalkingArea
    exits: WalkingArea


@dataclass(frozen=True, eq=False)
class Walker:
    """How one of the crowd moves, from ``start`` (2,) m.

    ``speed`` m/s, 0 for one that stays. ``pauses`` are (begin, end) s. ``companion`` is the
    index of an earlier one to keep ``beside`` m to the left of, -1 for none; one that
    ``roams`` strays as many metres about the companion instead. One with ``visits``, in the
    order of time, comes and goes; others stay on the stage.
    """

    start: FloatArray
    speed: float
    pauses: tuple[tuple[float, float], ...] = ()
    companion: int = -1
    beside: float = 0.0
    roams: float = 0.0
    visits: tuple[Visit, ...] = ()

    def area(self, t: float, stage: WalkingArea) -> WalkingArea:
        """Return where its places are at ``t`` s; ``stage`` for one that does not come and go."""
        if not self.visits:
            return stage
        begun = [visit for visit in self.visits if visit.begin <= t]
        if begun and t < begun[-1].end:
            return begun[-1].area
        return begun[-1].exits if begun else self.visits[0].exits


class VisibleStage:
    """Where people may be: in view of the drone, within the distance, and not in a wall."""

    def __init__(
        self,
        track: FlownTrack,
        band: DistanceBand,
        obstacles: Obstacles,
        random: np.random.Generator,
    ) -> None:
        self._track = track
        self._band = band
        self._random = random
        self.obstacles = obstacles

    def place(self, t: float, begin: FloatArray | None = None, room: float = 0.7) -> FloatArray:
        """Draw a place (2,) m for the instant ``t`` with ``room`` m around it.

        It can be reached straight from ``begin``, and is ``begin`` where there is
        no such place. Without ``begin`` the freest of many places is taken if none is free.
        """
        best, most = np.zeros(2), -math.inf
        for _ in range(60):
            place, eye = self._candidate(t)
            free = float(self.obstacles.distance(place)[0])
            seen = not self.obstacles.hides(eye, np.array([*place, 1.2]))
            if begin is None and free + seen > most:
                best, most = place, free + seen
            if free < room or not (seen or self._random.random() < 0.08):
                continue
            if begin is None or self.obstacles.clear_way(begin, place, _CLEARANCE):
                return place
        return best if begin is None else begin

    def _candidate(self, t: float) -> tuple[FloatArray, FloatArray]:
        i = min(int(np.searchsorted(self._track.times, t)), len(self._track.times) - 1)
        eye = self._track.positions[i]
        ahead = self._track.stage - eye[:2]
        wedge = _WIDE if self._random.random() < _LEAVING else _WEDGE
        bearing = math.atan2(ahead[1], ahead[0]) + self._random.uniform(-wedge, wedge)
        # More are near than far, as sizes in the picture spread evenly that way.
        nearest, farthest = self._band.nearest + 0.8, self._band.farthest - 0.8
        reach = nearest * (farthest / nearest) ** self._random.uniform()
        level = math.sqrt(max(reach**2 - (eye[2] - 1.0) ** 2, 1.0))
        return eye[:2] + level * np.array([math.cos(bearing), math.sin(bearing)]), eye


def walk(
    walkers: list[Walker], stage: VisibleStage, vehicles: FloatArray, seconds: float,
    random: np.random.Generator,
) -> FloatArray:  # fmt: skip
    """Let a crowd of A walk; return positions (K, A, 2) m at `flight_path.knots`.

    ``vehicles`` (K, V, 2) m are places of others that do not give way.
    """
    times = knots(seconds, STEP)
    place = np.array([w.start for w in walkers])
    velocity, goal, strays = np.zeros_like(place), place.copy(), np.zeros_like(place)
    active = np.array([[not any(b <= t < e for b, e in w.pauses) for w in walkers] for t in times])
    speeds = np.array([w.speed for w in walkers]) * active
    areas = [walker.area(float(times[0]), stage) for walker in walkers]
    line = np.empty((len(times), *place.shape))
    for k, t in enumerate(times):
        line[k] = place
        for i, walker in enumerate(walkers):
            if walker.roams > 0.0:
                if (k + 7 * i) % _ROAM_STEPS == 0:
                    strays[i] = walker.roams * random.uniform(-1.0, 1.0, 2)
                goal[i] = place[walker.companion] + strays[i]
            elif walker.companion >= 0:
                goal[i] = _beside(place, velocity, walker, goal[i])
            elif walker.speed > 0.0:
                area = walker.area(float(t), stage)
                if area is not areas[i] or math.dist(goal[i], place[i]) < _ARRIVED:
                    areas[i], goal[i] = area, area.place(float(t) + 4.0, place[i])
        coming = vehicles[np.minimum(k + np.array(_LOOK_AHEAD), len(times) - 1)].reshape(-1, 2)
        velocity = _step(place, velocity, goal, speeds[k], coming, stage.obstacles)
        place = place + STEP * velocity
        inside = stage.obstacles.distance(place) < 0.25
        if inside.any():
            place[inside] += 0.25 * stage.obstacles.push(place[inside], 0.5)
    return line


def _step(
    place: FloatArray, velocity: FloatArray, goal: FloatArray, speed: FloatArray,
    coming: FloatArray, obstacles: Obstacles,
) -> FloatArray:  # fmt: skip
    """Return the velocities (A, 2) m/s after one step."""
    towards = goal - place
    distance = np.hypot(towards[:, 0], towards[:, 1])
    wanted = towards * (np.minimum(speed, distance / 0.6) / np.maximum(distance, 1e-6))[:, None]
    apart = place[:, None] - place[None]
    gap = np.hypot(apart[..., 0], apart[..., 1])
    np.fill_diagonal(gap, np.inf)
    strength = np.minimum(1.6 * np.exp((0.4 - gap) / 0.22), 5.0) / np.maximum(gap, 0.05)
    change = (wanted - velocity) / _RELAXATION + np.einsum('ij,ijc->ic', strength, apart)
    change += 4.0 * obstacles.push(place, _CLEARANCE + 0.1)
    if len(coming):
        apart = place[:, None] - coming[None]
        gap = np.maximum(np.hypot(apart[..., 0], apart[..., 1]), 0.05)
        strength = 5.0 * np.clip(1.0 - gap / _VEHICLE_REACH, 0.0, 1.0) / gap
        change += np.einsum('ij,ijc->ic', strength, apart)
    moved = velocity + STEP * change
    # No walker is pushed faster than it walks, and all stop within a few steps.
    fastest = np.maximum(1.25 * speed, 0.75 * np.hypot(velocity[:, 0], velocity[:, 1]))
    length = np.maximum(np.hypot(moved[:, 0], moved[:, 1]), 1e-9)
    return np.asarray(moved * np.minimum(1.0, fastest / length)[:, None], np.float64)


def _beside(
    place: FloatArray, velocity: FloatArray, walker: Walker, before: FloatArray
) -> FloatArray:
    leader, way = place[walker.companion], velocity[walker.companion]
    speed = math.hypot(way[0], way[1])
    if speed < 0.1:
        return before
    left = np.array([-way[1], way[0]]) / speed
    return np.asarray(leader + walker.beside * left + 0.6 * way, np.float64)


_SPACING = 0.25  # m between the points of a loop
# Two on the same lane keep this apart, m.
_GAP = 14.0


@dataclass(frozen=True, eq=False)
class Loop:
    """A closed way: along one side of a road, round at its end, and back on the other side.

    ``points`` (N, 2) m, ``_SPACING`` apart. Its ends lie out of view, so that a flight
    may last as long as it likes and nothing has to vanish.
    """

    points: FloatArray

    @property
    def length(self) -> float:
        """Of the whole loop, m."""
        return _SPACING * len(self.points)

    def at(self, distance: FloatArray) -> FloatArray:
        """Return places (K, 2) m at distances (K,) m along the loop."""
        steps = np.mod(distance / _SPACING, len(self.points))
        before = steps.astype(np.int64) % len(self.points)
        after = (before + 1) % len(self.points)
        share = (steps - np.floor(steps))[:, None]
        return (1.0 - share) * self.points[before] + share * self.points[after]

    def nearest(self, place: FloatArray, other_side: bool) -> float:
        """Return the distance along the loop where it passes ``place``, there or back."""
        half = len(self.points) // 2
        begin = half if other_side else 0
        apart = self.points[begin : begin + half] - place
        return _SPACING * float(begin + np.argmin(np.hypot(apart[:, 0], apart[:, 1])))


def loop_around(way: Strip, lane: float) -> Loop:
    """Return the loop ``lane`` m to the right of a way's middle, in both directions."""
    ahead = np.gradient(way.line, axis=0)
    ahead /= np.hypot(ahead[:, 0], ahead[:, 1])[:, None]
    right = np.column_stack([ahead[:, 1], -ahead[:, 0]])
    bends = []
    for end, turned in ((-1, 1.0), (0, -1.0)):
        angles = np.linspace(0.0, math.pi, 9)[1:-1, None]
        out = turned * ahead[end]
        bends.append(
            way.line[end] + lane * (turned * np.cos(angles) * right[end] + np.sin(angles) * out)
        )
    there, back = way.line + lane * right, (way.line - lane * right)[::-1]
    line = np.vstack([there, bends[0], back, bends[1]])
    length = np.hypot(*np.diff(np.vstack([line, line[:1]]), axis=0).T)
    total = np.concatenate([[0.0], np.cumsum(length)])
    even = np.linspace(0.0, total[-1], round(total[-1] / _SPACING), endpoint=False)
    closed = np.vstack([line, line[:1]])
    points = np.column_stack([np.interp(even, total, closed[:, i]) for i in (0, 1)])
    return Loop(gaussian_filter1d(points, 1.0 / _SPACING, axis=0, mode='wrap'))


def draw_passes(
    loop: Loop, speed: float, count: int, stage: FloatArray, seconds: float,
    random: np.random.Generator,
) -> list[MoverCourse]:  # fmt: skip
    """Draw ``count`` courses that pass the stage during the first 12 s of the flight."""
    times = knots(seconds, STEP)
    courses: list[MoverCourse] = []
    taken: list[float] = []
    length = loop.length
    for _ in range(8 * count):
        if len(courses) == count:
            break
        there = loop.nearest(stage, bool(random.random() < 0.5))
        begin = there - speed * random.uniform(0.1, 0.9) * min(seconds, 12.0)
        if any(abs((begin - o + length / 2) % length - length / 2) < _GAP for o in taken):
            continue
        taken.append(begin)
        # All on one loop speed up and slow down alike, so that none runs into another.
        pace = speed * (1.0 + 0.12 * np.sin(0.5 * times))
        distance = begin + np.concatenate([[0.0], np.cumsum(pace[:-1])]) * STEP
        positions = gaussian_filter1d(loop.at(distance), 0.2 / STEP, axis=0, mode='nearest')
        velocity = np.gradient(positions, STEP, axis=0)
        heading = np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0]))
        courses.append(MoverCourse(positions, heading, float(times[0]), STEP))
    return courses


def carriageway(road: Strip) -> Block:
    """Return a straight road as a place that people keep off while cars pass."""
    begin, end = road.line[0], road.line[-1]
    ahead = end - begin
    size = np.array([float(np.hypot(*ahead)), road.width])
    return Block(0.5 * (begin + end), size, math.atan2(ahead[1], ahead[0]), 0.0)

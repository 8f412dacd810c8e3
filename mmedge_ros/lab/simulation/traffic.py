"""Cars and cyclists: which way they take and when they pass the people."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.articulated import Course
from mmedge_ros.lab.simulation.crowd import STEP
from mmedge_ros.lab.simulation.flight_path import knots
from mmedge_ros.lab.simulation.obstacles import Block
from mmedge_ros.lab.simulation.world import Strip

_SPACING = 0.25  # m between the points of a loop
# Two on the same lane keep this apart, m.
_GAP = 14.0


@dataclass(frozen=True, eq=False)
class Loop:
    """A closed way: along one side of a road, round at its end, and back on the other side.

    ``points`` (N, 2) m, ``_SPACING`` apart. Its ends lie where nobody looks, so that a flight
    may last as long as it likes and nothing has to vanish.
    """

    points: FloatArray

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
) -> list[Course]:  # fmt: skip
    """Draw ``count`` courses that pass the stage during the first 12 s of the flight."""
    times = knots(seconds, STEP)
    courses: list[Course] = []
    taken: list[float] = []
    length = _SPACING * len(loop.points)
    for _ in range(8 * count):
        if len(courses) == count:
            break
        there = loop.nearest(stage, bool(random.random() < 0.5))
        begin = there - speed * random.uniform(0.1, 0.9) * min(seconds, 12.0)
        if any(abs((begin - o + length / 2) % length - length / 2) < _GAP for o in taken):
            continue
        taken.append(begin)
        # All on one loop speed up and slow down alike, so that nobody runs into another.
        pace = speed * (1.0 + 0.12 * np.sin(0.5 * times))
        distance = begin + np.concatenate([[0.0], np.cumsum(pace[:-1])]) * STEP
        positions = gaussian_filter1d(loop.at(distance), 0.2 / STEP, axis=0, mode='nearest')
        velocity = np.gradient(positions, STEP, axis=0)
        heading = np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0]))
        courses.append(Course(positions, heading, float(times[0]), STEP))
    return courses


def carriageway(road: Strip) -> Block:
    """Return a straight road as a place that people keep off while cars pass."""
    begin, end = road.line[0], road.line[-1]
    ahead = end - begin
    size = np.array([float(np.hypot(*ahead)), road.width])
    return Block(0.5 * (begin + end), size, math.atan2(ahead[1], ahead[0]), 0.0)

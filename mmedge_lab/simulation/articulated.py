"""Movers whose shape follows from how they move: walking, pedalling or just rolling.

A mover's motion is one smooth curve of place, heading and the phases of its two cycles: how it
looks while it moves and while it rests. The shape at an instant is a blend of the two, turned
and carried along, and the velocities are its derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from mmedge_lab.simulation.curve import Curve
from mmedge_lab.simulation.world import Body, MoverState
from mmedge_ros.core.data_types import FloatArray

# Below this speed, in m/s, the motion does not determine the heading.
_SLOW = 0.25
_SMOOTHING = 0.25  # s
# How long a turn takes, and how fast it is at most, in s and rad/s.
_TURNING, _FASTEST_TURN = 0.3, 3.0


@dataclass(frozen=True, eq=False)
class Shape:
    """What a mover looks like in its own frame: x forward, y left, z up from the ground.

    ``moving`` and ``resting`` are (F, N, 3) m, the spheres' centres over one cycle; ``stride``
    is the distance of one moving cycle at the ``pace`` m/s it was made for, ``rest_rate`` the
    resting cycles per second.
    """

    names: tuple[str, ...]
    first: tuple[int, ...]
    radii: FloatArray
    colours: NDArray[np.uint8]
    moving: FloatArray
    resting: FloatArray
    stride: float
    pace: float
    rest_rate: float = 0.2


@dataclass(frozen=True, eq=False)
class MoverCourse:
    """Where a mover goes: ``positions`` (K, 2) m and ``headings`` (K,) rad, ``step`` s apart."""

    positions: FloatArray
    headings: FloatArray
    begin: float
    step: float


class ArticulatedMover:
    """A mover with a shape on a course; it satisfies `world.Mover`."""

    def __init__(
        self, number: int, label: str, reflectivity: float, shape: Shape, course: MoverCourse
    ) -> None:
        self.id = number
        self.label = label
        self.reflectivity = reflectivity
        self._shape = shape
        self._curve = _motion(course, shape)
        self._moving = Curve(_flat(shape.moving), 1.0 / len(shape.moving), periodic=True)
        self._resting = Curve(_flat(shape.resting), 1.0 / len(shape.resting), periodic=True)

    def state(self, t: float) -> MoverState:
        """Return place, velocity and heading at an instant."""
        value, rate = self._curve.at(t)
        return MoverState(
            np.array([value[0], value[1], 0.0]), np.array([rate[0], rate[1], 0.0]), float(value[2])
        )

    def body(self, t: float) -> Body:
        """Return the shape at an instant; the velocities are its exact derivatives."""
        value, rate = self._curve.at(t)
        x, y, heading, phase, share, rest = value.tolist()
        x_rate, y_rate, turn, phase_rate, share_rate, rest_rate = rate.tolist()
        moving, moving_rate = self._moving.at(phase)
        resting, resting_rate = self._resting.at(rest)
        apart = moving - resting
        local = (resting + share * apart).reshape(-1, 3)
        local_rate = (
            (share * phase_rate) * moving_rate
            + ((1.0 - share) * rest_rate) * resting_rate
            + share_rate * apart
        ).reshape(-1, 3)
        c, s = math.cos(heading), math.sin(heading)
        turned = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
        spun = np.array([[-s * turn, c * turn, 0.0], [-c * turn, -s * turn, 0.0], [0.0, 0.0, 0.0]])
        centres = local @ turned + (x, y, 0.0)
        velocities = local_rate @ turned + local @ spun + (x_rate, y_rate, 0.0)
        form = self._shape
        return Body(centres, velocities, form.radii, form.first, form.names, form.colours)


def course_through(
    positions: FloatArray, facing: FloatArray, begin: float, step: float
) -> MoverCourse:
    """Smooth a line, and turn the heading along it.

    ``positions`` (K, 2) m; ``facing`` (K,) rad is the heading at rest, NaN for the heading
    of the last motion.
    """
    smooth = gaussian_filter1d(positions, _SMOOTHING / step, axis=0, mode='nearest')
    velocity = np.gradient(smooth, step, axis=0)
    going = np.hypot(velocity[:, 0], velocity[:, 1]) > _SLOW
    target = np.where(going, np.arctan2(velocity[:, 1], velocity[:, 0]), facing)
    known = np.flatnonzero(np.isfinite(target))
    if len(known):
        last = np.searchsorted(known, np.arange(len(target)), side='right') - 1
        target = target[known[np.maximum(last, 0)]]
    target = np.unwrap(np.nan_to_num(target))
    # A turn begins a little ahead and is not a step.
    ahead = round(_TURNING / step)
    target = np.concatenate([target[ahead:], np.repeat(target[-1:], ahead)])
    headings = np.empty_like(target)
    heading = target[0]
    for k, wanted in enumerate(target):
        turn = (wanted - heading + math.pi) % (2.0 * math.pi) - math.pi
        rate = min(max(turn / _TURNING, -_FASTEST_TURN), _FASTEST_TURN)
        heading += step * rate
        headings[k] = heading
    headings = gaussian_filter1d(headings, 0.5 * _SMOOTHING / step, mode='nearest')
    return MoverCourse(smooth, headings, begin, step)


def _motion(course: MoverCourse, shape: Shape) -> Curve:
    """Return the curve of x, y, heading, moving phase, its share, and resting phase."""
    velocity = np.gradient(course.positions, course.step, axis=0)
    ahead = velocity[:, 0] * np.cos(course.headings) + velocity[:, 1] * np.sin(course.headings)
    # Cadence grows with the root of the speed; the share of the moving shape makes up the
    # rest, so that a foot on the ground stands still at every speed.
    speed = np.abs(ahead)
    cadence = np.sqrt(np.hypot(speed, 0.2) / shape.pace) * shape.pace / shape.stride
    share = np.clip(ahead / (cadence * shape.stride), 0.0, 1.25)
    steps = 0.5 * (cadence[1:] + cadence[:-1]) * course.step
    phase = np.concatenate([[0.0], np.cumsum(steps)])
    rest = shape.rest_rate * course.step * np.arange(len(phase))
    channels = np.column_stack([course.positions, course.headings, phase, share, rest])
    return Curve(channels, course.step, course.begin)


def _flat(cycle: FloatArray) -> FloatArray:
    return cycle.reshape(len(cycle), -1)


PHASES = 48  # instants that a cycle is sampled at

Colour = tuple[int, int, int]
Sphere = tuple[FloatArray, float]


def points(
    x: FloatArray | float, y: FloatArray | float = 0.0, z: FloatArray | float = 0.0
) -> FloatArray:
    """Return (PHASES, 3) m; each coordinate is a number or (PHASES,)."""
    columns = np.broadcast_arrays(x, y, z, np.zeros(PHASES))[:3]
    return np.stack(columns, axis=1).astype(np.float64)


def moved(place: FloatArray, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> FloatArray:
    """Return ``place`` (..., 3) shifted by metres."""
    return np.asarray(place + np.array([x, y, z]), np.float64)


class PartList:
    """Parts in the order they were added.

    A sphere is its centre, (PHASES, 3) or (3,) m, and its radius in m.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.colours: list[Colour] = []
        self.first = [0]
        self.radii: list[float] = []
        self._centres: list[FloatArray] = []

    def add(self, name: str, colour: Colour, *spheres: Sphere) -> None:
        """Add one part, the convex hull of ``spheres``."""
        self.names.append(name)
        self.colours.append(colour)
        for centre, radius in spheres:
            self._centres.append(np.broadcast_to(centre, (PHASES, 3)))
            self.radii.append(radius)
        self.first.append(len(self.radii))

    @property
    def centres(self) -> FloatArray:
        """All centres, (PHASES, N, 3) m."""
        return np.stack(self._centres, axis=1)


def ring(centre: FloatArray, radius: float, count: int, thickness: float) -> Iterable[Sphere]:
    """Return ``count`` spheres of radius ``thickness`` on an upright circle along x."""
    for angle in np.arange(count) * (2.0 * np.pi / count):
        place = moved(centre, x=radius * float(np.cos(angle)), z=radius * float(np.sin(angle)))
        yield place, thickness


def shape_of(
    moving: PartList, resting: PartList, stride: float, pace: float, rest_rate: float = 0.2
) -> Shape:
    """Make a shape of the same parts in motion and at rest."""
    return Shape(
        names=tuple(moving.names),
        first=tuple(moving.first),
        radii=np.array(moving.radii),
        colours=np.array(moving.colours, np.uint8),
        moving=moving.centres,
        resting=resting.centres,
        stride=stride,
        pace=pace,
        rest_rate=rest_rate,
    )

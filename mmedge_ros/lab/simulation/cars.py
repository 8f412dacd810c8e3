"""What cars look like: body, cabin, roof, wheels and lights."""

from __future__ import annotations

import numpy as np

from mmedge_ros.lab.simulation.articulated import Shape
from mmedge_ros.lab.simulation.shape_parts import Colour, PartList, Sphere, ring, shape_of

_GLASS: Colour = (58, 50, 44)
_TYRE: Colour = (34, 34, 36)
_HALF_WIDTH = 0.86
_WHEEL = 0.31
_PAINTS: tuple[Colour, ...] = (
    (30, 30, 32), (70, 70, 72), (130, 130, 132), (190, 190, 192), (235, 235, 235), (110, 60, 30),
    (35, 30, 140), (60, 90, 50), (60, 130, 170),
)  # fmt: skip


def car_shape(colour: Colour, length: float, height: float, boxy: float) -> Shape:
    """Make a car of ``length`` and ``height`` m; ``boxy`` 0 is a saloon, 1 a van."""
    parts = PartList()
    half, belt = 0.5 * length, 0.58 * height
    sides = (-1.0, 1.0)
    ends = ((-half + 0.2), (half - 0.2))
    lower = [_at(x, s * (_HALF_WIDTH - 0.14), 0.36, 0.14) for x in ends for s in sides]
    upper = [_at(0.97 * x, s * (_HALF_WIDTH - 0.12), belt - 0.1, 0.1) for x in ends for s in sides]
    parts.add('body', colour, *lower, *upper)
    rear, front = -0.45 * length + 0.05, (0.26 + 0.1 * boxy) * length
    top_rear, top_front = -0.36 * length - 0.05 * boxy * length, (0.07 + 0.16 * boxy) * length
    waist = [_at(x, s * 0.76, belt, 0.05) for x in (rear, front) for s in sides]
    roof = [_at(x, s * 0.58, height - 0.12, 0.05) for x in (top_rear, top_front) for s in sides]
    parts.add('cabin', _GLASS, *waist, *roof)
    top = [_at(x, s * 0.58, height - 0.055, 0.055) for x in (top_rear, top_front) for s in sides]
    parts.add('roof', colour, *top)
    for x in (-0.3 * length, 0.31 * length):
        for s in sides:
            centre = np.array([x, s * (_HALF_WIDTH - 0.08), _WHEEL])
            parts.add('wheel', _TYRE, *ring(centre, _WHEEL - 0.08, 8, 0.08))
    for s in sides:
        parts.add('head_light', (238, 240, 240), _at(half - 0.09, s * 0.6, 0.62, 0.085))
        parts.add('tail_light', (40, 40, 190), _at(-half + 0.09, s * 0.6, 0.7, 0.085))
    return shape_of(parts, parts, stride=2.0, pace=5.0)


def draw_car(random: np.random.Generator) -> Shape:
    """Draw one car, 3.8 to 4.8 m long."""
    paint = _PAINTS[random.integers(len(_PAINTS))]
    level = random.uniform(0.85, 1.15)
    blue, green, red = (int(min(level * value, 255)) for value in paint)
    boxy = random.choice((0.0, 0.25, 0.9), p=(0.55, 0.3, 0.15))
    height = random.uniform(1.42, 1.55) + 0.35 * boxy
    return car_shape((blue, green, red), random.uniform(3.8, 4.8), height, boxy)


def _at(x: float, y: float, z: float, radius: float) -> Sphere:
    return np.array([x, y, z]), radius

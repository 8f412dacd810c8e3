"""What cars, cyclists and dogs look like, and how they move."""

from __future__ import annotations

import math

import numpy as np

from mmedge_lab.simulation.articulated import (
    PHASES,
    Colour,
    PartList,
    Shape,
    Sphere,
    moved,
    points,
    ring,
    shape_of,
)
from mmedge_lab.simulation.people import Clothing, add_person, draw_clothing
from mmedge_lab.simulation.skeleton import BALL, riding, stepping
from mmedge_ros.core.data_types import FloatArray

_GLASS: Colour = (58, 50, 44)
_TYRE: Colour = (34, 34, 36)
_HALF_WIDTH = 0.86
_WHEEL = 0.31
_PAINTS: tuple[Colour, ...] = (
    (30, 30, 32), (70, 70, 72), (130, 130, 132), (190, 190, 192), (235, 235, 235), (110, 60, 30),
    (35, 30, 140), (60, 90, 50), (60, 130, 170),
)  # fmt: skip


def draw_car(random: np.random.Generator) -> Shape:
    """Draw one car, 3.8 to 4.8 m long."""
    paint = _PAINTS[random.integers(len(_PAINTS))]
    level = random.uniform(0.85, 1.15)
    blue, green, red = (int(min(level * value, 255)) for value in paint)
    colour = (blue, green, red)
    boxy = random.choice((0.0, 0.25, 0.9), p=(0.55, 0.3, 0.15))  # a saloon to a van
    height = random.uniform(1.42, 1.55) + 0.35 * boxy
    length = random.uniform(3.8, 4.8)
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


def _at(x: float, y: float, z: float, radius: float) -> Sphere:
    return np.array([x, y, z]), radius


_BICYCLE_WHEEL, _BICYCLE_TYRE = 0.34, 0.02  # m
_FRONT, _REAR = 0.56, -0.48  # m, of the axles along the bicycle
_CRANK = np.array([-0.02, 0.0, 0.29])
_CRANK_LENGTH, _PEDAL_OUT = 0.17, 0.1
_TREAD = 10  # tyre pieces of a wheel, so that one sees through it
_RUBBER: Colour = (38, 38, 40)
_METAL: Colour = (120, 120, 125)


def draw_cyclist(random: np.random.Generator) -> Shape:
    """Draw one rider on a bicycle that fits."""
    height = float(np.clip(random.normal(1.73, 0.09), 1.55, 1.95))
    hue = random.integers(20, 200, 3)
    frame = (int(hue[0]), int(hue[1]), int(hue[2]))
    girth, dress = random.uniform(0.9, 1.15), draw_clothing(random)
    turning = 2.0 * math.pi * np.arange(PHASES) / PHASES
    moving, resting = PartList(), PartList()
    _add_cyclist(moving, turning, height, girth, frame, dress)
    # Coasting with level pedals.
    _add_cyclist(resting, np.zeros(PHASES), height, girth, frame, dress)
    # One turn of the cranks takes the bicycle 4.5 m, 70 turns a minute at 5.2 m/s.
    return shape_of(moving, resting, stride=4.5, pace=5.2)


def _add_cyclist(
    parts: PartList, turn: FloatArray, h: float, girth: float, frame: Colour, dress: Clothing
) -> None:
    saddle = np.array([-0.2, 0.0, 0.5 * h + 0.12])
    grips = tuple(np.array([0.37, side * 0.24, 0.58 * h]) for side in (1.0, -1.0))
    _add_wheel(parts, 'front_wheel', _FRONT)
    _add_wheel(parts, 'rear_wheel', _REAR)
    _add_frame(parts, saddle, grips[0][2], frame)
    pedals = []
    for side, shift in ((1.0, 0.0), (-1.0, math.pi)):
        angle = turn + shift
        # Forward on top: the cranks turn clockwise seen from the right.
        place = points(
            _CRANK[0] + _CRANK_LENGTH * np.cos(angle),
            side * _PEDAL_OUT,
            _CRANK[2] - _CRANK_LENGTH * np.sin(angle) + BALL * h,
        )
        pedals.append(place)
        parts.add('crank', _METAL, (_CRANK, 0.018), (moved(place, z=-BALL * h), 0.018))
    joints = riding(h, moved(saddle, z=0.06 * h), (pedals[0], pedals[1]), (grips[0], grips[1]))
    add_person(parts, joints, h, girth, dress)


def _add_wheel(parts: PartList, name: str, at: float) -> None:
    rim = list(
        ring(
            np.array([at, 0.0, _BICYCLE_WHEEL]),
            _BICYCLE_WHEEL - _BICYCLE_TYRE,
            _TREAD,
            _BICYCLE_TYRE,
        )
    )
    for piece, after in zip(rim, rim[1:] + rim[:1], strict=True):
        parts.add(name, _RUBBER, piece, after)


def _add_frame(parts: PartList, saddle: FloatArray, bar: float, colour: Colour) -> None:
    head = np.array([0.38, 0.0, 0.78])
    bars = np.array([0.36, 0.0, bar])
    axles = [np.array([at, 0.0, _BICYCLE_WHEEL]) for at in (_FRONT, _REAR)]
    seat = moved(saddle, x=-0.02, z=-0.05)
    tubes = (
        (head, _CRANK), (head, 0.5 * (seat + _CRANK)), (seat, _CRANK), (axles[1], _CRANK),
        (axles[0], head), (head, bars),
    )  # fmt: skip
    for begin, end in tubes:
        parts.add('frame', colour, (begin, 0.022), (end, 0.022))
    parts.add('handlebar', _METAL, (moved(bars, y=0.25), 0.018), (moved(bars, y=-0.25), 0.018))
    parts.add('saddle', _RUBBER, (moved(saddle, x=0.1), 0.035), (moved(saddle, x=-0.08), 0.07))


_COATS: tuple[Colour, ...] = (
    (28, 28, 30), (45, 70, 110), (110, 160, 200), (200, 210, 215), (60, 85, 120), (90, 95, 100),
)  # fmt: skip
_TURN = 2.0 * math.pi * np.arange(PHASES) / PHASES
_STRIDE = 1.6


def draw_dog(random: np.random.Generator) -> Shape:
    """Draw one dog of 0.35 to 0.65 m at the shoulder; lengths below are shares of that."""
    colour, size = _COATS[random.integers(len(_COATS))], random.uniform(0.35, 0.65)
    trotting, standing = PartList(), PartList()
    _add_dog(trotting, colour, size, 1.0)
    _add_dog(standing, colour, size, 0.0)
    return shape_of(trotting, standing, _STRIDE * size, pace=3.4 * size, rest_rate=0.7)


def _add_dog(parts: PartList, colour: Colour, size: float, trots: float) -> None:
    bob = 0.03 * trots * np.cos(2.0 * _TURN)

    def at(x: float, z: float, radius: float, y: float = 0.0) -> tuple[FloatArray, float]:
        return size * points(x, y, z + bob), size * radius

    parts.add('trunk', colour, at(0.42, 0.84, 0.21), at(-0.42, 0.83, 0.17))
    parts.add('neck', colour, at(0.5, 0.93, 0.14), at(0.68, 1.13, 0.11))
    parts.add('head', colour, at(0.73, 1.21, 0.14), at(0.96, 1.14, 0.07))
    for x in (0.4, -0.42):
        for y in (-0.12, 0.12):
            # Diagonal legs go together in a trot.
            foot, lift = _trotting_foot(0.0 if x * y > 0 else 0.5)
            knee = points(x + 0.5 * trots * foot - 0.04, y, 0.42 + bob)
            paw = points(x + trots * foot, y, 0.06 + trots * lift)
            parts.add('leg', colour, at(x, 0.74, 0.11, y), (size * knee, 0.065 * size))
            parts.add('shank', colour, (size * knee, 0.06 * size), (size * paw, 0.05 * size))
    wag = points(-0.82, 0.14 * np.sin(3.0 * _TURN), 1.02 + bob)
    parts.add('tail', colour, at(-0.52, 0.9, 0.06), (size * wag, 0.03 * size))


def _trotting_foot(shift: float) -> tuple[FloatArray, FloatArray]:
    """Return how far ahead and up a paw is over a cycle, (PHASES,), half of it on the ground."""
    ahead, swing = stepping((np.arange(PHASES) / PHASES + shift) % 1.0, 0.5, _STRIDE)
    return ahead, 0.14 * np.sin(math.pi * swing) ** 2

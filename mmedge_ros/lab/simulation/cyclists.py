"""What cyclists look like: a bicycle and its rider, pedalling as fast as it goes."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.articulated import Shape
from mmedge_ros.lab.simulation.clothing import Clothing, draw_clothing
from mmedge_ros.lab.simulation.people import add_person
from mmedge_ros.lab.simulation.shape_parts import (
    PHASES,
    Colour,
    PartList,
    moved,
    points,
    ring,
    shape_of,
)
from mmedge_ros.lab.simulation.skeleton import BALL, riding

_WHEEL, _TYRE = 0.34, 0.02  # m
_FRONT, _REAR = 0.56, -0.48  # m, of the axles along the bicycle
_CRANK = np.array([-0.02, 0.0, 0.29])
_CRANK_LENGTH, _PEDAL_OUT = 0.17, 0.1
_TREAD = 10  # tyre pieces of a wheel, so that one sees through it
_RUBBER: Colour = (38, 38, 40)
_METAL: Colour = (120, 120, 125)


def cyclist_shape(height: float, girth: float, frame: Colour, dress: Clothing) -> Shape:
    """Make a rider of ``height`` m on a bicycle that fits."""
    turning = 2.0 * math.pi * np.arange(PHASES) / PHASES
    moving, resting = PartList(), PartList()
    _add_cyclist(moving, turning, height, girth, frame, dress)
    # Coasting with level pedals.
    _add_cyclist(resting, np.zeros(PHASES), height, girth, frame, dress)
    # One turn of the cranks takes the bicycle 4.5 m, 70 turns a minute at 5.2 m/s.
    return shape_of(moving, resting, stride=4.5, pace=5.2)


def draw_cyclist(random: np.random.Generator) -> Shape:
    """Draw one rider and bicycle."""
    height = float(np.clip(random.normal(1.73, 0.09), 1.55, 1.95))
    hue = random.integers(20, 200, 3)
    frame = (int(hue[0]), int(hue[1]), int(hue[2]))
    return cyclist_shape(height, random.uniform(0.9, 1.15), frame, draw_clothing(random))


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
    rim = list(ring(np.array([at, 0.0, _WHEEL]), _WHEEL - _TYRE, _TREAD, _TYRE))
    for piece, after in zip(rim, rim[1:] + rim[:1], strict=True):
        parts.add(name, _RUBBER, piece, after)


def _add_frame(parts: PartList, saddle: FloatArray, bar: float, colour: Colour) -> None:
    head = np.array([0.38, 0.0, 0.78])
    bars = np.array([0.36, 0.0, bar])
    axles = [np.array([at, 0.0, _WHEEL]) for at in (_FRONT, _REAR)]
    seat = moved(saddle, x=-0.02, z=-0.05)
    tubes = (
        (head, _CRANK), (head, 0.5 * (seat + _CRANK)), (seat, _CRANK), (axles[1], _CRANK),
        (axles[0], head), (head, bars),
    )  # fmt: skip
    for begin, end in tubes:
        parts.add('frame', colour, (begin, 0.022), (end, 0.022))
    parts.add('handlebar', _METAL, (moved(bars, y=0.25), 0.018), (moved(bars, y=-0.25), 0.018))
    parts.add('saddle', _RUBBER, (moved(saddle, x=0.1), 0.035), (moved(saddle, x=-0.08), 0.07))

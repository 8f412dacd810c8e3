"""What dogs look like and how they trot."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.articulated import Shape
from mmedge_ros.lab.simulation.shape_parts import PHASES, Colour, PartList, points, shape_of
from mmedge_ros.lab.simulation.skeleton import stepping

_COATS: tuple[Colour, ...] = (
    (28, 28, 30), (45, 70, 110), (110, 160, 200), (200, 210, 215), (60, 85, 120), (90, 95, 100),
)  # fmt: skip
_TURN = 2.0 * math.pi * np.arange(PHASES) / PHASES
_STRIDE = 1.6


def dog_shape(colour: Colour, size: float) -> Shape:
    """Make a dog of ``size`` m at the shoulder; lengths below are shares of it."""
    trotting, standing = PartList(), PartList()
    _add_dog(trotting, colour, size, 1.0)
    _add_dog(standing, colour, size, 0.0)
    return shape_of(trotting, standing, _STRIDE * size, pace=3.4 * size, rest_rate=0.7)


def draw_dog(random: np.random.Generator) -> Shape:
    """Draw one dog of 0.35 to 0.65 m."""
    return dog_shape(_COATS[random.integers(len(_COATS))], random.uniform(0.35, 0.65))


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

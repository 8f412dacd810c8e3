"""What a simulated mover looks like in words: kind, colours, and whether it carries a backpack.

It follows from the shape, and so from scenario and seed: nothing of it is in a recording.
"""

from __future__ import annotations

import colorsys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mmedge_lab.simulation.world import Body, Mover

COLOURS = ('black', 'grey', 'white', 'red', 'brown', 'yellow', 'green', 'blue')
# Below this value (0..1) there is no colour; dull ones need more.
_BLACK, _DULL_BLACK, _DULL = 0.2, 0.32, 0.15
_GREY_SATURATION, _WHITE = 0.18, 0.72
# Hues in degrees at which one name ends and the next begins; what is beyond the last is red again.
_HUES = ((18.0, 'red'), (75.0, 'warm'), (165.0, 'green'), (285.0, 'blue'), (360.0, 'red'))
_BRIGHT, _VIVID = 0.55, 0.5
# The part that gives each kind its colour.
_MAIN_PART = {'person': 'torso', 'cyclist': 'torso', 'car': 'body', 'dog': 'trunk'}
# Children are shorter (m).
_GROWN_UP = 1.48


class MoverLook(NamedTuple):
    """How a mover looks.

    ``colour`` is that of its top, paint or coat; ``bottom`` that of trousers or skirt, '' where it
    wears none. Both are of `COLOURS`.
    """

    label: str
    colour: str
    bottom: str = ''
    child: bool = False
    backpack: bool = False

    @property
    def wears(self) -> bool:
        """Whether it is dressed."""
        return bool(self.bottom)


def look_of(mover: Mover) -> MoverLook:
    """Return how a mover looks."""
    body = mover.body(0.0)
    colours = dict(zip(body.names, body.colours, strict=True))
    colour = colour_name(colours[_MAIN_PART[mover.label]])
    if 'torso' not in colours:
        return MoverLook(mover.label, colour)
    bottom = colour_name(colours['skirt' if 'skirt' in colours else 'hips'])
    child = mover.label == 'person' and _top_of_head(body) < _GROWN_UP
    return MoverLook(mover.label, colour, bottom, child, 'backpack' in colours)


def _top_of_head(body: Body) -> float:
    """Return how high a head reaches, m: hands may be higher."""
    head = body.names.index('head')
    spheres = slice(body.first[head], body.first[head + 1])
    return float((body.centres[spheres, 2] + body.radii[spheres]).max())


def looks_of(movers: Sequence[Mover]) -> Mapping[int, MoverLook]:
    """Return how movers look, by id."""
    return {mover.id: look_of(mover) for mover in movers}


def colour_name(bgr: Sequence[float] | np.ndarray) -> str:
    """Name a colour, blue, green and red of 0..255, by one of `COLOURS`.

    Orange counts as yellow where it is bright and as brown where it is not; violet as blue, pink
    as red.
    """
    blue, green, red = (float(value) / 255.0 for value in bgr)
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    chroma = saturation * value
    if value < _BLACK or (value < _DULL_BLACK and chroma < _DULL):
        return 'black'
    if saturation < _GREY_SATURATION:
        return 'white' if value > _WHITE else 'grey'
    name = next(name for end, name in _HUES if 360.0 * hue <= end)
    if name == 'warm':
        return 'yellow' if value >= _BRIGHT and saturation >= _VIVID else 'brown'
    return name

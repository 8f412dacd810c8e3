"""What people wear: colours and kinds of clothes as one meets them outdoors."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass

import numpy as np

Colour = tuple[int, int, int]

# BGR albedos; a draw varies them.
_SKIN = ((180, 200, 232), (150, 175, 215), (120, 150, 198), (85, 115, 168), (55, 80, 122))
_HAIR = ((25, 25, 28), (30, 42, 60), (45, 70, 105), (95, 150, 190), (150, 155, 160), (35, 55, 120))
_PLAIN = (
    (28, 28, 30), (60, 50, 45), (95, 92, 90), (160, 160, 160), (225, 225, 225), (90, 50, 35),
    (70, 40, 25), (105, 135, 170), (165, 190, 205), (45, 60, 80),
)  # fmt: skip
_TROUSERS = (
    (30, 28, 28), (95, 65, 45), (125, 95, 70), (75, 75, 78), (100, 130, 160), (60, 40, 28),
    (60, 85, 85), (185, 200, 205),
)  # fmt: skip


@dataclass(frozen=True)
class Clothing:
    """BGR albedos of what somebody wears.

    ``hem`` is how far a skirt or coat reaches from hip to knee (0: none, 1: the knee);
    ``headwear`` is hair, long_hair or cap.
    """

    skin: Colour
    hair: Colour
    headwear: str
    top: Colour
    sleeve: Colour
    bottom: Colour
    shin: Colour
    shoes: Colour
    hem: float
    skirt: Colour
    backpack: Colour | None


def draw_clothing(random: np.random.Generator) -> Clothing:
    """Draw what one person wears."""
    skin = _varied(random, _SKIN[random.integers(len(_SKIN))])
    top = _cloth(random, _PLAIN)
    bottom = _varied(random, _TROUSERS[random.integers(len(_TROUSERS))])
    headwear = str(random.choice(('hair', 'long_hair', 'cap'), p=(0.55, 0.25, 0.2)))
    hair = (
        _cloth(random, _PLAIN)
        if headwear == 'cap'
        else _varied(random, _HAIR[random.integers(len(_HAIR))])
    )
    below = random.uniform()
    hem, skirt, shin = 0.0, bottom, bottom
    if below < 0.13:  # a skirt or dress over bare legs
        hem, skirt = random.uniform(0.7, 1.05), _cloth(random, _PLAIN)
        bottom = shin = skin
    elif below < 0.28:  # a coat
        hem, skirt = random.uniform(0.4, 0.9), top
    elif below < 0.38:  # shorts
        shin = skin
    return Clothing(
        skin=skin,
        hair=hair,
        headwear=headwear,
        top=top,
        sleeve=skin if random.uniform() < 0.3 and hem in (0.0,) else top,
        bottom=bottom,
        shin=shin,
        shoes=_varied(random, ((25, 25, 28), (60, 70, 95), (215, 215, 220))[random.integers(3)]),
        hem=hem,
        skirt=skirt,
        backpack=_cloth(random, _PLAIN) if random.uniform() < 0.2 else None,
    )


def _cloth(random: np.random.Generator, plain: tuple[Colour, ...]) -> Colour:
    """Draw a colour: half of all clothes are plain, the rest has any hue."""
    if random.uniform() < 0.55:
        return _varied(random, plain[random.integers(len(plain))])
    rgb = colorsys.hsv_to_rgb(
        random.uniform(), random.uniform(0.35, 0.9), random.uniform(0.3, 0.9)
    )
    red, green, blue = (int(255 * value) for value in rgb)
    return blue, green, red


def _varied(random: np.random.Generator, colour: Colour) -> Colour:
    level = random.uniform(0.85, 1.12)
    blue, green, red = (int(np.clip(level * value, 0, 255)) for value in colour)
    return blue, green, red

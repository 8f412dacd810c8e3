"""What people look like, from the joints of a skeleton and what they wear."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mmedge_lab.simulation.articulated import Colour, PartList, Shape, moved, shape_of
from mmedge_lab.simulation.skeleton import STANCES, Gait, Joints, Stance, standing, walking
from mmedge_ros.core.data_types import FloatArray

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
    """BGR albedos of the clothes and skin of a person.

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


_AVERAGE_HEIGHT = 1.72
# A hem that reaches so far towards the knee covers the thigh.
_THIGH_COVERED = 0.5


def person_shape(
    height: float, girth: float, gait: Gait, stance: Stance, dress: Clothing
) -> Shape:
    """Make a person of ``height`` m; ``girth`` 1 is of average build."""
    moving, resting = PartList(), PartList()
    add_person(moving, walking(height, gait), height, girth, dress)
    add_person(resting, standing(height, stance), height, girth, dress)
    return shape_of(moving, resting, gait.stride, gait.pace)


def draw_person(
    random: np.random.Generator,
    child: bool = False,
    runs: bool = False,
    posed: Callable[[float, float, Clothing], Shape] | None = None,
) -> Shape:
    """Draw one person of 1.55 to 1.95 m, a child of 1.1 to 1.4 m; ``posed`` makes one at rest."""
    height = float(np.clip(random.normal(_AVERAGE_HEIGHT, 0.09), 1.55, 1.95))
    if child:
        height = random.uniform(1.1, 1.4)
    scale = height / _AVERAGE_HEIGHT
    if runs:
        gait = Gait(
            pace=2.7 * scale, stride=2.1 * scale, stance=0.4, lift=0.16, lean=0.13,
            arm_swing=0.55, elbow=1.5,
        )  # fmt: skip
    else:
        pace = random.uniform(1.2, 1.5) * scale
        stride = 0.8 * height * random.uniform(0.95, 1.06)
        gait = Gait(pace, stride, arm_swing=random.uniform(0.2, 0.5))
    stance = STANCES[random.integers(len(STANCES))]
    girth = float(np.clip(random.normal(1.03, 0.09), 0.88, 1.3))
    dress = draw_clothing(random)
    if posed is not None:
        return posed(height, girth, dress)
    return person_shape(height, girth, gait, stance, dress)


def add_person(
    parts: PartList, joints: Joints, height: float, girth: float, dress: Clothing
) -> None:
    """Add the parts of one person."""
    wide = girth * height / _AVERAGE_HEIGHT
    _add_head(parts, joints, height, dress)
    _add_trunk(parts, joints, height, wide, dress)
    for side, i in (('left', 0), ('right', 1)):
        _add_limbs(parts, side, i, joints, height, wide, dress)
    if dress.hem > 0.0:
        _add_skirt(parts, joints, height, wide, dress)
    _add_backpack(parts, joints, height, wide, dress)


def _add_head(parts: PartList, joints: Joints, h: float, dress: Clothing) -> None:
    # Heads grow less than bodies: a child's is large for its height.
    size = 0.052 * h + 0.016 * max(0.0, 1.5 - h)
    skull = moved(joints.head, z=0.012 * h)
    jaw = moved(joints.head, x=0.014 * h, z=-0.022 * h)
    parts.add('head', dress.skin, (skull, 0.93 * size), (jaw, 0.72 * size))
    crown = moved(skull, x=-0.22 * size, z=0.2 * size)
    if dress.headwear == 'cap':
        brim = moved(skull, x=1.05 * size, z=0.35 * size)
        parts.add('cap', dress.hair, (crown, 0.98 * size), (brim, 0.25 * size))
    elif dress.headwear == 'long_hair':
        back = moved(skull, x=-0.45 * size, z=-1.2 * size)
        parts.add('hair', dress.hair, (crown, 0.97 * size), (back, 0.65 * size))
    else:
        parts.add('hair', dress.hair, (crown, 0.95 * size))
    neck = 0.45 * joints.head + 0.55 * joints.chest
    parts.add('neck', dress.skin, (neck, 0.034 * h), (moved(joints.chest, z=0.01 * h), 0.034 * h))


def _add_trunk(parts: PartList, joints: Joints, h: float, wide: float, dress: Clothing) -> None:
    waist = 0.6 * joints.pelvis + 0.4 * joints.chest
    breast = moved(0.35 * joints.pelvis + 0.65 * joints.chest, x=0.015 * h)
    left, right = joints.shoulders
    parts.add(
        'torso', dress.top,
        (moved(left, y=-0.022 * h), 0.062 * wide), (moved(right, y=0.022 * h), 0.062 * wide),
        (breast, 0.112 * wide), (moved(waist, y=0.042 * wide), 0.096 * wide),
        (moved(waist, y=-0.042 * wide), 0.096 * wide),
    )  # fmt: skip
    hips = [moved(hip, y=side * 0.005 * h) for hip, side in zip(joints.hips, (1, -1), strict=True)]
    parts.add('hips', dress.bottom, (hips[0], 0.093 * wide), (hips[1], 0.093 * wide))


def _add_limbs(
    parts: PartList, side: str, i: int, joints: Joints, h: float, wide: float, dress: Clothing
) -> None:
    shoulder, elbow, wrist = joints.shoulders[i], joints.elbows[i], joints.wrists[i]
    hip, knee, ankle = joints.hips[i], joints.knees[i], joints.ankles[i]
    hand = wrist + 0.35 * (wrist - elbow)
    # Cloth that hangs over a thigh would else be drawn behind it.
    thigh = dress.skirt if dress.hem > _THIGH_COVERED else dress.bottom
    limbs: tuple[tuple[str, tuple[int, int, int], FloatArray, float, FloatArray, float], ...] = (
        ('upper_arm', dress.top, shoulder, 0.052, elbow, 0.042),
        ('forearm', dress.sleeve, elbow, 0.04, wrist, 0.03),
        ('hand', dress.skin, wrist, 0.027, hand, 0.037),
        ('thigh', thigh, hip, 0.086, knee, 0.06),
        ('shin', dress.shin, knee, 0.057, ankle, 0.04),
    )
    for name, colour, near, thick, far, thin in limbs:
        parts.add(f'{side}_{name}', colour, (near, thick * wide), (far, thin * wide))
    parts.add(
        f'{side}_shoe', dress.shoes,
        (moved(joints.heels[i], z=0.004 * h), 0.026 * h), (joints.balls[i], 0.022 * h),
    )  # fmt: skip


def _add_skirt(parts: PartList, joints: Joints, h: float, wide: float, dress: Clothing) -> None:
    hems = [
        moved(hip + dress.hem * (knee - hip), y=side * 0.02 * h)
        for hip, knee, side in zip(joints.hips, joints.knees, (1, -1), strict=True)
    ]
    waist = 0.8 * joints.pelvis + 0.2 * joints.chest
    parts.add(
        'skirt', dress.skirt, (waist, 0.12 * wide), (joints.hips[0], 0.1 * wide),
        (joints.hips[1], 0.1 * wide), (hems[0], 0.1 * wide), (hems[1], 0.1 * wide),
    )  # fmt: skip


def _add_backpack(parts: PartList, joints: Joints, h: float, wide: float, dress: Clothing) -> None:
    if dress.backpack is None:
        return
    upper = moved(joints.chest, x=-0.14 * wide, z=-0.04 * h)
    lower = moved(0.5 * joints.pelvis + 0.5 * joints.chest, x=-0.16 * wide)
    spheres = [
        (moved(place, y=side * 0.07 * wide), radius * wide)
        for place, radius in ((upper, 0.07), (lower, 0.1))
        for side in (1.0, -1.0)
    ]
    parts.add('backpack', dress.backpack, *spheres)

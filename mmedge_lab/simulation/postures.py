"""People on foot who do not walk: they stand, lie, sit, crouch, wave or carry something."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mmedge_lab.simulation.articulated import PartList, Shape, moved, points, shape_of
from mmedge_lab.simulation.crowd import Crowd
from mmedge_lab.simulation.people import Clothing, add_person
from mmedge_lab.simulation.skeleton import (
    BALL,
    HIP_HEIGHT,
    STANCES,
    Hold,
    Joints,
    Stance,
    holding,
    standing,
)
from mmedge_ros.core.data_types import FloatArray

KINDS = ('stand', 'lie', 'sit', 'crouch', 'wave', 'carry')
_SHARES = (0.17, 0.31, 0.15, 0.12, 0.13, 0.12)
_UPRIGHT = ('stand', 'crouch', 'wave')  # need no more room than they stand on
_ROOM = 1.4  # m to the next person
_VARIANTS = 3  # of each kind
# Cycles at rest per second; who waves does so at one and a half.
_RESTING, _WAVING = 0.2, 0.5
_WAVES = (
    Stance(raised=(0.05, 2.7), spread=(0.1, 0.25), elbow=(0.25, 0.3), gesture=0.5),
    Stance(raised=(2.8, 2.7), spread=(0.3, 0.3), elbow=(0.3, 0.3), gesture=0.5),
    Stance(raised=(2.2, 2.3), spread=(0.6, 0.6), elbow=(0.5, 0.5), gesture=0.6),
)
_HOLDS = {
    ('sit', 0): Hold(0.062, 0.25, 0.36, (0.24, 0.06, 0.22)),
    ('sit', 1): Hold(0.065, -0.35, 0.52, (-0.22, 0.15, 0.04), apart=0.06, toes=1.2),
    ('sit', 2): Hold(0.062, 0.3, 0.27, (0.22, 0.03, 0.2)),
    ('crouch', 0): Hold(0.2, 0.6, 0.2, (0.3, 0.08, 0.2)),
    ('crouch', 1): Hold(0.2, 0.5, 0.2, (0.27, 0.1, 0.28), apart=0.05),
    ('crouch', 2): Hold(0.2, 0.65, 0.2, (0.3, 0.05, 0.1)),
    ('carry', 0): Hold(HIP_HEIGHT - 0.008, 0.02, 0.02, (0.19, 0.105, 0.6)),
    ('carry', 1): Hold(HIP_HEIGHT - 0.008, 0.02, 0.02, (0.03, 0.14, 0.5)),
    ('carry', 2): Hold(HIP_HEIGHT - 0.008, 0.02, 0.02, (0.03, 0.14, 0.5), (0.12, 0.13, 0.8)),
}
# On the back, on a side, face down: rows are axes of the ground in those of an upright body.
_LYING = np.array(
    [
        [[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]],
    ]
)
_ON_BACK, _ON_SIDE = 0, 1
_LIMP = (
    Stance(spread=(0.5, 0.3), elbow=(0.3, 0.2), inward=(0.0, 0.2), apart=0.05),
    Stance(raised=(1.1, 0.2), elbow=(0.7, 0.5), apart=0.0),
    Stance(spread=(0.9, 0.35), elbow=(0.2, 0.4), inward=(-0.9, 0.1), apart=0.07),
)
# How far feet are drawn up, in heights: one of who lies on the back, both on a side.
_KNEES_BENT = ((0.0, 0.22), (0.16, 0.2), (0.0, 0.0))
# Of parts that end in a joint which a lying body lets fall: the first sphere of it.
_FALLING = {'upper_arm': 1, 'forearm': 0, 'hand': 0, 'thigh': 1, 'shin': 0}
_STILL = 0.3  # of the motion of one who stands, a lying body has so much
_WOOD, _CARDBOARD, _CLOTH = (95, 150, 190), (110, 150, 185), (60, 60, 140)


@dataclass(frozen=True)
class Posture:
    """One of ``KINDS`` in one of its variants, turned to ``heading`` rad."""

    kind: str
    variant: int
    heading: float


def pose(crowd: Crowd, share: float, random: np.random.Generator) -> dict[int, Posture]:
    """Let a ``share`` of a crowd hold their place; return how, by their number.

    Dogs, runners and those who come and go walk on.
    """
    postures: dict[int, Posture] = {}
    starts = np.array([walker.start for walker in crowd.walkers])
    for i, walker in enumerate(crowd.walkers):
        chance, heading = random.random(), random.uniform(-math.pi, math.pi)
        kind, variant = str(random.choice(KINDS, p=_SHARES)), int(random.integers(_VARIANTS))
        leader = crowd.walkers[walker.companion] if walker.companion >= 0 else walker
        comes = bool(leader.visits) and math.isfinite(leader.visits[0].begin)
        if chance > share or comes or crowd.kinds[i] not in ('person', 'child'):
            continue
        apart = np.delete(np.hypot(*(starts - starts[i]).T), i)
        if apart.min(initial=math.inf) < _ROOM and kind not in _UPRIGHT:
            kind = _UPRIGHT[variant]
        postures[i] = Posture(kind, variant, heading)
        crowd.walkers[i] = replace(walker, speed=0.0, companion=-1)
    return postures


def posed_shape(posture: Posture, height: float, girth: float, dress: Clothing) -> Shape:
    """Make a person of ``height`` m in a posture, no part of whom is below the ground."""
    parts = PartList()
    add_person(parts, _joints(height, posture), height, girth, dress)
    if posture.kind == 'carry':
        _add_load(parts, posture.variant, height)
    rate = _WAVING if posture.kind == 'wave' else _RESTING
    shape = shape_of(parts, parts, 1.0, 1.0, rate)
    places = shape.resting
    if posture.kind == 'lie':
        places = _laid(places, shape, posture.variant, height)
    places[..., 2] = np.maximum(places[..., 2], shape.radii)
    return replace(shape, moving=places, resting=places)


def _joints(h: float, posture: Posture) -> Joints:
    kind, variant = posture.kind, posture.variant
    if (kind, variant) in _HOLDS:
        return holding(h, _HOLDS[kind, variant])
    if kind == 'lie':
        feet = [points(0.02 * h, 0.0, (BALL + up) * h) for up in _KNEES_BENT[variant]]
        return standing(h, _LIMP[variant], [(ball, np.zeros(len(ball))) for ball in feet])
    return standing(h, (_WAVES if kind == 'wave' else STANCES)[variant])


def _laid(upright: FloatArray, shape: Shape, variant: int, h: float) -> FloatArray:
    """Return the spheres (F, N, 3) of a body on the ground, its middle at the origin."""
    still = upright.mean(axis=0) + _STILL * (upright - upright.mean(axis=0))
    # Shoulders and hips of who lies on a side give way.
    soft = (1.0, 0.85 if variant == _ON_SIDE else 1.0, 1.0)
    laid = np.asarray((still - (0.0, 0.0, 0.5 * h)) * soft @ _LYING[variant].T, np.float64)
    parts = {
        name: slice(*span)
        for name, *span in zip(shape.names, shape.first, shape.first[1:], strict=False)
    }
    trunk = np.r_[parts['torso'], parts['hips']]
    laid[..., 2] -= (laid[:, trunk, 2] - shape.radii[trunk]).min()
    for name, part in parts.items():
        side, _, limb = name.partition('_')
        is_leg = limb in ('thigh', 'shin', 'shoe')
        if variant == _ON_SIDE and (side == 'right' or is_leg):
            continue  # it lies on the body's other side
        if variant == _ON_BACK and side == 'right' and is_leg:
            continue  # a raised knee
        if limb in _FALLING:
            laid[:, part.start + _FALLING[limb] : part.stop, 2] = 0.0
        elif limb == 'shoe':
            laid[:, part, 2] -= (laid[:, part, 2] - shape.radii[part]).min()
    return laid


def _add_load(parts: PartList, variant: int, h: float) -> None:
    """Add a box before the body, a bag in the right hand, or a ladder over the right shoulder."""
    if variant == 0:
        middle = np.array([0.19 * h + 0.12, 0.0, 0.62 * h])
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        places = middle + corners * (0.12, 0.17, 0.1)
        parts.add('box', _CARDBOARD, *((place, 0.03) for place in places))
    elif variant == 1:
        hand = parts.centres[:, parts.first[parts.names.index('right_hand') + 1] - 1]
        low = [moved(hand, x=x, z=-0.34) for x in (-0.16, 0.16)]
        parts.add('bag', _CLOTH, (moved(hand, z=-0.05), 0.03), (low[0], 0.08), (low[1], 0.08))
    else:
        foot = np.array([-1.1, -0.135 * h, 0.66 * h])
        rails = [moved(foot, z=up) for up in (0.0, 0.36)]
        bars = [(rail, moved(rail, x=2.4)) for rail in rails]
        bars += [(moved(rails[0], x=x), moved(rails[1], x=x)) for x in np.linspace(0.2, 2.2, 6)]
        for begin, end in bars:
            parts.add('ladder', _WOOD, (begin, 0.025), (end, 0.025))

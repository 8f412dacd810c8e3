"""A person's joints: where they are while walking, standing and riding.

Proportions: Drillis and Contini, "Body segment parameters" (1966), as shares of the height.
A walking foot's ball stands still on the ground for the stance part of the cycle and swings
forward in the rest; the knee follows from where hip and ankle are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from mmedge_lab.simulation.articulated import PHASES, moved, points
from mmedge_ros.core.data_types import FloatArray

THIGH, SHIN, UPPER_ARM, FOREARM = 0.245, 0.246, 0.186, 0.146
HIP_HEIGHT, SHOULDER_HEIGHT, ANKLE_HEIGHT = 0.53, 0.815, 0.05
HIP_WIDTH, SHOULDER_WIDTH = 0.05, 0.105
# Radius of the foot's ball, and from there back to the heel.
BALL, FOOT = 0.022, 0.085

# How far the heel is up over the cycle, rad, from one heel strike to the next; stance ends
# at 0.6 here and where the gait has it in use.
_PITCH_KNOTS = np.array((0.0, 0.08, 0.35, 0.6, 0.72, 0.9, 1.0))
_PITCHES = np.array((-0.22, 0.0, 0.06, 0.8, 0.5, -0.18, -0.22))
_SIDES = (1.0, -1.0)  # left, right
_AHEAD, _UP_AHEAD = np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.0, 1.0])
_TURN = 2.0 * math.pi * np.arange(PHASES) / PHASES

Pair = tuple[FloatArray, FloatArray]  # left, right


@dataclass(frozen=True)
class Gait:
    """How a person moves on foot: ``stride`` m per cycle of two steps at ``pace`` m/s.

    ``stance`` is the share of the cycle a foot is on the ground: below 0.5 is running.
    Angles in rad; ``lift`` m is how high a swinging foot goes.
    """

    pace: float
    stride: float
    stance: float = 0.6
    lift: float = 0.05
    lean: float = 0.05
    arm_swing: float = 0.4
    elbow: float = 0.35


@dataclass(frozen=True)
class Stance:
    """How a person stands; pairs are left, right, angles in rad.

    Upper arms are ``raised`` forward from hanging down and ``spread`` outward, forearms
    bent by ``elbow`` and turned ``inward``. ``gesture`` is how much the arms move.
    """

    raised: tuple[float, float] = (0.05, 0.05)
    spread: tuple[float, float] = (0.1, 0.1)
    elbow: tuple[float, float] = (0.25, 0.25)
    inward: tuple[float, float] = (0.1, 0.1)
    gesture: float = 0.05
    apart: float = 0.02


STANCES = (
    Stance(),
    Stance(raised=(0.45, 0.5), elbow=(1.6, 1.7), inward=(0.6, 0.6)),  # holds a phone
    Stance(spread=(0.5, 0.5), elbow=(1.0, 1.0), inward=(1.1, 1.1), apart=0.05),  # on the hips
    Stance(raised=(0.2, 0.4), elbow=(0.6, 1.5), inward=(0.3, 0.2), gesture=0.3),  # talks
    Stance(raised=(0.35, 0.35), elbow=(1.5, 1.5), inward=(1.2, 1.2)),  # arms crossed
    Stance(raised=(0.1, 2.5), elbow=(0.3, 0.3), inward=(0.1, 0.0), gesture=0.25),  # waves
)


@dataclass(frozen=True)
class Hold:
    """Where pelvis, feet and hands are held, in shares of the height; angles in rad.

    The pelvis is ``seat`` up, the trunk leans forward by ``lean``, the feet's balls are ``ahead``
    with ``toes`` up. ``left`` and ``right`` (the same if None) are wrists: ahead, outward, up.
    """

    seat: float
    lean: float
    ahead: float
    left: tuple[float, float, float]
    right: tuple[float, float, float] | None = None
    apart: float = 0.03
    toes: float = 0.0


@dataclass(frozen=True, eq=False)
class Joints:
    """Places (PHASES, 3) m over one cycle."""

    pelvis: FloatArray
    chest: FloatArray
    head: FloatArray
    hips: Pair
    knees: Pair
    ankles: Pair
    heels: Pair
    balls: Pair
    shoulders: Pair
    elbows: Pair
    wrists: Pair


def walking(h: float, gait: Gait) -> Joints:
    """Return the joints of one walking cycle, left heel strike first, for height ``h`` m."""
    phase = np.arange(PHASES) / PHASES
    middle = math.pi * gait.stance
    runs = gait.stance < 0.5
    # Walkers are highest in mid-stance, runners lowest.
    bob = (-0.02 if runs else 0.011) * h * np.cos(2.0 * (_TURN - middle))
    sway = 0.01 * h * np.cos(_TURN - middle)
    low = 0.045 if runs else 0.015
    pelvis = points(0.0, sway, (HIP_HEIGHT - low) * h + bob)
    twist = 0.1 * np.cos(_TURN)
    chest, head = _trunk(h, pelvis, gait.lean)
    legs = _legs(h, pelvis, twist, [_step_of(h, gait, (phase + s) % 1.0) for s in (0.0, 0.5)], 0.0)
    swing = gait.arm_swing * np.cos(_TURN)
    raised = (0.03 - swing, 0.03 + swing)
    bent = (gait.elbow + 0.5 * raised[0], gait.elbow + 0.5 * raised[1])
    arms = _hanging_arms(h, chest, twist, raised, bent, Stance(spread=(0.08, 0.08)))
    return Joints(pelvis, chest, head, *legs, *arms)


def standing(h: float, stance: Stance, feet: list[Pair] | None = None) -> Joints:
    """Return the joints of a standing person, shifting weight and moving the arms.

    :param feet: balls (PHASES, 3) m and pitches of the feet, left and right, if not on the ground
    """
    pelvis = points(0.008 * np.sin(_TURN), 0.015 * np.sin(_TURN + 1.0), (HIP_HEIGHT - 0.005) * h)
    chest, head = _trunk(h, pelvis, 0.02)
    flat = np.zeros(PHASES)
    if feet is None:
        feet = [(points(f * 0.02 * h, 0.0, BALL * h), flat) for f in (1.5, 0.5)]
    twist = 0.05 * np.sin(_TURN)
    legs = _legs(h, pelvis, twist, feet, stance.apart)
    waved = (stance.gesture * np.sin(3.0 * _TURN), stance.gesture * np.sin(2.0 * _TURN + 0.5))
    raised = (stance.raised[0] + 0.5 * waved[0], stance.raised[1] + 0.5 * waved[1])
    bent = (stance.elbow[0] + waved[0], stance.elbow[1] + waved[1])
    return Joints(
        pelvis, chest, head, *legs, *_hanging_arms(h, chest, twist, raised, bent, stance)
    )


def holding(h: float, hold: Hold) -> Joints:
    """Return the joints of one who sits, crouches or carries something, and fidgets."""
    pelvis = points(0.0, 0.004 * h * np.sin(_TURN), hold.seat * h)
    chest, head = _trunk(h, pelvis, hold.lean)
    ball = points(hold.ahead * h, 0.0, BALL * h + FOOT * h * math.sin(hold.toes))
    pitch = np.full(PHASES, -hold.toes)
    legs = _legs(h, pelvis, np.zeros(PHASES), [(ball, pitch)] * 2, hold.apart, _UP_AHEAD)
    arms = []
    for side, (x, y, z) in zip(_SIDES, (hold.left, hold.right or hold.left), strict=True):
        shoulder = moved(chest, y=side * SHOULDER_WIDTH * h)
        wrist = points(x * h + 0.012 * h * np.sin(_TURN), side * y * h, z * h)
        arms.append((shoulder, _bent(shoulder, wrist, UPPER_ARM * h, FOREARM * h, -1.0), wrist))
    return Joints(pelvis, chest, head, *legs, *_paired(arms))


def riding(h: float, saddle: FloatArray, pedals: Pair, grips: Pair) -> Joints:
    """Return the joints of a cyclist, given where its parts are, in m."""
    pelvis = np.broadcast_to(saddle, (PHASES, 3))
    # The trunk leans so far that the hands reach the grips with bent arms.
    chest, head = _trunk(h, pelvis, 0.5)
    head = moved(head, x=-0.03 * h, z=0.015 * h)
    flat = np.full(PHASES, 0.15)
    legs, arms = [], []
    for side, pedal, grip in zip(_SIDES, pedals, grips, strict=True):
        hip = moved(pelvis, y=side * HIP_WIDTH * h)
        ankle, heel, ball = _foot(h, pedal, flat)
        legs.append((hip, _bent(hip, ankle, THIGH * h, SHIN * h, 1.0), ankle, heel, ball))
        shoulder = moved(chest, y=side * SHOULDER_WIDTH * h)
        wrist = np.broadcast_to(grip, (PHASES, 3))
        elbow = _bent(shoulder, wrist, UPPER_ARM * h, FOREARM * h, -1.0)
        arms.append((shoulder, elbow, wrist))
    return Joints(pelvis, chest, head, *_paired(legs), *_paired(arms))


def _trunk(h: float, pelvis: FloatArray, lean: float) -> Pair:
    """Return the middle between the shoulders, and the head."""
    up = (SHOULDER_HEIGHT - HIP_HEIGHT) * h
    steady = pelvis * np.array([1.0, 0.5, 1.0])
    chest = moved(steady, x=math.sin(lean) * up, z=math.cos(lean) * up)
    return chest, moved(chest, x=(0.02 + 0.1 * math.sin(lean)) * h, z=0.115 * h)


def _legs(
    h: float, pelvis: FloatArray, twist: FloatArray, feet: list[Pair], apart: float,
    knees: FloatArray = _AHEAD,
) -> list[Pair]:  # fmt: skip
    """Return hips, knees, ankles, heels, balls; ``feet`` are balls and pitches.

    :param knees: (3,) where they point to
    """
    legs = []
    for side, (ball, pitch) in zip(_SIDES, feet, strict=True):
        hip = pelvis + points(side * twist * HIP_WIDTH * h, side * HIP_WIDTH * h, 0.0)
        placed = moved(ball, y=side * (0.035 + apart) * h)
        ankle, heel, placed = _foot(h, placed, pitch)
        knee = _bent(hip, ankle, THIGH * h, SHIN * h, 1.0, knees)
        legs.append((hip, knee, ankle, heel, placed))
    return _paired(legs)


def _foot(
    h: float, ball: FloatArray, pitch: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ankle, heel and ball of a foot whose heel is up by ``pitch`` (PHASES,) rad."""
    back, rise = 0.72 * FOOT * h, (ANKLE_HEIGHT - BALL) * h
    c, s = np.cos(pitch), np.sin(pitch)
    ankle = ball + points(rise * s - back * c, 0.0, rise * c + back * s)
    return ankle, ball + points(-FOOT * h * c, 0.0, FOOT * h * s), ball


def _hanging_arms(
    h: float, chest: FloatArray, twist: FloatArray, raised: Pair, bent: Pair, stance: Stance
) -> list[Pair]:
    """Return shoulders, elbows, wrists."""
    arms = []
    for i, side in enumerate(_SIDES):
        width = SHOULDER_WIDTH * h
        shoulder = chest + points(-side * twist * width, side * width, 0.0)
        elbow = shoulder + UPPER_ARM * h * _direction(raised[i], side * stance.spread[i])
        down = _direction(raised[i] + bent[i], -side * stance.inward[i])
        arms.append((shoulder, elbow, elbow + FOREARM * h * down))
    return _paired(arms)


def stepping(phase: FloatArray, stance: float, stride: float) -> tuple[FloatArray, FloatArray]:
    """Return how far ahead of its hip a foot is, m, and how far its swing has gone, 0..1.

    On the ground, for the first ``stance`` of the cycle, it moves back as fast as the body
    moves forward; then a cubic takes it to the next step, as fast as the ground at both ends.
    """
    half = 0.5 * stance * stride
    u = np.clip((phase - stance) / (1.0 - stance), 0.0, 1.0)
    slope = -stride * (1.0 - stance)
    swung = (
        half * (-1.0 + 2.0 * (3.0 * u**2 - 2.0 * u**3))
        + slope * (u - 2.0 * u**2 + u**3)
        + slope * (u**3 - u**2)
    )
    return np.where(phase < stance, half - stride * phase, swung), u


def _step_of(h: float, gait: Gait, phase: FloatArray) -> Pair:
    """Return a foot's ball, (PHASES, 3) m beside its hip, and how far its heel is up, rad."""
    ahead, swing = stepping(phase, gait.stance, gait.stride)
    early = _PITCH_KNOTS * gait.stance / 0.6
    late = gait.stance + (_PITCH_KNOTS - 0.6) * (1.0 - gait.stance) / 0.4
    knots = np.where(_PITCH_KNOTS <= 0.6, early, late)
    pitch = np.asarray(PchipInterpolator(knots, _PITCHES)(phase), np.float64)
    # A foot that lands on its heel has its ball in the air.
    toe = FOOT * h * np.sin(np.clip(-pitch, 0.0, None))
    z = BALL * h + gait.lift * np.sin(math.pi * swing) ** 2 + toe
    return points(ahead + 0.45 * FOOT * h, 0.0, z), pitch


def _bent(
    root: FloatArray, tip: FloatArray, upper: float, lower: float, side: float,
    forward: FloatArray = _AHEAD,
) -> FloatArray:  # fmt: skip
    """Return the joint between two bones, (PHASES, 3) m: a knee (side 1) or elbow (-1).

    Where the tip is out of reach the limb is stretched towards it.
    """
    reach = tip - root
    distance = np.linalg.norm(reach, axis=1)
    along = reach / distance[:, None]
    length = np.clip(distance, 1e-3, 0.9995 * (upper + lower))
    part = (upper**2 - lower**2 + length**2) / (2.0 * length)
    out = np.sqrt(np.clip(upper**2 - part**2, 0.0, None))
    # Forward for a knee, backward and down for an elbow; at right angles to the line.
    ahead = forward - (along @ forward)[:, None] * along
    ahead /= np.linalg.norm(ahead, axis=1)[:, None]
    stretch = (distance / length)[:, None]
    bent = stretch * part[:, None] * along + side * out[:, None] * ahead
    return np.asarray(root + bent, np.float64)


def _direction(raised: FloatArray, out: float) -> FloatArray:
    """Return unit vectors: down, raised forward, then spread to the left, rad."""
    flat = math.cos(out)
    return points(np.sin(raised) * flat, math.sin(out), -np.cos(raised) * flat)


def _paired(limbs: Sequence[tuple[FloatArray, ...]]) -> list[Pair]:
    """Turn the joints of a left and a right limb into left-right pairs."""
    return list(zip(*limbs, strict=True))

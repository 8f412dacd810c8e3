"""What makes a flight hard, by the name of its condition: each sensor and source fails in its way.

Every hard flight has the chirps that ship, a radar limited by clutter, a rangefinder, an estimator
that errs a little and a rolling shutter; its condition adds what it is named after.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from mmedge_lab.simulation import SimulationError
from mmedge_lab.simulation.scenario import SeedStream, generator

CONDITIONS = {
    'slope': 'ground that slopes, with banks and steps',
    'drift': 'odometry that drifts, leans and is reset',
    'still': 'people who stand still, lie, sit, crouch, wave or carry',
    'fog': 'fog of 10 to 18 m',
    'dark': 'no light at all',
    'lens': 'a covered or dirty lens, or glare',
    'silent': 'camera or radar silent for 3 s, or a radar in brown-out',
    'lost': 'odometry that stops',
    'mixed': 'what happens on a patrol: some of all, one after the other',
}
_CHIRPS = ('iwr6843_sdk3_20hz', 'iwr1843_sdk3_20hz', 'iwr1642_sdk3_20hz', 'iwr1443_sdk2_20hz')
_SHORT, _LONG = 3.0, 10.0  # s of silence in flights and on patrols
_FOG = (10.0, 18.0)  # m
_RELIEF = {'slope': 1.0, 'mixed': 0.3}  # share of it; elsewhere the ground is flat


class Outage(NamedTuple):
    """From ``begin`` to ``end`` s of a flight."""

    begin: float
    end: float


Outages = tuple[Outage, ...]


def within(spans: Outages, t: float) -> bool:
    """Tell whether an instant, s, lies in one of the spans."""
    return any(begin <= t < end for begin, end in spans)


@dataclass(frozen=True)
class EstimatorErrors:
    """How a state estimator errs.

    ``altitude`` m is how far the barometer drifts, ``position`` m how far GNSS strays; ``pitch``,
    ``roll`` rad are biases of attitude, ``yaw_rate`` rad/s the drift of yaw. At ``reset`` s the
    position jumps by ``jump`` (3,) m and yaw by ``turn`` rad.
    """

    altitude: float
    position: float
    pitch: float
    roll: float
    yaw_rate: float
    reset: float = math.inf
    jump: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: float = 0.0


@dataclass(frozen=True)
class LensFaults:
    """What is on the lens: ``covered`` when, and how much (0..1) ``dirt`` and ``glare``."""

    covered: Outages = ()
    dirt: float = 0.0
    glare: float = 0.0


@dataclass(frozen=True)
class Hardships:
    """All of one flight.

    ``relief`` m is how high the ground rises and falls. The radar flies the ``chirps`` of that
    name; while it is ``radar_weak`` it loses ``brown_out`` dB. ``fog`` m is the visibility,
    infinite in clear air. ``posed`` is the share of people who do not walk.
    """

    condition: str
    chirps: str
    relief: float
    estimator: EstimatorErrors
    posed: float
    camera_silent: Outages = ()
    radar_silent: Outages = ()
    radar_weak: Outages = ()
    odometry_stopped: Outages = ()
    brown_out: float = 0.0
    lens: LensFaults = field(default_factory=LensFaults)
    fog: float = math.inf
    unlit: bool = False


def draw_hardships(condition: str, seed: int, seconds: float) -> Hardships:
    """Draw what a flight of that condition has to bear.

    :raises SimulationError: for an unknown condition
    """
    if condition not in CONDITIONS:
        near = difflib.get_close_matches(condition, CONDITIONS, n=1, cutoff=0.0)[0]
        raise SimulationError(
            f'unknown condition {condition!r}; the nearest is {near!r} of {", ".join(CONDITIONS)}'
        )
    random = generator(seed, SeedStream.HARDSHIP)
    kind = int(random.integers(3))
    is_mixed = condition == 'mixed'
    silence = _LONG if is_mixed else _SHORT
    # On a patrol one after the other; in a flight there is one, and it begins when people are
    # followed.
    begins = seconds * np.array([0.3, 0.45, 0.6, 0.75, 0.9]) if is_mixed else [2.5] * 5
    spans = [(Outage(at, at + silence),) for at in np.add(begins, random.uniform(-0.5, 0.5, 5))]
    is_hit = {
        'camera_silent': is_mixed or (condition == 'silent' and kind == 0),
        'radar_silent': is_mixed or (condition == 'silent' and kind == 1),
        'radar_weak': is_mixed or (condition == 'silent' and kind == 2),
        'odometry_stopped': is_mixed or condition == 'lost',
    }
    struck = {
        name: span if hit else () for (name, hit), span in zip(is_hit.items(), spans, strict=False)
    }
    drifts = condition in ('drift', 'mixed')
    lens = _draw_lens(condition, kind, spans[4], random)
    # On every fourth patrol each of fog and darkness; the rest has its scenario's light.
    weather = random.permutation(4)[0] if is_mixed else 9
    return Hardships(
        condition,
        str(random.choice(_CHIRPS)),
        relief=random.uniform(1.0, 3.0) * _RELIEF.get(condition, 0.0),
        estimator=_draw_estimator(drifts, seconds, random),
        posed=0.7 if condition == 'still' else 0.25,
        brown_out=random.uniform(15.0, 25.0),
        lens=lens,
        fog=random.uniform(*_FOG) if condition == 'fog' or weather == 0 else math.inf,
        unlit=condition == 'dark' or weather == 1,
        **struck,
    )


def _draw_lens(
    condition: str, kind: int, covered: Outages, random: np.random.Generator
) -> LensFaults:
    dirt, glare = random.uniform(0.5, 1.0, 2)
    if condition == 'mixed':
        return LensFaults(covered, 0.3 * dirt)
    if condition != 'lens':
        return LensFaults()
    faults = (LensFaults((Outage(1.5, math.inf),)), LensFaults(dirt=dirt), LensFaults(glare=glare))
    return faults[kind]


def _draw_estimator(drifts: bool, seconds: float, random: np.random.Generator) -> EstimatorErrors:
    """Draw errors: those of a good day, or of one on which every source is off."""
    size = 1.0 if drifts else 0.3
    signs = random.choice((-1.0, 1.0), 5)
    lean = np.radians(random.uniform(0.5, 1.0, 2)) * signs[1:3] * size
    reset = random.uniform(0.35, 0.7) * seconds if drifts else math.inf
    jump = random.normal(0.0, (0.7, 0.7, 0.3))
    return EstimatorErrors(
        altitude=random.uniform(0.3, 1.0) * signs[0] * size,
        position=random.uniform(0.5, 1.5) * size,
        pitch=float(lean[0]),
        roll=float(lean[1]),
        yaw_rate=np.radians(random.uniform(0.1, 0.4)) * float(signs[3]) * size,
        reset=reset,
        jump=(float(jump[0]), float(jump[1]), float(jump[2])),
        turn=np.radians(random.uniform(2.0, 6.0)) * float(signs[4]),
    )

"""Who is on a stage when a flight begins: single walkers, pairs, groups, runners and idlers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from mmedge_lab.simulation.traffic import VisibleStage, Walker
from mmedge_ros.core.data_types import FloatArray

FEWEST, MOST = 2, 9  # people in a flight

_KINDS = ('single', 'pair', 'group', 'idler', 'runner')
_SHARES = (0.36, 0.26, 0.2, 0.11, 0.07)


@dataclass
class Crowd:
    """People and dogs before they walk.

    ``facing`` rad is the heading at rest, NaN for the heading of the last motion.
    """

    walkers: list[Walker] = field(default_factory=list)
    facing: list[float] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def add(self, walker: Walker, facing: float, kind: str = 'person') -> None:
        self.walkers.append(walker)
        self.facing.append(facing)
        self.kinds.append(kind)


def draw_crowd(
    stage: VisibleStage, seconds: float, random: np.random.Generator, fewest: int = FEWEST,
    most: int = MOST, crowd: Crowd | None = None,
) -> Crowd:  # fmt: skip
    """Draw ``fewest`` to ``most`` people on a stage, in addition to a ``crowd``."""
    crowd = Crowd() if crowd is None else crowd
    count = len(crowd.walkers) + int(random.integers(fewest, most + 1))
    while len(crowd.walkers) < count:
        room = count - len(crowd.walkers)
        kind = str(random.choice(_KINDS, p=_SHARES)) if room > 1 else 'single'
        start = free_start(stage, crowd)
        walks = Walker(start, random.uniform(0.9, 1.7), _draw_pauses(seconds, random))
        if kind == 'group':
            _add_group(crowd, start, min(int(random.integers(2, 5)), room), seconds, random)
        elif kind == 'pair':
            crowd.add(walks, math.nan)
            apart = random.choice((-1.0, 1.0)) * random.uniform(0.6, 0.85)
            second = replace(
                walks, start=start + np.array([0.0, apart]), speed=1.15 * walks.speed,
                companion=len(crowd.walkers) - 1, beside=apart,
            )  # fmt: skip
            crowd.add(second, math.nan, 'child' if random.random() < 0.25 else 'person')
        elif kind == 'runner':
            crowd.add(
                replace(walks, speed=random.uniform(2.3, 3.0), pauses=()), math.nan, 'runner'
            )
        elif kind == 'idler':
            crowd.add(replace(walks, speed=0.0), random.uniform(-math.pi, math.pi))
        else:
            crowd.add(walks, math.nan, 'child' if random.random() < 0.06 else 'person')
    return crowd


def _add_group(
    crowd: Crowd, middle: FloatArray, size: int, seconds: float, random: np.random.Generator
) -> None:
    """Add people that stand in a circle and talk; sometimes they break up."""
    radius = 0.3 + 0.13 * size
    first = random.uniform(0.0, 2.0 * math.pi)
    leaves = random.random() < 0.35
    for i in range(size):
        angle = first + 2.0 * math.pi * i / size + random.normal(0.0, 0.15)
        place = middle + radius * np.array([math.cos(angle), math.sin(angle)])
        speed = 0.0
        pauses: tuple[tuple[float, float], ...] = ()
        if leaves:
            until = random.uniform(0.2, 0.9) * min(seconds, 12.0)
            speed, pauses = random.uniform(0.9, 1.5), ((-math.inf, until),)
        crowd.add(Walker(place, speed, pauses), angle + math.pi)


def _draw_pauses(seconds: float, random: np.random.Generator) -> tuple[tuple[float, float], ...]:
    if random.random() < 0.65:
        return ()
    begin = random.uniform(0.0, seconds)
    return ((begin, begin + random.uniform(1.5, 5.0)),)


def free_start(stage: VisibleStage, crowd: Crowd) -> FloatArray:
    """Draw a place at the flight's begin that keeps off the others'."""
    place = stage.place(0.0, room=0.9)
    for _ in range(10):
        if all(math.dist(place, walker.start) > 1.2 for walker in crowd.walkers):
            break
        place = stage.place(0.0, room=0.9)
    return place

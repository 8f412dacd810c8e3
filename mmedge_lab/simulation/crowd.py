"""Who is on a stage when a flight begins: single walkers, pairs, groups, runners and idlers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from mmedge_lab.simulation.flight_path import FlownTrack
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


# Half of the widest camera's field of view, and of what a drone has before it, rad.
_HALF_VIEW, _HALF_STAGE = 0.7, 0.78
_OUTSIDE = (0.5, 3.0)  # m out of view that one who comes begins
_WAIT = (-0.5, 2.5)  # s


def send_in(
    crowd: Crowd, stage: VisibleStage, track: FlownTrack, random: np.random.Generator
) -> None:
    """Let a third of those who walk begin out of view, where the stage can be reached from.

    Whoever walks beside one of them comes along, and at least one person is always in view.
    """
    starts = np.array([w.start for w in crowd.walkers])
    bearings, reaches = _seen_from(track, starts)
    middle = float(bearings.mean())
    side = math.copysign(1.0, middle)
    eye = track.positions[np.searchsorted(track.times, 0.0), :2]
    edge = math.atan2(*(track.stage - eye)[::-1]) + side * max(
        _HALF_STAGE, _HALF_VIEW + abs(middle)
    )
    walking = sum(walker.speed > 0.0 for walker in crowd.walkers)
    left = min(round(walking / 3), len(crowd.walkers) - 1)
    for i in random.permutation(len(crowd.walkers)).tolist():
        walker = crowd.walkers[i]
        along = [j for j, other in enumerate(crowd.walkers) if i in (j, other.companion)]
        if walker.speed == 0.0 or walker.companion >= 0 or len(along) > left:
            continue
        for reach in reaches[i] * random.uniform(0.7, 1.2, 12):
            bearing = edge + side * random.uniform(*_OUTSIDE) / reach
            place = eye + reach * np.array([math.cos(bearing), math.sin(bearing)])
            if (
                stage.obstacles.distance(place)[0] > 0.7
                and (stage.place(2.0, place) != place).any()
            ):
                left -= len(along)
                waits = ((-math.inf, random.uniform(*_WAIT)),)
                for j in along:
                    start = starts[j] + place - walker.start
                    crowd.walkers[j] = replace(crowd.walkers[j], start=start, pauses=waits)
                break


def is_before(track: FlownTrack, place: FloatArray) -> bool:
    """Tell whether a place (2,) m is before the drone when a flight begins."""
    return bool(abs(_seen_from(track, place)[0]) < _HALF_STAGE)


def _seen_from(track: FlownTrack, places: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bearings (...) rad off the stage and distances (...) m of places (..., 2) m."""
    eye = track.positions[np.searchsorted(track.times, 0.0), :2]
    ahead, apart = track.stage - eye, places - eye
    across = ahead[0] * apart[..., 1] - ahead[1] * apart[..., 0]
    return np.arctan2(across, apart @ ahead), np.hypot(apart[..., 0], apart[..., 1])

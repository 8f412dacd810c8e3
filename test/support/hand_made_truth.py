"""True scenes, decisions and runs made by hand, with figures that can be reckoned in the head.

The drone stands still at the origin of odom unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, Track
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import GroundTruth, TrueObject, TrueScene

MS = 1_000_000
BEGIN_NS = 1_700_000_000 * NS_PER_S
FRAME_MS = 20
# 40 px wide and 100 px tall.
BOX = Box(300.0, 200.0, 340.0, 300.0)


def at(ms: float) -> int:
    """Instant in nanoseconds, given in milliseconds since the beginning."""
    return BEGIN_NS + round(ms * MS)


def moved(box: Box, right: float, down: float = 0.0) -> Box:
    return Box(box.x0 + right, box.y0 + down, box.x1 + right, box.y1 + down)


def true_person(
    number: int = 1,
    box: Box | None = BOX,
    position: Sequence[float] = (10.0, 0.0, 0.0),
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
    label: str = 'person',
    visibility: float = 1.0,
) -> TrueObject:
    return TrueObject(
        number, label, box, visibility, np.array(position, float), np.array(velocity, float)
    )


def standing(stamp_ns: int, position: Sequence[float] = (0.0, 0.0, 0.0)) -> EgoState:
    """A drone that stands still somewhere, looking along x."""
    pose = Transform(np.eye(3), np.array(position, float))
    return EgoState(stamp_ns, pose, np.zeros(3), np.zeros(3))


def scene(ms: float, *objects: TrueObject, **more: Any) -> TrueScene:
    more = {'surroundings': 'meadow', 'light': 'day', 'distance': 'near'} | more
    more.setdefault('ego', standing(at(ms)))
    return TrueScene(at(ms), more.pop('frame_id', 'odom'), objects, **more)


def film(
    people: Callable[[float], Iterable[TrueObject]], end: int = 1000, step: int = FRAME_MS
) -> GroundTruth:
    """The truth of a flight: ``people(ms)`` at every frame up to ``end`` ms."""
    return GroundTruth([scene(ms, *people(ms)) for ms in range(0, end + 1, step)])


def track(
    number: int = 1,
    box: Box | None = BOX,
    position: Sequence[float] = (10.0, 0.0, 0.9),
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
    label: str = 'person',
    spread: float = 0.1,
    drift: tuple[float, float] = (0.0, 0.0),
    covariance: Any = None,
) -> Track:
    return Track(
        number,
        label,
        0.9,
        box,
        np.array(position, float),
        np.array(velocity, float),
        np.diag([spread] * 6) if covariance is None else covariance,
        ('camera',) if box else ('radar',),
        0.0,
        drift,
    )


def decided(
    end: float, *tracks: Track, state: float | None = None, published: float | None = None
) -> Decision:
    """A decision for the window that ends at ``end`` ms; its state and publication in ms too."""
    state = end if state is None else state
    published = state if published is None else published
    return Decision(at(end), at(state), 'odom', tracks, {}, published_ns=at(published))


def run(decisions: Iterable[Decision], truth: GroundTruth | None = None) -> RunRecord:
    made = list(decisions)
    return RunRecord(
        'by_hand',
        'offline',
        deadline=0.05,
        window=0.5,
        stride=0.1,
        windows=len(made),
        frame_id='odom',
        decisions=made,
        truth=truth,
    )

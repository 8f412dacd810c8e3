"""Flights of ten seconds as they were perceived, with tracks on straight ways."""

from __future__ import annotations

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.questions.observations import Observations, ObservedDrone, ObservedTrack

BEGIN_NS = 100 * NS_PER_S
STAMPS_NS = BEGIN_NS + np.arange(101, dtype=np.int64) * (NS_PER_S // 10)


def walked(
    number: int,
    label: str = 'person',
    place: tuple[float, float] = (10.0, 0.0),
    velocity: tuple[float, float] = (0.0, 0.0),
    span: tuple[float, float] = (0.0, 10.0),
    deviation: float = 0.5,
) -> ObservedTrack:
    """A track that is at a place at the begin of the flight, and moves on from there."""
    since = (STAMPS_NS - BEGIN_NS) / NS_PER_S
    stamps = STAMPS_NS[(since >= span[0]) & (since <= span[1])]
    seconds = (stamps - BEGIN_NS)[:, None] / NS_PER_S
    ways = np.array([*velocity, 0.0])
    count = len(stamps)
    return ObservedTrack(
        number,
        label,
        stamps,
        np.array([*place, 0.0]) + seconds * ways,
        np.tile(ways, (count, 1)),
        np.full(count, deviation),
        np.ones(count, bool),
    )


def hovering(heading: float = 0.0) -> ObservedDrone:
    """A drone above 0, 0; x is ahead of it without a heading."""
    count = len(STAMPS_NS)
    return ObservedDrone(STAMPS_NS, np.tile([0.0, 0.0, 8.0], (count, 1)), np.full(count, heading))


def observed(
    *tracks: ObservedTrack,
    drone: ObservedDrone | None = None,
    blind: tuple[float, float] = (20.0, 0.0),
) -> Observations:
    """A flight; the camera sends nothing while it is blind."""
    since = (STAMPS_NS - BEGIN_NS) / NS_PER_S
    camera = (since < blind[0]) | (since > blind[1])
    return Observations(tracks, STAMPS_NS, camera, 'odom', drone)

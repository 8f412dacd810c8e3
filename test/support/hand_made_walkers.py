"""Tracks of people who walk straight on, ten decisions a second."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.questions.observations import Observations, ObservedTrack

_RATE = 10


def walker(
    number: int,
    begin: float,
    end: float,
    place: tuple[float, float] = (10.0, 0.0),
    velocity: tuple[float, float] = (0.0, 1.0),
    *,
    label: str = 'person',
    looks: tuple[float, ...] = (),
    deviation: float = 0.3,
) -> ObservedTrack:
    """A track seen from ``begin`` to ``end`` s; at second 0 it would be at ``place``."""
    ticks = np.arange(round(begin * _RATE), round(end * _RATE) + 1)
    count, moved = len(ticks), np.array([*velocity, 0.0])
    return ObservedTrack(
        number,
        label,
        ticks * (NS_PER_S // _RATE),
        np.array([*place, 0.0]) + (ticks / _RATE)[:, None] * moved,
        np.tile(moved, (count, 1)),
        np.full(count, deviation),
        np.ones(count, bool),
        np.array([looks], np.float32) if looks else np.zeros((0, 0), np.float32),
        (number,) if looks else (),
    )


def observed(*tracks: ObservedTrack, seconds: float = 10.0) -> Observations:
    """Observations of a camera that always sent something."""
    stamps = np.arange(round(seconds * _RATE) + 1) * (NS_PER_S // _RATE)
    return Observations(tracks, stamps, np.ones(len(stamps), bool), 'odom')

"""Tracks and tracker states made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.tracking.kalman_filter import BoxState, RateSpread
from mmedge_ros.tracking.track import TrackerState, TrackState

SPREAD = RateSpread(0.01, 0.0, 0.01)


def boxed(
    x: float = 320.0,
    y: float = 240.0,
    width: float = 40.0,
    height: float = 110.0,
    rates: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0),
) -> BoxState:
    """A box centred there."""
    return BoxState(np.array([x, y, width, height]), np.array(rates), SPREAD, SPREAD)


def track(number: int = 1, box: BoxState | None = None, **values: Any) -> TrackState:
    """A track that is shown if it has a box."""
    found = TrackState(number, 'person', 0.9, np.zeros(6), np.eye(6), box, 0, {CAMERA: 0}, 0)
    return found._replace(**{'confirmed': True, 'support': 4, **values})


def state(stamp_ns: int, *tracks: TrackState) -> TrackerState:
    return TrackerState(stamp_ns, tracks, len(tracks) + 1)

"""Readings of one person ahead, by the height of the box or by returns inside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hand_made_units import at

from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Measurement
from mmedge_ros.tracking.track import TrackerState
from mmedge_ros.tracking.tracker import Tracker, TrackerParameters

PERIOD = 50.0
BODY, BOX = 0.15, 0.08
NAN = float('nan')


def along(deviation: float) -> np.ndarray:
    """Covariance (3, 3) of an error along x."""
    return np.diag([deviation**2, 0.0, 0.0])


def by_height(ms: float, x: float, height_deviation: float = NAN) -> Measurement:
    """A person in the picture, as far away as the box is tall.

    :param height_deviation: how far people differ in height; NaN if the box says nothing of it
    """
    covariance = along(np.hypot(BODY, BOX) * x) + 0.05**2 * np.eye(3)
    return Measurement(
        at(ms),
        'person',
        0.9,
        Box(300.0, 200.0, 340.0, 320.0),
        np.array([x, 0.0, 0.0]),
        covariance,
        NAN,
        0.1,
        np.zeros(3),
        (CAMERA,),
        'height',
        x,
        lasting={CAMERA: along(BODY * x)},
        height_deviation=height_deviation,
    )


def by_radar(
    ms: float, x: float, height_x: float, odds: float = 1.5, height_deviation: float = NAN
) -> Measurement:
    """The same with returns at ``x`` m in its box."""
    camera = by_height(ms, height_x, height_deviation)
    return replace(
        camera,
        position=np.array([x, 0.0, 0.0]),
        covariance=along(0.25) + 0.05**2 * np.eye(3),
        radial_velocity=0.0,
        seen_by=(CAMERA, RADAR),
        range_from='radar',
        depth=x,
        lasting={RADAR: along(0.1)},
        otherwise=camera,
        odds=odds,
        height_deviation=NAN,
    )


def followed(
    *readings: Measurement, state: TrackerState | None = None, **parameters: float
) -> TrackerState:
    """What a tracker that is given them one by one knows in the end of the one person."""
    tracker, state = Tracker(TrackerParameters(**parameters)), state or TrackerState()
    for reading in readings:
        state = tracker.step(state, reading.stamp_ns, [reading])
    assert len(state.tracks) == 1
    return state


def deviation(state: TrackerState) -> float:
    """Standard deviation of the range of the one person."""
    return float(np.sqrt(state.tracks[0].covariance[0, 0]))

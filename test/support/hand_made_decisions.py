"""A unit, a track and a decision with a value in every field."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmedge_ros.core import data_types as core
from mmedge_ros.core.data_types import NS_PER_S, Box, StageTiming

NOW_NS = 1_700_000_000 * NS_PER_S


def a_unit() -> core.UnitFeatures:
    return core.UnitFeatures(
        'radar',
        7,
        NOW_NS,
        NOW_NS + 5_000_000,
        'radar_link',
        (StageTiming('acquisition', NOW_NS, NOW_NS + 5_000_000),),
        detections=(core.Detection(Box(1.0, 2.0, 3.0, 4.0), 0.9, 'person'),),
        returns=np.ones((2, 5), np.float32),
        grid=np.ones((2, 3, 4), np.float16),
    )


def a_track(**values: Any) -> core.Track:
    position, velocity = np.array([4.0, -1.0, 0.5]), np.array([0.5, -0.25, 0.0])
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = np.diag([0.25, 0.5, 1.0])
    covariance[3:, 3:] = 0.125
    given_values: dict[str, Any] = {
        'id': 3,
        'label': 'person',
        'score': 0.5,
        'box': Box(1.0, 2.0, 3.5, 8.0),
        'position': position,
        'velocity': velocity,
        'covariance': covariance,
        'seen_by': ('camera', 'radar'),
        'age': 0.25,
        'box_velocity': (1.5, -2.0),
    }
    return core.Track(**{**given_values, **values})


def a_decision(*tracks: core.Track) -> core.Decision:
    return core.Decision(
        NOW_NS,
        NOW_NS - 30_000_000,
        'radar_link',
        tracks,
        {'camera': NOW_NS - 40_000_000, 'radar': NOW_NS - 30_000_000},
        (0, 4),
        ('radar',),
        ('thermal',),
        ('camera',),
        ('no odometry',),
        (StageTiming('acquisition', NOW_NS - 40_000_000, NOW_NS - 10_000_000),),
    ).published(NOW_NS + 2_500_000)

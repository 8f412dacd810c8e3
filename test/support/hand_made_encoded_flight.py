"""A flight in memory with features made by hand: people before a drone that stands still."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hand_made_units import MS, features, unit

from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY
from mmedge_ros.geometry.transforms import StampedTransform

PERIODS = {CAMERA: round(33.3 * MS), RADAR: 50 * MS}


def encoded_flight(people: Callable[[float], int], seconds: float = 2.0) -> EncodedFlight:
    """:param people: how many there are at an instant (ms)"""
    units = [
        unit(3.0 + sequence * period_ns / MS, modality, sequence)
        for modality, period_ns in PERIODS.items()
        for sequence in range(int(1000.0 * seconds / (period_ns / MS)))
    ]
    units.sort(key=lambda u: (u.available_ns, u.modality))
    made = {}
    for of in units:
        when = 3.0 + of.sequence * PERIODS[of.modality] / MS
        boxes = [
            Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0)
            for n in range(people(when) if of.modality == CAMERA else 0)
        ]
        detections = tuple(Detection(box, 0.9, 'person') for box in boxes)
        made[of.modality, '', of.sequence] = features(
            of, detections=detections, image_size=(640, 480) if of.modality == CAMERA else (0, 0)
        )
    return EncodedFlight(
        RunRecord('flight', 'offline', 0.05, 0.5, 0.1),
        tuple(units),
        PERIODS,
        [
            StampedTransform(
                'base_link', 'camera_optical', np.array([0.1, 0.0, 1.0]), OPTICAL_TO_BODY
            ),
            StampedTransform('base_link', 'radar_link', np.array([0.1, 0.0, 0.9]), np.eye(3)),
        ],
        CameraModel(
            640, 480, np.array([[450.0, 0, 320], [0, 450, 240], [0, 0, 1]]), np.zeros(0), 'none'
        ),
        {CAMERA: (), RADAR: ()},
        made,  # type: ignore[arg-type]
    )

"""A flight in memory with features made by hand: people before a drone that stands still."""

from __future__ import annotations

from collections.abc import Callable

from hand_made_units import LENS, MOUNTS, MS, features, unit

from mmedge_lab.judging.encoded_flight import EncodedFlight
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Detection
from mmedge_ros.core.run_record import RunRecord

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
        [*MOUNTS],
        LENS,
        {CAMERA: (), RADAR: ()},
        made,  # type: ignore[arg-type]
    )

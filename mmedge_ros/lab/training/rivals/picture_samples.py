"""Samples for imputation: pictures taken away, beside what is known of them before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmedge_ros.data_types import CAMERA, RADAR, FloatArray, ModalityConfiguration, UnitFeatures
from mmedge_ros.lab.evaluation.encoded_flight import EncodedFlight
from mmedge_ros.lab.policies.imputation import (
    LEAST_SCORE,
    PERSON_FIELDS,
    displacement,
    person_features,
)
from mmedge_ros.lab.policies.policy_features import partners, strong_detections
from mmedge_ros.lab.policies.scheduled_replay import StoredFeatures
from mmedge_ros.lab.training.rivals.samples import ImputationSamples

# Pictures between those that are ready: all, every second or third where encoders do not keep up.
_STEPS = (1, 2, 3)
# How many pictures the missing one is ahead of the newest that is ready.
_LEADS = (1, 2, 3, 4)
_PICTURES = 3


def picture_samples(
    flight: EncodedFlight, number: int, level: str, window_ns: int, seed: int
) -> ImputationSamples:
    """Take away each picture of a flight in turn, with one step and one lead drawn for it.

    :param number: tells the flight from others
    :param level: of the camera
    :param window_ns: how far back units are known
    """
    stored = StoredFeatures(flight)

    def encoded(modality: str, of_level: str) -> list[UnitFeatures]:
        part = ModalityConfiguration(modality, 0.0, of_level)
        found = [
            stored.of(modality, sequence, part)
            for own, sequence in stored.units
            if own == modality
        ]
        return sorted((unit for unit in found if unit is not None), key=lambda u: u.stamp_ns)

    levels = flight.levels[RADAR]
    pictures, scans = encoded(CAMERA, level), encoded(RADAR, levels[-1] if levels else '')
    random = np.random.default_rng(seed)
    rows: list[tuple[FloatArray, bool, FloatArray, FloatArray, FloatArray]] = []
    for place, missing in enumerate(pictures):
        lead, step = int(random.choice(_LEADS)), int(random.choice(_STEPS))
        places = [place - lead - step * back for back in range(_PICTURES)]
        begin_ns = missing.stamp_ns - window_ns
        ready = [pictures[p] for p in reversed(places) if p >= 0]
        ready = [unit for unit in ready if unit.stamp_ns > begin_ns]
        heard = [s for s in scans if begin_ns < s.stamp_ns <= missing.stamp_ns]
        if ready:
            rows += _rows(missing, ready, heard)
    before, found, moved, boxes, truths = zip(*rows, strict=True) if rows else [()] * 5
    return ImputationSamples(
        np.array(before, np.float64).reshape(-1, len(PERSON_FIELDS)),
        np.array(found, np.bool_),
        np.array(moved, np.float64).reshape(-1, 4),
        np.array(boxes, np.float64).reshape(-1, 4),
        np.array(truths, np.float64).reshape(-1, 4),
        np.full(len(rows), number, np.int64),
    )


def _rows(
    missing: UnitFeatures, ready: Sequence[UnitFeatures], scans: Sequence[UnitFeatures]
) -> list[tuple[FloatArray, bool, FloatArray, FloatArray, FloatArray]]:
    people, inputs = person_features(missing.stamp_ns, ready, scans)
    there = [d.box for d in strong_detections(missing, LEAST_SCORE)]
    boxes = [person.box for person in people]
    found = []
    nothing = np.zeros(4)
    for row, box, place in zip(inputs, boxes, partners(boxes, there), strict=True):
        if place is None:
            found.append((row, False, nothing, np.array(box), nothing))
        else:
            new = there[place]
            found.append(
                (row, True, np.array(displacement(box, new)), np.array(box), np.array(new))
            )
    return found

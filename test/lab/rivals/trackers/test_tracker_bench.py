"""Trackers side by side: figures that can be reckoned in the head, drawn by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_truth import scene, true_person

from mmedge_lab.rivals.trackers import tracker_bench
from mmedge_lab.rivals.trackers.rival_trackers import TrackedBox
from mmedge_lab.rivals.trackers.tracker_bench import (
    OURS,
    OURS_CAMERA_ONLY,
    DetectedFlight,
    track_flight,
)
from mmedge_ros.core.data_types import CAMERA, Box, FloatArray, UnitFeatures
from mmedge_ros.replay.ground_truth import GroundTruth

BOXES = [Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0) for n in range(2)]
SECONDS = 6.0


def detected(
    hidden: Sequence[tuple[float, float]] = (), missed: Sequence[tuple[float, float]] = ()
) -> DetectedFlight:
    """Two people; the first is ``hidden`` (ms), or in sight and ``missed`` by the detector."""

    def during(spans: Sequence[tuple[float, float]], ms: float) -> bool:
        return any(begin <= ms < end for begin, end in spans)

    flight = encoded_flight(lambda ms: 2, SECONDS)
    scenes = [
        scene(
            ms,
            true_person(1, BOXES[0], visibility=0.0 if during(hidden, ms) else 1.0),
            true_person(2, BOXES[1]),
        )
        for ms in range(0, int(1000 * SECONDS) + 1, 10)
    ]
    flight.record.truth = GroundTruth(scenes)
    begin_ns = scenes[0].stamp_ns
    units: list[UnitFeatures] = []
    for unit in flight.features.values():
        assert isinstance(unit, UnitFeatures)
        if during([*hidden, *missed], (unit.stamp_ns - begin_ns) / 1e6):
            unit = replace(unit, detections=unit.detections[1:])
        units.append(unit)
    units.sort(key=lambda u: (u.stamp_ns, u.modality == CAMERA))
    return DetectedFlight(flight, tuple(units))


def test_all_trackers_follow_people_who_stay_in_sight() -> None:
    for name in (OURS_CAMERA_ONLY, OURS):
        of_tracker = track_flight(name, detected())
        assert of_tracker['switches'] == 0
        assert (of_tracker['ids'], of_tracker['people']) == (2, 2)
        assert of_tracker['errors'] < 0.05 * of_tracker['true_boxes']
        assert of_tracker['same'] > 0.95 * of_tracker['tracked']
        assert of_tracker['minutes'] == pytest.approx(2 * SECONDS / 60.0, rel=0.02)


def test_a_rival_is_judged_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Every:
        """Follows boxes by their places in the picture."""

        def __init__(self, name: str, fps: float) -> None:
            assert fps == pytest.approx(30.0, abs=0.1)

        def update(self, boxes: FloatArray, scores: FloatArray) -> list[TrackedBox]:
            return [TrackedBox(int(b[0]), b, s) for b, s in zip(boxes, scores, strict=True)]

    monkeypatch.setattr(tracker_bench, 'RivalTracker', Every)
    sums = track_flight('SORT', detected())
    assert (sums['switches'], sums['ids'], sums['people']) == (0, 2, 2)
    assert sums['errors'] == 0

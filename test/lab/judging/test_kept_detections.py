"""Detections of a flight are computed once, and kept for the same pictures and networks only."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from bag_fixtures import write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.kept_detections import DetectionLevel, detected_flight
from mmedge_ros.data_types import CAMERA, RADAR, ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.unit_encoder import CameraEncoder


class CountingCamera:
    """An encoder that counts its calls."""

    modality = CAMERA

    def __init__(self, bundle: Path) -> None:
        self._encoder = CameraEncoder.from_path(bundle)
        self.levels = self._encoder.levels
        self.problems: Counter[str] = Counter()
        self.calls = 0

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, number: int
    ) -> UnitFeatures:
        self.calls += 1
        return self._encoder.encode(unit, configuration, number)

    def warm_up(self) -> None:
        self._encoder.warm_up()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_tiny_bundle(tmp_path / 'tiny')


@pytest.fixture
def flight(tmp_path: Path) -> Path:
    return write_bag(tmp_path / 'flight', messages=recording_with_truth(1.0))


def test_boxes_are_detected_once_and_read_back_the_same(
    tmp_path: Path, bundle: Path, flight: Path
) -> None:
    camera = CountingCamera(bundle)
    level = DetectionLevel(bundle, camera.levels[-1], tmp_path / 'kept')
    first = detected_flight(flight, level, camera)
    pictures = [unit for unit in first.units if unit.modality == CAMERA]
    assert camera.calls == len(pictures) > 10
    assert any(unit.detections for unit in pictures)
    assert any(unit.modality == RADAR for unit in first.units)
    stamps = [unit.stamp_ns for unit in first.units]
    assert stamps == sorted(stamps)
    again = detected_flight(flight, level, camera)
    assert camera.calls == len(pictures)
    assert [u.detections for u in again.units] == [u.detections for u in first.units]


def test_what_is_kept_of_another_bundle_or_level_or_damaged_is_detected_anew(
    tmp_path: Path, bundle: Path, flight: Path
) -> None:
    camera = CountingCamera(bundle)
    level = DetectionLevel(bundle, camera.levels[-1], tmp_path / 'kept')
    detected_flight(flight, level, camera)
    calls = camera.calls
    detected_flight(flight, DetectionLevel(bundle, camera.levels[0], level.folder), camera)
    assert camera.calls == 2 * calls
    file = level.folder / 'flight.npz'
    file.write_bytes(file.read_bytes()[:-9])
    detected_flight(flight, level, camera)
    assert camera.calls == 3 * calls
    with (bundle / MANIFEST).open('a') as manifest:
        manifest.write('# another\n')
    detected_flight(flight, level, camera)
    assert camera.calls == 4 * calls


def test_an_unknown_level_and_a_flight_without_truth_are_refused(
    tmp_path: Path, bundle: Path, flight: Path
) -> None:
    camera = CameraEncoder.from_path(bundle)
    with pytest.raises(EvaluationError, match='huge'):
        detected_flight(flight, DetectionLevel(bundle, 'huge', tmp_path / 'kept'), camera)
    blind = write_bag(tmp_path / 'blind')
    level = DetectionLevel(bundle, camera.levels[0], tmp_path / 'kept')
    with pytest.raises(EvaluationError, match='ground truth is needed'):
        detected_flight(blind, level, camera)

"""Units into features."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from radar_units import TRAIL, radar_unit

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Box,
    Detection,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.encoding.opened_levels import HeldLevel
from mmedge_ros.encoding.unit_encoder import (
    CameraEncoder,
    RadarEncoder,
    UnitEncoder,
    appearance_of,
)
from mmedge_ros.sensing.radar.filter import RadarLimits

ROOT = Path(__file__).resolve().parents[2]
FOUND = DetectorOutput(
    (Detection(Box(1, 2, 3, 4), 0.5, 'person'),),
    np.array([1, 2], np.float32),
    np.ones((2, 3, 4), np.float16),
)


class FakeDetector:
    """Remembers what it was shown."""

    labels = ('person',)
    input_size = (64, 64)

    def __init__(self) -> None:
        self.pictures: list[Image] = []
        self.warm_ups = 0

    def detect(self, image: Image) -> DetectorOutput:
        self.pictures.append(image)
        return FOUND

    def warm_up(self) -> None:
        self.warm_ups += 1


class WideDetector(FakeDetector):
    """Sees an object that is large enough to be followed."""

    def detect(self, image: Image) -> DetectorOutput:
        super().detect(image)
        return replace(FOUND, detections=(Detection(Box(40, 20, 80, 90), 0.5, 'person'),))


class FailingDetector(WideDetector):
    """Fails when it is told to."""

    fails = False

    def detect(self, image: Image) -> DetectorOutput:
        if self.fails:
            raise EncodingError('the network failed')
        return super().detect(image)


class FakeLevels:
    """Opens a fake detector for every level and counts how often."""

    def __init__(self, broken: str | None = None) -> None:
        self.opened: Counter[tuple[str, str]] = Counter()
        self.detectors: dict[tuple[str, str], FakeDetector] = {}
        self._broken = broken

    def __call__(self, level: str, device: str) -> FakeDetector:
        self.opened[level, device] += 1
        if level == self._broken:
            raise EncodingError(f'level {level} is broken')
        return self.detectors.setdefault((level, device), FakeDetector())


def camera_unit(image: Image, sequence: int = 7) -> Unit:
    message = SimpleNamespace(
        width=image.shape[1],
        height=image.shape[0],
        encoding='bgr8',
        is_bigendian=0,
        step=image.shape[1] * 3,
        data=image.tobytes(),
    )
    return Unit(CAMERA, sequence, 100, 105, 'camera_optical', message, TRAIL)


PICTURE = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)


def test_a_camera_unit_keeps_its_identity_and_gets_what_the_detector_found() -> None:
    levels = FakeLevels()
    encoder: UnitEncoder = CameraEncoder(levels, ('small', 'large'), 'small')
    configuration = ModalityConfiguration(CAMERA, 10.0, 'large', 'cuda')
    features = encoder.encode(camera_unit(PICTURE), configuration, 42)
    assert (features.modality, features.sequence, features.stamp_ns) == (CAMERA, 7, 100)
    assert (features.available_ns, features.frame_id) == (105, 'camera_optical')
    assert features.trail == TRAIL
    assert (features.rate, features.level, features.configuration_id) == (10.0, 'large', 42)
    assert features.image_size == (40, 30)
    assert features.detections is FOUND.detections
    assert features.embedding is FOUND.embedding
    assert features.grid is FOUND.grid
    assert features.returns.shape == (0, 5)
    np.testing.assert_array_equal(levels.detectors['large', 'cuda'].pictures[0], PICTURE)


@pytest.mark.parametrize(
    ('bundle', 'held', 'has_grid'),
    [
        ('flight_people', HeldLevel('small'), False),
        ('flight_people', None, True),
        ('fused_people', HeldLevel('small'), True),
    ],
    ids=['in flight with none', 'outside a flight', 'in flight with such a network'],
)
def test_grids_are_sent_in_flight_only_where_the_bundle_has_networks_that_fuse_them(
    bundle: str, held: HeldLevel | None, has_grid: bool
) -> None:
    encoder = CameraEncoder.from_path(ROOT / 'models' / bundle, held=held)
    small = ModalityConfiguration(CAMERA, 0.0, 'small')
    assert bool(encoder.encode(camera_unit(PICTURE), small, 0).grid.size) is has_grid


def test_a_broken_level_is_not_opened_again_for_every_unit_and_leaves_others_alone() -> None:
    levels = FakeLevels(broken='large')
    encoder = CameraEncoder(levels, ('small', 'large'), 'small')
    for _ in range(3):
        with pytest.raises(EncodingError, match='level large is broken'):
            encoder.encode(camera_unit(PICTURE), ModalityConfiguration(CAMERA, level='large'), 0)
    assert levels.opened == {('large', 'cpu'): 1}
    assert encoder.encode(camera_unit(PICTURE), ModalityConfiguration(CAMERA), 0).detections


def test_a_memory_sees_other_labels_and_what_is_tracked_stays_the_same(tmp_path: Path) -> None:
    class Crowded(FakeDetector):
        def detect(self, image: Image) -> DetectorOutput:
            box = Box(1, 2, 3, 4)
            labels = ('car', 'person', 'dog')
            return replace(FOUND, detections=tuple(Detection(box, 0.5, one) for one in labels))

    encoder = CameraEncoder(lambda *_: Crowded(), kept=('person',))
    features = encoder.encode(camera_unit(PICTURE), ModalityConfiguration(CAMERA), 0)
    assert [d.label for d in features.detections] == ['person']
    assert encoder.pictures is not None
    newest = encoder.pictures.newest()
    assert newest is not None
    assert [d.label for d in newest.others] == ['car', 'dog']
    assert newest.detections == features.detections
    assert (newest.sequence, newest.stamp_ns) == (7, 100)
    assert CameraEncoder(FakeLevels()).pictures is None, 'nobody looks back'


def test_a_radar_unit_keeps_plausible_returns_and_counts_the_rest() -> None:
    encoder: UnitEncoder = RadarEncoder(RadarLimits())
    points = [(5.0, 1.0, 0.2, -1.5), (1e-38, 0.0, 0.0, 0.0), (3.0, 0.0, 0.0, 1.7e38)]
    configuration = ModalityConfiguration(RADAR, 20.0, 'small')
    features = encoder.encode(radar_unit(points), configuration, 9)
    expected = np.array([[5.0, 1.0, 0.2, -1.5, np.nan]], np.float32)
    np.testing.assert_array_equal(features.returns, expected)
    assert features.returns.dtype == np.float32
    assert encoder.problems == {'range': 1, 'velocity': 1}
    assert (features.modality, features.sequence, features.stamp_ns) == (RADAR, 3, 200)
    assert (features.available_ns, features.frame_id) == (205, 'radar_link')
    assert features.trail == TRAIL
    assert (features.rate, features.level, features.configuration_id) == (20.0, 'small', 9)
    assert features.image_size == (0, 0)


def scene(brightness: float = 128.0) -> np.ndarray:
    noise = np.random.default_rng(0).normal(brightness, 30.0, (240, 320, 3))
    coarse = cv2.GaussianBlur(noise, (0, 0), 2.0)
    return np.clip(coarse * 0.5 + noise * 0.5, 0, 255).astype(np.uint8)


def test_a_brighter_picture_is_brighter_and_nothing_else() -> None:
    dark, bright = appearance_of(scene(80.0)), appearance_of(scene(160.0))
    assert bright.brightness == pytest.approx(160.0 / 255.0, abs=0.01)
    assert dark.brightness == pytest.approx(80.0 / 255.0, abs=0.01)
    assert bright.contrast == pytest.approx(dark.contrast, rel=0.05)
    assert bright.sharpness == pytest.approx(dark.sharpness, rel=0.05)


def test_blur_takes_sharpness() -> None:
    sharp = appearance_of(scene())
    blurred = appearance_of(cv2.blur(scene(), (9, 1)))
    assert blurred.sharpness < 0.7 * sharp.sharpness


class FakeCamera:
    """A picture that moves to the right, shown to an encoder at 30 Hz."""

    def __init__(self, encoder: CameraEncoder) -> None:
        self._encoder = encoder
        rng = np.random.default_rng(0)
        small = rng.integers(0, 256, (30, 40, 3), np.uint8)
        self._scene = np.asarray(cv2.resize(small, (160, 120)), np.uint8)
        self._count = 0

    def show(self, configuration: ModalityConfiguration, frames: int = 1) -> list[UnitFeatures]:
        shown = []
        for _ in range(frames):
            unit = camera_unit(np.roll(self._scene, self._count, axis=1), self._count)
            stamp_ns = 1_700_000_000_000_000_000 + self._count * 33_333_333
            unit = replace(unit, stamp_ns=stamp_ns, available_ns=stamp_ns)
            shown.append(self._encoder.encode(unit, configuration, 1))
            self._count += 1
        return shown


def test_with_reuse_some_pictures_are_followed_in_place_of_encoded() -> None:
    levels = FakeLevels()
    levels.detectors['', 'cpu'] = WideDetector()
    camera = FakeCamera(CameraEncoder(levels))
    units = camera.show(ModalityConfiguration(CAMERA, reuse=3), 40)
    followed = [unit for unit in units if unit.followed]
    assert len(levels.detectors['', 'cpu'].pictures) == 40 - len(followed)
    assert len(followed) >= 20
    assert all(unit.grid.size == unit.embedding.size == 0 for unit in followed)
    assert all(unit.image_size == (160, 120) for unit in units)
    assert all(math.isnan(unit.appearance.brightness) == unit.followed for unit in units)
    for before, after in pairwise(units[20:]):
        if after.followed:
            assert after.detections[0].item == before.detections[0].item > 0
            moved = np.subtract(after.detections[0].box, before.detections[0].box)
            np.testing.assert_allclose(moved, (1, 0, 1, 0), atol=0.2)


def test_a_picture_is_not_followed_from_one_that_the_network_failed_on() -> None:
    detector = FailingDetector()
    levels = FakeLevels()
    levels.detectors['', 'cpu'] = detector
    camera = FakeCamera(CameraEncoder(levels))
    configuration = ModalityConfiguration(CAMERA, reuse=6)
    camera.show(configuration, 20)
    detector.fails = True
    with pytest.raises(EncodingError):
        camera.show(configuration, 7)
    with pytest.raises(EncodingError):
        camera.show(configuration)
    detector.fails = False
    assert not camera.show(configuration)[0].followed


def test_more_contrast_is_no_more_sharpness() -> None:
    flat = (0.5 * scene().astype(float) + 64.0).astype(np.uint8)
    full, half = appearance_of(scene()), appearance_of(flat)
    assert half.contrast == pytest.approx(0.5 * full.contrast, rel=0.02)
    assert half.sharpness == pytest.approx(full.sharpness, rel=0.03)


def test_an_even_picture_has_no_sharpness_that_could_be_known() -> None:
    found = appearance_of(np.full((48, 64, 3), 255, np.uint8))
    assert (found.brightness, found.contrast) == (1.0, 0.0)
    assert math.isnan(found.sharpness)

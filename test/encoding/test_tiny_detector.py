"""The network that other tests use finds what its docstring says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_detector import SCORE, write_tiny_detector

from mmedge_ros.encoding.onnx_detector import OnnxDetector

DARK = np.full((480, 640, 3), 60, np.uint8)


@pytest.fixture
def detector(tmp_path: Path) -> OnnxDetector:
    return OnnxDetector(write_tiny_detector(tmp_path / 'tiny.onnx', features=True))


def test_nothing_is_found_where_nothing_is_bright(detector: OnnxDetector) -> None:
    assert detector.detect(DARK).detections == ()


def test_a_white_rectangle_is_one_person_to_the_pixel(detector: OnnxDetector) -> None:
    image = DARK.copy()
    image[100:200, 300:340] = 255
    (person,) = detector.detect(image).detections
    assert person.box == pytest.approx((300, 100, 340, 200), abs=1e-3)
    assert person.score == pytest.approx(SCORE)
    assert person.label == 'person'


def test_rectangles_in_the_three_colours_are_three_people(detector: OnnxDetector) -> None:
    image = DARK.copy()
    expected = []
    for channel, x in enumerate((100, 300, 500)):
        image[100:300, x : x + 60, channel] = 255
        expected.append((x, 100, x + 60, 300))
    found = sorted(d.box for d in detector.detect(image).detections)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_the_features_are_means_of_brightness(detector: OnnxDetector) -> None:
    image = np.zeros((256, 320, 3), np.uint8)
    image[:32, 32:64, 1] = 255
    output = detector.detect(image)
    assert output.grid.shape == (3, 8, 10)
    assert output.grid[1, 0, 1] == 1
    assert output.grid.sum() == 1
    np.testing.assert_allclose(output.embedding, [0, 1 / 80, 0], rtol=1e-6)


def test_two_runs_are_equal_to_the_bit(detector: OnnxDetector) -> None:
    image = np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8)
    first, second = detector.detect(image), detector.detect(image)
    assert first.detections == second.detections
    assert first.grid.tobytes() == second.grid.tobytes()
    assert first.embedding.tobytes() == second.embedding.tobytes()

"""The detector on pictures of all sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding.onnx_detector import OnnxDetector


@pytest.fixture(scope='module')
def tiny(tmp_path_factory: pytest.TempPathFactory) -> OnnxDetector:
    return OnnxDetector(write_tiny_detector(tmp_path_factory.mktemp('tiny') / 'tiny.onnx'))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), width=st.integers(8, 900), height=st.integers(8, 900))
def test_a_bright_rectangle_is_found_in_a_picture_of_any_size(
    tiny: OnnxDetector, data: st.DataObject, width: int, height: int
) -> None:
    # Beyond this the rectangle may be less than two pixels of the input.
    pixel = max(1.0, width / 320, height / 256)
    side = math.ceil(4 * pixel)
    x0 = data.draw(st.integers(0, max(0, width - side - 1)))
    y0 = data.draw(st.integers(0, max(0, height - side - 1)))
    x1 = data.draw(st.integers(min(x0 + side, width), width))
    y1 = data.draw(st.integers(min(y0 + side, height), height))
    image = np.full((height, width, 3), 50, np.uint8)
    image[y0:y1, x0:x1] = 255
    (detection,) = tiny.detect(image).detections
    assert detection.box == pytest.approx((x0, y0, x1, y1), abs=1.5 * pixel + 0.5)


@pytest.mark.parametrize('shape', [(1, 1), (1, 5000), (5000, 1), (3, 70000)])
def test_a_bright_picture_of_an_extreme_shape_is_one_box(
    tiny: OnnxDetector, shape: tuple[int, int]
) -> None:
    (detection,) = tiny.detect(np.full((*shape, 3), 255, np.uint8)).detections
    assert detection.box == pytest.approx((0, 0, shape[1], shape[0]), rel=1e-3)


def test_a_picture_gives_the_same_after_pictures_of_other_sizes(tiny: OnnxDetector) -> None:
    image = np.full((480, 640, 3), 50, np.uint8)
    image[100:200, 300:340] = 255
    first = tiny.detect(image)
    tiny.detect(np.full((900, 100, 3), 255, np.uint8))
    assert tiny.detect(image).detections == first.detections

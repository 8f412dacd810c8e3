"""The detector on ONNX Runtime: of one graph, and of stages from a bundle."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_detector import write_tiny_detector
from tiny_stages import (
    BOX,
    file_entry,
    write_camera_stages,
    write_embedding,
    write_grid_bundle,
)

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.onnx_detector import OnnxDetector

WIDTH, HEIGHT = 416, 320
CELLS = 52 * 40 + 26 * 20 + 13 * 10
PICTURE = np.zeros((480, 640, 3), np.uint8)
TWO_NAMES = {'names': "{0: 'person', 1: 'dog'}"}
ALL = DetectorParameters(labels=())


def rows(*found: tuple[float, ...], count: int = 50) -> dict[str, np.ndarray]:
    """Output of an end-to-end head: x0, y0, x1, y1 in input pixels, score, class."""
    output = np.zeros((1, count, 6), np.float32)
    if found:
        output[0, : len(found)] = found
    return {'detections': output}


def columns(*found: tuple[float, ...]) -> dict[str, np.ndarray]:
    """Output of an ultralytics head: centre, size, one score per class."""
    output = np.zeros((1, len(found[0]), CELLS), np.float32)
    output[0, :, : len(found)] = np.transpose(found)
    return {'output0': output}


def test_boxes_come_back_in_pixels_of_the_original_picture(write_network) -> None:
    # 640 x 480 becomes 416 x 312, with 4 px of padding above and below.
    path = write_network(rows((41.6, 4 + 31.2, 83.2, 4 + 62.4, 0.75, 0)), metadata=TWO_NAMES)
    (detection,) = OnnxDetector(path).detect(PICTURE).detections
    assert detection.box == pytest.approx((64, 48, 128, 96), abs=1e-3)
    assert detection.score == pytest.approx(0.75)
    assert detection.label == 'person'


def test_boxes_are_clipped_to_the_picture_and_dropped_outside_of_it(write_network) -> None:
    path = write_network(
        rows((-50, -50, 500, 500, 0.9, 0), (10, 0, 20, 3.5, 0.8, 0), (0, 317, 416, 400, 0.7, 0)),
        metadata=TWO_NAMES,
    )
    detections = OnnxDetector(path).detect(PICTURE).detections
    assert [d.box for d in detections] == [(0, 0, 640, 480)]


def test_of_overlapping_boxes_of_one_label_the_best_is_kept(write_network) -> None:
    path = write_network(
        columns(
            (100, 100, 40, 80, 0.6, 0.0),
            (102, 101, 40, 80, 0.9, 0.0),
            (104, 99, 40, 80, 0.0, 0.8),
            (300, 100, 40, 80, 0.5, 0.0),
        ),
        metadata=TWO_NAMES,
    )
    detections = OnnxDetector(path, ALL).detect(PICTURE).detections
    found = [(d.label, round(d.score, 3)) for d in detections]
    assert found == [('person', 0.9), ('dog', 0.8), ('person', 0.5)]


def test_only_the_labels_asked_for_are_kept(write_network) -> None:
    path = write_network(
        rows((10, 10, 50, 90, 0.9, 0), (100, 10, 140, 90, 0.8, 1)), metadata=TWO_NAMES
    )
    for labels, expected in (
        (('person',), ['person']),
        (('dog',), ['dog']),
        ((), ['person', 'dog']),
    ):
        detector = OnnxDetector(path, DetectorParameters(labels=labels))
        assert [d.label for d in detector.detect(PICTURE).detections] == expected
        assert detector.labels == tuple(expected)


@pytest.mark.parametrize(
    ('metadata', 'parameters', 'expected'),
    [
        ({}, DetectorParameters(), (416, 320)),
        ({'imgsz': '[192, 256]'}, DetectorParameters(), (256, 192)),
        ({'imgsz': '640'}, DetectorParameters(), (640, 640)),
        ({'imgsz': '[192, 256]'}, DetectorParameters(input_width=320), (320, 192)),
        ({'imgsz': 'nonsense('}, DetectorParameters(), (416, 320)),
        ({'imgsz': '[10, 64]'}, DetectorParameters(), (416, 320)),
        ({'imgsz': '[64, 1000000000]'}, DetectorParameters(), (416, 320)),
    ],
)
def test_an_open_input_size_is_chosen(write_network, metadata, parameters, expected) -> None:
    path = write_network(
        rows(), input_shape=('batch', 3, 'height', 'width'), metadata=metadata, echo='grid'
    )
    detector = OnnxDetector(path, parameters)
    assert detector.input_size == expected
    assert detector.detect(PICTURE).grid.shape == (3, expected[1], expected[0])


def test_grid_and_embedding_are_passed_on_as_float16_and_float32(write_network) -> None:
    grid = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    embedding = np.array([[0.5, -1.5]], np.float32)
    features = {'embedding': embedding, 'grid': grid}
    # Features may come before the detections, and other outputs are left alone.
    path = write_network({**features, 'other': np.zeros((3, 3), np.float32), **rows()})
    output = OnnxDetector(path).detect(PICTURE)
    assert output.grid.dtype == np.float16
    assert output.embedding.dtype == np.float32
    np.testing.assert_array_equal(output.grid, grid[0])
    np.testing.assert_array_equal(output.embedding, embedding[0])


def test_a_grid_too_large_for_float16_is_limited(write_network) -> None:
    grid = np.array([1e9, -1e9, 1.0], np.float32).reshape(1, 3, 1, 1)
    output = OnnxDetector(write_network({**rows(), 'grid': grid})).detect(PICTURE)
    assert output.grid.ravel().tolist() == [65504, -65504, 1]


@pytest.mark.parametrize(
    ('name', 'shape'), [('grid', (1, 2, 3, 4)), ('embedding', (1, 5))], ids=str
)
def test_features_that_are_not_finite_are_refused(write_network, name, shape) -> None:
    values = np.zeros(shape, np.float32)
    values.flat[-1] = math.nan
    with pytest.raises(EncodingError, match=f'a {name} that is not finite'):
        OnnxDetector(write_network({**rows(), name: values}))


@pytest.mark.filterwarnings('error')
def test_the_largest_numbers_there_are_become_the_edges_of_the_picture(write_network) -> None:
    far = 3e38
    for outputs in (
        rows((-far, -far, far, far, 0.9, 0)),
        columns((0, 0, far, far, 0.9, 0.0), (100, 100, 40, 80, 0.8, 0.0)),
    ):
        detector = OnnxDetector(write_network(outputs, metadata=TWO_NAMES))
        assert detector.detect(PICTURE).detections[0].box == (0, 0, 640, 480)


class BrokenSession:
    """A session whose accelerator has gone."""

    def run(self, names: list[str], feed: dict[str, np.ndarray]) -> Any:
        raise RuntimeError('CUDA failure 999')


def test_a_network_that_fails_on_a_picture_is_named(write_network) -> None:
    detector = OnnxDetector(write_network(rows()))
    detector._network.sessions[0] = BrokenSession()
    with pytest.raises(EncodingError, match=r'network\.onnx failed on a unit: CUDA fail'):
        detector.detect(PICTURE)


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


# ------------------------------------------------------------------------------ stages

GREY = np.full((480, 640, 3), 51, np.uint8)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_grid_bundle(tmp_path)


def test_a_level_of_stages_yields_detections_grid_and_embedding(bundle: Path) -> None:
    found = open_detector(bundle).detect(GREY)
    assert [(d.label, tuple(d.box)) for d in found.detections] == [('person', BOX)]
    assert (found.grid.shape, found.grid.dtype) == ((64, 30, 40), np.float16)
    np.testing.assert_allclose(found.grid, 9 * 0.2, rtol=1e-2)
    assert (found.embedding.shape, found.embedding.dtype) == ((32,), np.float32)
    np.testing.assert_allclose(found.embedding, 9 * 0.2, rtol=1e-2)


def test_a_picture_can_be_left_and_taken_up_again(bundle: Path) -> None:
    detector = open_detector(bundle)
    assert isinstance(detector, OnnxDetector)
    assert detector.blocks == 3
    work = detector.advance(detector.begin(GREY))
    assert work.state.block == 2
    other = detector.detect(np.zeros_like(GREY))
    assert not other.grid.any()
    found = detector.finish(work)
    np.testing.assert_array_equal(found.grid, detector.detect(GREY).grid)
    assert found.detections == detector.detect(GREY).detections


def test_a_wide_picture_lies_in_the_middle_of_the_grid(bundle: Path) -> None:
    wide = np.full((360, 1280, 3), 255, np.uint8)
    grid = open_detector(bundle).detect(wide).grid
    # 640 x 180 of the canvas: rows 150 to 330 px
    np.testing.assert_allclose(grid[0, 10:20], 9.0, rtol=1e-2)
    np.testing.assert_allclose(grid[0, :9], 9.0 * 114 / 255, rtol=1e-2)


def test_a_grid_that_is_not_the_promised_one_is_refused(tmp_path: Path) -> None:
    stages = [file_entry(path) for path in write_camera_stages(tmp_path, 'other', rows=29)]
    camera = {'levels': {'small': {'stages': stages}}}
    bundle = write_grid_bundle(tmp_path, camera=camera)
    with pytest.raises(EncodingError, match=r'a grid of \[64, 29, 40\], its bundle promises'):
        open_detector(bundle)
    assert open_detector(
        write_grid_bundle(tmp_path, camera=camera, grid=None, embedding=None, fusion=None)
    ).detect(GREY).grid.shape == (64, 29, 40)


def test_the_best_come_first_and_no_more_than_asked(write_network) -> None:
    found = [(i * 10, 10, i * 10 + 8, 20, 0.2 + 0.01 * i, 0) for i in range(40)]
    detector = OnnxDetector(
        write_network(rows(*found), metadata=TWO_NAMES),
        DetectorParameters(maximum_detections=3),
    )
    scores = [d.score for d in detector.detect(PICTURE).detections]
    assert scores == pytest.approx([0.59, 0.58, 0.57])


def test_a_label_the_network_does_not_know_is_an_error_with_the_nearest(write_network) -> None:
    path = write_network(rows(), metadata=TWO_NAMES)
    with pytest.raises(EncodingError, match="no label 'persn'; the nearest of its 2 is 'person'"):
        OnnxDetector(path, DetectorParameters(labels=('persn',)))


def test_a_fixed_input_size_is_the_graphs(write_network) -> None:
    path = write_network(rows(), metadata={'imgsz': '[640, 640]'})
    assert OnnxDetector(path, DetectorParameters(input_width=64)).input_size == (WIDTH, HEIGHT)


def test_an_input_size_that_does_not_suit_is_refused(write_network) -> None:
    path = write_network(rows(), input_shape=(1, 3, 'height', 'width'))
    with pytest.raises(EncodingError, match=r'300 x 320 px .* must be multiples of 32'):
        OnnxDetector(path, DetectorParameters(input_width=300))


def test_an_embedding_of_another_length_is_refused(tmp_path: Path) -> None:
    short = file_entry(write_embedding(tmp_path / 'short.onnx', 64, size=31))
    bundle = write_grid_bundle(tmp_path, embedding={'camera': short})
    with pytest.raises(EncodingError, match=r'an embedding of 31 values; it must have 32'):
        open_detector(bundle)

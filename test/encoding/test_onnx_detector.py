"""The detector on ONNX Runtime."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mmedge_ros.encoding import EncodingError
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


def test_the_best_come_first_and_no_more_than_asked(write_network) -> None:
    found = [(i * 10, 10, i * 10 + 8, 20, 0.2 + 0.01 * i, 0) for i in range(40)]
    detector = OnnxDetector(
        write_network(rows(*found), metadata=TWO_NAMES),
        DetectorParameters(maximum_detections=3),
    )
    scores = [d.score for d in detector.detect(PICTURE).detections]
    assert scores == pytest.approx([0.59, 0.58, 0.57])


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


def test_a_higher_iou_threshold_keeps_people_side_by_side(write_network) -> None:
    path = write_network(columns((100, 100, 40, 80, 0.6), (110, 100, 40, 80, 0.9)))
    known = {'labels': ('class0',)}
    for threshold, expected in ((0.45, 1), (0.7, 2)):  # their IoU is 0.6
        detector = OnnxDetector(path, DetectorParameters(iou_threshold=threshold, **known))
        assert len(detector.detect(PICTURE).detections) == expected


def test_end_to_end_boxes_are_not_suppressed_again(write_network) -> None:
    path = write_network(
        rows((10, 10, 50, 90, 0.9, 0), (11, 10, 51, 90, 0.8, 0)), metadata=TWO_NAMES
    )
    assert len(OnnxDetector(path).detect(PICTURE).detections) == 2


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


def test_a_label_the_network_does_not_know_is_an_error_with_the_nearest(write_network) -> None:
    path = write_network(rows(), metadata=TWO_NAMES)
    with pytest.raises(EncodingError, match="no label 'persn'; the nearest of its 2 is 'person'"):
        OnnxDetector(path, DetectorParameters(labels=('persn',)))


def test_yolox_input_is_blue_green_red_from_the_top_left(write_network) -> None:
    output = {'output': np.zeros((1, CELLS, 85), np.float32)}
    detector = OnnxDetector(write_network(output, echo='grid'))
    image = np.full((100, 416, 3), (10, 20, 30), np.uint8)
    grid = detector.detect(image).grid
    assert grid[:, 0, 0].tolist() == [10, 20, 30]
    assert grid[:, 319, 0].tolist() == [114, 114, 114]


def test_ultralytics_input_is_red_green_blue_up_to_one_in_the_middle(write_network) -> None:
    detector = OnnxDetector(write_network(rows(), echo='grid'))
    image = np.full((100, 416, 3), (0, 51, 255), np.uint8)
    grid = detector.detect(image).grid
    assert grid[:, 160, 200].tolist() == pytest.approx([1, 0.2, 0], abs=1e-3)
    assert grid[:, 0, 0].tolist() == pytest.approx([114 / 255] * 3, abs=1e-3)


def test_a_network_in_float16_finds_the_same(write_network) -> None:
    found = rows((10, 10, 50, 90, 0.75, 0))
    half = {name: value.astype(np.float16) for name, value in found.items()}
    single = OnnxDetector(write_network(found, 'single.onnx', echo='grid'))
    path = write_network(half, 'half.onnx', echo='grid', input_type=np.float16)
    image = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
    expected, result = single.detect(image), OnnxDetector(path).detect(image)
    assert result.detections == expected.detections
    np.testing.assert_array_equal(result.grid, expected.grid)


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


def test_a_fixed_input_size_is_the_graphs(write_network) -> None:
    path = write_network(rows(), metadata={'imgsz': '[640, 640]'})
    assert OnnxDetector(path, DetectorParameters(input_width=64)).input_size == (WIDTH, HEIGHT)


def test_a_fixed_input_size_may_be_any(write_network) -> None:
    assert OnnxDetector(write_network(rows(), input_shape=(1, 3, 90, 100))).input_size == (100, 90)


def test_an_input_size_that_does_not_suit_is_refused(write_network) -> None:
    path = write_network(rows(), input_shape=(1, 3, 'height', 'width'))
    with pytest.raises(EncodingError, match=r'300 x 320 px .* must be multiples of 32'):
        OnnxDetector(path, DetectorParameters(input_width=300))


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


def test_without_features_grid_and_embedding_are_empty(write_network) -> None:
    output = OnnxDetector(write_network(rows())).detect(PICTURE)
    assert output.grid.shape == (0, 0, 0)
    assert output.embedding.shape == (0,)


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


def test_a_grid_of_another_rank_is_refused(write_network) -> None:
    grid = np.zeros((1, 2, 3), np.float32)
    with pytest.raises(EncodingError, match=r'a grid of \[1, 2, 3\]; it must be \[1, channels'):
        OnnxDetector(write_network({**rows(), 'grid': grid}))


def test_features_alone_are_no_detector(write_network) -> None:
    path = write_network({'embedding': np.zeros((1, 5), np.float32)})
    with pytest.raises(EncodingError, match='has no detections'):
        OnnxDetector(path)


def test_a_classifier_is_refused_with_its_shape(write_network) -> None:
    path = write_network({'scores': np.zeros((1, 1000), np.float32)})
    with pytest.raises(EncodingError, match=r'puts out \[1, 1000\] .* accepted are'):
        OnnxDetector(path)


def test_boxes_that_are_not_finite_are_dropped_and_the_rest_kept(write_network) -> None:
    nan, inf = math.nan, math.inf
    path = write_network(
        rows(
            (nan, 10, 50, 90, 0.9, 0),
            (10, 10, inf, 90, 0.9, 0),
            (10, 10, 50, 90, nan, 0),
            (10, 10, 50, 90, inf, 0),
            (10, 10, 50, 90, 0.75, 0),
        ),
        metadata=TWO_NAMES,
    )
    assert [d.score for d in OnnxDetector(path).detect(PICTURE).detections] == [0.75]


@pytest.mark.filterwarnings('error')
def test_the_largest_numbers_there_are_become_the_edges_of_the_picture(write_network) -> None:
    far = 3e38
    for outputs in (
        rows((-far, -far, far, far, 0.9, 0)),
        columns((0, 0, far, far, 0.9, 0.0), (100, 100, 40, 80, 0.8, 0.0)),
    ):
        detector = OnnxDetector(write_network(outputs, metadata=TWO_NAMES))
        assert detector.detect(PICTURE).detections[0].box == (0, 0, 640, 480)


def test_a_size_beyond_every_exponent_becomes_a_box_as_large_as_the_picture(
    write_network,
) -> None:
    output = np.zeros((1, CELLS, 6), np.float32)
    output[0, 1000] = (0, 0, 1e30, 1e30, 0.9, 1.0)
    detector = OnnxDetector(
        write_network({'output': output}), DetectorParameters(labels=('class0',))
    )
    (detection,) = detector.detect(PICTURE).detections
    assert detection.box == (0, 0, 640, 480)


def test_a_picture_of_the_wrong_kind_is_refused(write_network) -> None:
    with pytest.raises(EncodingError, match='cannot be encoded'):
        OnnxDetector(write_network(rows())).detect(np.zeros((10, 10), np.uint8))


class CountingSession:
    """Counts the runs of a session."""

    def __init__(self, session: Any) -> None:
        self.runs = 0
        self._session = session

    def run(self, names: list[str], feed: dict[str, np.ndarray]) -> Any:
        self.runs += 1
        return self._session.run(names, feed)


def test_warming_up_runs_the_network(write_network) -> None:
    detector = OnnxDetector(write_network(rows()))
    session = CountingSession(detector._network.sessions[0])
    detector._network.sessions[0] = session
    detector.warm_up()
    assert session.runs == 1


class BrokenSession:
    """A session whose accelerator has gone."""

    def run(self, names: list[str], feed: dict[str, np.ndarray]) -> Any:
        raise RuntimeError('CUDA failure 999')


def test_a_network_that_fails_on_a_picture_is_named(write_network) -> None:
    detector = OnnxDetector(write_network(rows()))
    detector._network.sessions[0] = BrokenSession()
    with pytest.raises(EncodingError, match=r'network\.onnx failed on a unit: CUDA fail'):
        detector.detect(PICTURE)

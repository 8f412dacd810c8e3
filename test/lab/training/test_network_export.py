"""Weights stored as float16: half the size, and nearly the same answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from mmedge_lab.training import TrainingError
from mmedge_lab.training.network_export import check_export, greatest_difference, store_as_float16
from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.letterbox import Letterbox

SIZE = (64, 64)
PICTURE = np.zeros((64, 64, 3), np.uint8)
# Columns of x, y, width, height and the scores of two classes: two people, a car, and nothing.
FOUND = np.array(
    [
        [15, 25, 10, 30, 0.9, 0.01],
        [35, 25, 10, 30, 0.8, 0.02],
        [25, 55, 30, 10, 0.01, 0.7],
        [3, 3, 4, 4, 0.01, 0.01],
    ],
    np.float32,
).T


def write_product(path: Path, weights: np.ndarray) -> Path:
    """A network that multiplies its input with weights and adds a small bias."""
    rows, columns = weights.shape
    graph = helper.make_graph(
        [
            helper.make_node('MatMul', ['x', 'weights'], ['product']),
            helper.make_node('Add', ['product', 'bias'], ['y']),
        ],
        'product',
        [helper.make_tensor_value_info('x', TensorProto.FLOAT, [1, rows])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [1, columns])],
        [
            numpy_helper.from_array(weights, 'weights'),
            numpy_helper.from_array(np.full(columns, 0.1, np.float32), 'bias'),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
    model.metadata_props.add(key='names', value="{0: 'person'}")
    onnx.save(model, str(path))
    return path


def answer(path: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    return np.asarray(session.run(None, {'x': x})[0])


def test_the_file_halves_and_the_answers_stay(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    path = write_product(tmp_path / 'n.onnx', rng.normal(0, 0.1, (64, 48)).astype(np.float32))
    x = rng.normal(0, 1, (1, 64)).astype(np.float32)
    before, size = answer(path, x), path.stat().st_size
    store_as_float16(path)
    assert path.stat().st_size < 0.6 * size
    np.testing.assert_allclose(answer(path, x), before, atol=2e-3)
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert metadata == {'names': "{0: 'person'}"}


def offset(row: int, column: int, by: float) -> np.ndarray:
    other = FOUND.copy()
    other[row, column] += by
    return other[None]


@pytest.mark.parametrize(
    'other',
    [offset(2, 0, 1.5), offset(4, 1, 0.05), offset(5, 3, 0.5), offset(4, 0, np.nan)],
    ids=['box', 'score', 'appears', 'nan'],
)
def test_a_file_that_answers_differently_is_refused(other: np.ndarray) -> None:
    letterbox = Letterbox(SIZE, UltralyticsHead.style, np.float32)
    with pytest.raises(TrainingError, match='differs from the trained one'):
        check_export(
            lambda _: {'detections': FOUND[None]},
            lambda _: {'detections': other},
            letterbox,
            [PICTURE],
        )


def test_how_far_an_export_is_off_is_a_share_of_the_greatest_value() -> None:
    wanted = np.array([1.0, -50.0])
    assert greatest_difference(wanted, wanted + 1.0, 0.05, 'network') == 0.02
    for made in (wanted + 3.0, wanted * np.nan):
        with pytest.raises(TrainingError, match='exported network differs'):
            greatest_difference(wanted, made, 0.05, 'network')

"""Networks of a few bytes: they put out what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

# tiny_detector.py, which tests of other packages use too.

ELEMENT_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(np.uint8): TensorProto.UINT8,
}
WriteNetwork = Callable[..., Path]


def write_constant_network(
    path: Path,
    outputs: Mapping[str, NDArray[Any]],
    *,
    input_shape: Sequence[int | str] = (1, 3, 320, 416),
    input_type: type[np.generic] = np.float32,
    metadata: Mapping[str, str] | None = None,
    echo: str = '',
    inputs: int = 1,
) -> Path:
    """Write a network that puts out constants; the output ``echo`` is its input unchanged."""
    element = ELEMENT_TYPES[np.dtype(input_type)]
    names = ['images', *(f'more{i}' for i in range(inputs - 1))]
    nodes = [
        helper.make_node('Constant', [], [name], value=numpy_helper.from_array(value))
        for name, value in outputs.items()
    ]
    infos = [
        helper.make_tensor_value_info(name, ELEMENT_TYPES[value.dtype], value.shape)
        for name, value in outputs.items()
    ]
    if echo:
        nodes.append(helper.make_node('Identity', ['images'], [echo]))
        infos.append(helper.make_tensor_value_info(echo, element, input_shape))
    graph = helper.make_graph(
        nodes,
        'constants',
        [helper.make_tensor_value_info(name, element, input_shape) for name in names],
        infos,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
    for key, value in (metadata or {}).items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, str(path))
    return path


@pytest.fixture
def write_network(tmp_path: Path) -> WriteNetwork:
    """Write a constant network into the test's folder; see write_constant_network."""

    def write(
        outputs: Mapping[str, NDArray[Any]], name: str = 'network.onnx', **options: Any
    ) -> Path:
        return write_constant_network(tmp_path / name, outputs, **options)

    return write

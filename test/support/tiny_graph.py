"""Writes ONNX graphs of a few nodes, as any ONNX Runtime of the last years reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Shapes = Mapping[str, Sequence[int | str]]


def made_graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Shapes,
    outputs: Shapes,
    constants: Mapping[str, Any] | None = None,
    metadata: Mapping[str, str] | None = None,
    *,
    kinds: Mapping[str, int] | None = None,
    opset: int = 13,
) -> onnx.ModelProto:
    """Make a model.

    :param kinds: types of inputs and outputs that are not float32, by name
    """

    def infos(shapes: Shapes) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(
                name, (kinds or {}).get(name, TensorProto.FLOAT), list(shape)
            )
            for name, shape in shapes.items()
        ]

    stored = [
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in (constants or {}).items()
    ]
    graph = helper.make_graph(list(nodes), 'tiny', infos(inputs), infos(outputs), stored)
    opsets = [helper.make_opsetid('', opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name='tests')
    helper.set_model_props(model, dict(metadata or {}))
    return model


def write_graph(path: Path, *parts: Any, **options: Any) -> Path:
    """Write what `made_graph` makes of the rest."""
    onnx.save(made_graph(*parts, **options), str(path))
    return path

"""Networks of a few bytes: they put out what a test tells them to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from tiny_stages import write_graph


@pytest.fixture
def write_network(tmp_path: Path) -> Callable[..., Path]:
    """Write a network of constants into the test's folder; ``echo`` puts out its input."""

    def write(
        outputs: Mapping[str, NDArray[np.float32]],
        *,
        input_shape: Sequence[Any] = (1, 3, 320, 416),
        metadata: Mapping[str, str] | None = None,
        echo: str = '',
        inputs: int = 1,
    ) -> Path:
        nodes = [
            helper.make_node('Constant', [], [name], value=numpy_helper.from_array(value))
            for name, value in outputs.items()
        ]
        shapes: dict[str, Sequence[Any]] = {name: of.shape for name, of in outputs.items()}
        if echo:
            nodes.append(helper.make_node('Identity', ['images'], [echo]))
            shapes[echo] = input_shape
        names = ['images', *(f'more{i}' for i in range(inputs - 1))]
        network = tmp_path / 'network.onnx'
        taken = dict.fromkeys(names, input_shape)
        return write_graph(network, nodes, taken, shapes, metadata=metadata)

    return write

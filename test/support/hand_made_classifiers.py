"""Small image classifiers in ONNX, of random weights but for a fitted last layer, and pictures.

The residual network has a stem, three residual blocks (the later two halve the map, past a
1x1 shortcut) and a dense layer over means; the mobile network has a stem and four inverted
blocks, one with squeeze and excite. Pictures of a class are noise around its own colour.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

CLASSES = ('blue', 'green', 'red', 'yellow')
COLOURS = ((200, 60, 40), (60, 190, 60), (50, 40, 210), (40, 200, 220))
SIDE = 32
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class GraphBuilder:
    """Collects nodes and weights; every method returns the name of what it puts out."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, NDArray[Any]] = {}

    def add(self, kind: str, *reads: str, **attributes: Any) -> str:
        name = f'{kind.lower()}_{len(self.nodes)}'
        self.nodes.append(helper.make_node(kind, list(reads), [name], name, **attributes))
        return name

    def constant(self, values: Any) -> str:
        name = f'weights_{len(self.weights)}'
        self.weights[name] = np.asarray(values)
        return name

    def conv(
        self, x: str, reads: int, makes: int, side: int = 3, step: int = 1, groups: int = 1
    ) -> str:
        shape = (makes, reads // groups, side, side)
        kernel = self.rng.normal(0.0, (2.0 / np.prod(shape[1:])) ** 0.5, shape)
        bias = self.constant(self.rng.normal(0.0, 0.05, makes).astype(np.float32))
        return self.add(
            'Conv', x, self.constant(kernel.astype(np.float32)), bias, group=groups,
            kernel_shape=[side, side], strides=[step, step], pads=[side // 2] * 4,
        )  # fmt: skip

    def relu(self, x: str) -> str:
        return self.add('Relu', x)

    def relu6(self, x: str) -> str:
        return self.add('Clip', x, self.constant(np.float32(0)), self.constant(np.float32(6)))

    def residual(self, x: str, reads: int, makes: int, step: int) -> str:
        inner = self.relu(self.conv(x, reads, makes, step=step))
        inner = self.conv(inner, makes, makes)
        past = x if step == 1 and reads == makes else self.conv(x, reads, makes, 1, step)
        return self.relu(self.add('Add', inner, past))

    def inverted(self, x: str, reads: int, makes: int, step: int, excite: bool = False) -> str:
        wide = 4 * reads
        inner = self.relu6(self.conv(x, reads, wide, 1))
        inner = self.relu6(self.conv(inner, wide, wide, 3, step, wide))
        if excite:
            scale = self.relu(self.conv(self.add('GlobalAveragePool', inner), wide, 4, 1))
            inner = self.add('Mul', inner, self.add('Sigmoid', self.conv(scale, 4, wide, 1)))
        inner = self.conv(inner, wide, makes, 1)
        return self.add('Add', inner, x) if step == 1 and reads == makes else inner

    def model(
        self, output: str, shape: tuple[Any, ...] = (1, len(CLASSES)), batch: Any = 1,
        side: Any = SIDE, opset: int = 13,
    ) -> onnx.ModelProto:  # fmt: skip
        def port(name: str, dims: tuple[Any, ...]) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)

        stored = [numpy_helper.from_array(value, name) for name, value in self.weights.items()]
        graph = helper.make_graph(
            self.nodes, 'classifier', [port('picture', (batch, 3, side, side))],
            [port(output, shape)], stored,
        )  # fmt: skip
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8
        )


def residual_classifier(ending: str = '', **more: Any) -> onnx.ModelProto:
    """Stem and three residual blocks of 16, 24 and 32 channels; ``ending`` such as Softmax."""
    builder = GraphBuilder(1)
    x = builder.relu(builder.conv('picture', 3, 16))
    x = builder.residual(x, 16, 16, 1)
    x = builder.residual(x, 16, 24, 2)
    x = builder.residual(x, 24, 32, 2)
    return _classifier(builder, x, 32, ending, **more)


def mobile_classifier(ending: str = '', **more: Any) -> onnx.ModelProto:
    """Stem and four inverted blocks of 12, 12, 16 and 24 channels, the third with excite."""
    builder = GraphBuilder(2)
    x = builder.relu6(builder.conv('picture', 3, 12))
    x = builder.inverted(x, 12, 12, 1)
    x = builder.inverted(x, 12, 16, 2)
    x = builder.inverted(x, 16, 16, 1, excite=True)
    x = builder.inverted(x, 16, 24, 2)
    return _classifier(builder, x, 24, ending, **more)


def _classifier(
    builder: GraphBuilder, x: str, channels: int, ending: str, **more: Any
) -> onnx.ModelProto:
    """Put a dense layer over the means, fitted to the classes by ridge regression."""
    means = builder.add('Flatten', builder.add('GlobalAveragePool', x), axis=1)
    session = onnxruntime.InferenceSession(builder.model(means, (1, channels)).SerializeToString())
    labels = np.repeat(np.arange(len(CLASSES)), 12)
    blobs = [as_blob(picture_of(label, 1000 + place)) for place, label in enumerate(labels)]
    seen = np.concatenate([session.run(None, {'picture': blob})[0] for blob in blobs])
    seen = np.hstack([seen, np.ones((len(seen), 1))])
    wanted = 8.0 * np.eye(len(CLASSES))[labels]
    dense = np.linalg.solve(seen.T @ seen + 1e-2 * np.eye(seen.shape[1]), seen.T @ wanted)
    weights = builder.constant(dense[:-1].astype(np.float32))
    output = builder.add('Gemm', means, weights, builder.constant(dense[-1].astype(np.float32)))
    if ending:
        output = builder.add(ending, output)
    return builder.model(output, (more.get('batch', 1), len(CLASSES)), **more)


def picture_of(label: int, seed: int) -> NDArray[np.uint8]:
    """A picture (40, 48, 3) BGR of a class: noise around its colour, with a stripe of its own."""
    rng = np.random.default_rng(seed)
    picture = np.array(COLOURS[label], float) + rng.normal(0.0, 35.0, (40, 48, 3))
    picture[:, label * 10 : label * 10 + 8] += 60.0 * rng.uniform(0.5, 1.0)
    return np.clip(picture, 0, 255).astype(np.uint8)


def as_blob(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """A picture as the networks take it (1, 3, 32, 32)."""
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA)[:, :, ::-1]
    values = (small / 255.0 - MEAN) / DEVIATION
    return np.ascontiguousarray(values.transpose(2, 0, 1)[None], np.float32)


def write_model(path: Path, model: onnx.ModelProto) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def write_pictures(folder: Path, of_each: int, classes: tuple[str, ...] = CLASSES) -> Path:
    """Write PNG files ``<class>/<number>.png``."""
    for label, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(of_each):
            picture = picture_of(label % len(COLOURS), 100 * label + number)
            cv2.imwrite(str(folder / name / f'{number}.png'), picture)
    return folder


def tensors_between(model: onnx.ModelProto, begin: str, end: str) -> Iterator[str]:
    """Tensors that nodes put out after ``begin`` and before ``end``, in the order of the file."""
    names = [node.output[0] for node in model.graph.node]
    yield from names[names.index(begin) + 1 : names.index(end)]

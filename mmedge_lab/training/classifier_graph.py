"""Opens an ONNX image classifier as a plain graph of fixed shapes, or says what does not suit."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_lab.training import TrainingError
from mmedge_ros.encoding.bundle.weights import require_weights
from mmedge_ros.encoding.onnx_session import runtime_errors
from mmedge_ros.untrusted_files import read_bounded

# A flight computer holds far less; protobuf itself ends at 2 GB.
_LARGEST_MODEL_BYTES = 1 << 30
_MOST_NODES = 50_000
_LARGEST_SIDE = 1024
_MOST_CLASSES = 10_000
_ONE_FILE = 'export it again as one file (torch: external_data=False; onnx: onnx.save of it)'
_FIXED = (
    'export it with fixed shapes (torch: without dynamic_axes and dynamic_shapes), or name the '
    'size of its pictures with --size'
)
# What may stand between the logits and the output, and changes no order of the classes.
_SQUASHING = ('Softmax', 'Sigmoid')
_PASSING = ('Identity', 'Cast')


class TensorType(NamedTuple):
    """Element type (a number of ONNX) and shape of a tensor; shapes that are open are None."""

    element: int
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class ClassifierGraph:
    """A classifier whose nodes can be divided into stages.

    ``nodes`` are those that the logits (1, J) need, each after what it reads; ``types`` are those
    of all tensors. ``given`` is the model as it was read; ``size`` is width and height in px.
    """

    place: str
    given: Any
    nodes: tuple[Any, ...]
    stored: Mapping[str, Any]
    types: Mapping[str, TensorType]
    picture: str
    logits: str
    size: tuple[int, int]

    @property
    def classes(self) -> int:
        return (self.types[self.logits].shape or (0, 0))[1]

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None where it is open."""
        known = self.types.get(tensor)
        return known.shape if known is not None else None


def onnx_library() -> Any:
    """Return the module onnx, which only trainings and this need.

    :raises TrainingError: if it is not installed
    """
    try:
        import onnx
        import onnx.checker
        import onnx.shape_inference
    except ModuleNotFoundError as err:
        raise TrainingError(
            f'{err.name} is not installed; ./mmedge install train brings it, elsewhere '
            'pip install onnx does'
        ) from err
    return onnx


def open_graph(path: Path, size: tuple[int, int] | None = None) -> ClassifierGraph:
    """Read a classifier: one input [1|N, 3, H, W] of float, one output [1|N, J].

    Where its last node is a Softmax or Sigmoid, the logits before it are used.

    :param size: width and height of its pictures in px, where the model leaves them open
    :raises TrainingError: if it is another kind of model
    :raises EncodingError: if the file is no model at all
    """
    onnx = onnx_library()
    given = _parsed(onnx, require_weights(path, ('.onnx',)))
    _require_plain(onnx, given, str(path))
    with runtime_errors(f'{path} is no valid ONNX model (export it again)'):
        onnx.checker.check_model(given)
    model = copy.deepcopy(given)
    picture, pixels = _fix_input(onnx, model, size, str(path))
    logits = _logits(model.graph, str(path))
    with runtime_errors(f'{path}: its shapes cannot be told ({_FIXED})'):
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    types = _types(inferred.graph)
    _fold_shapes(onnx, inferred.graph, types)
    stored = {tensor.name: tensor for tensor in inferred.graph.initializer}
    nodes = _needed(inferred.graph.node, logits)
    shape = types.get(logits, TensorType(0, None)).shape
    if shape is None or len(shape) != 2 or shape[0] != 1 or not 2 <= shape[1] <= _MOST_CLASSES:
        raise TrainingError(
            f'{path} puts out {_shown(shape)} for one picture; a classifier puts out one number '
            f'for each of 2 to {_MOST_CLASSES} classes, [1, classes]. Otherwise {_FIXED}'
        )
    return ClassifierGraph(str(path), given, nodes, stored, types, picture, logits, pixels)


def _parsed(onnx: Any, path: Path) -> Any:
    remedy = 'use a smaller network'
    if path.stat().st_size > _LARGEST_MODEL_BYTES:  # before room is made for it
        raise TrainingError(f'{path}: larger than {_LARGEST_MODEL_BYTES} bytes; {remedy}')
    content = read_bounded(path, _LARGEST_MODEL_BYTES, TrainingError, remedy)
    with runtime_errors(f'{path} is no ONNX model (export or copy it again)'):
        return onnx.load_model_from_string(content)


def _require_plain(onnx: Any, model: Any, place: str) -> None:
    """Make sure that a model has nothing that cannot be divided, before anything opens it."""
    graph = model.graph
    if not graph.node:
        raise TrainingError(f'{place} holds no graph; export or copy it again')
    if len(graph.node) > _MOST_NODES:
        raise TrainingError(
            f'{place} has {len(graph.node)} nodes, over {_MOST_NODES}; no network '
            'that flies has so many'
        )
    external = onnx.TensorProto.EXTERNAL
    tensors = [*graph.initializer, *(a.t for n in graph.node for a in n.attribute)]
    if any(tensor.data_location == external for tensor in tensors):
        raise TrainingError(f'{place} keeps its weights in another file; {_ONE_FILE}')
    if model.functions or graph.sparse_initializer:
        raise TrainingError(
            f'{place} has functions or sparse weights of its own; export it again without them '
            '(onnx.inliner.inline_local_functions puts functions in their places)'
        )
    for node in graph.node:
        if node.domain not in ('', 'ai.onnx'):
            raise TrainingError(
                f'{place} has the operator {node.op_type} of {node.domain[:80]}, which is none of '
                "ONNX's own; export it again, without an optimiser that merges operators"
            )
        if any(a.HasField('g') or a.graphs for a in node.attribute):
            raise TrainingError(
                f'{place} has control flow ({node.op_type}); export it again as a plain graph '
                '(torch: trace it instead of scripting it)'
            )


def _fix_input(
    onnx: Any, model: Any, size: tuple[int, int] | None, place: str
) -> tuple[str, tuple[int, int]]:
    """Fix the shape of the input in the model; return its name, and width and height."""
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    inputs = [port for port in graph.input if port.name not in stored]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise TrainingError(
            f'{place} has {len(inputs)} inputs and {len(graph.output)} outputs; a classifier '
            'takes one picture and puts out one number for each class: export it so'
        )
    tensor = inputs[0].type.tensor_type
    dims = tuple(d.dim_value if d.dim_value > 0 else None for d in tensor.shape.dim)
    if (
        tensor.elem_type != onnx.TensorProto.FLOAT
        or len(dims) != 4
        or (dims[0] not in (1, None) or dims[1] not in (3, None))
    ):
        kind = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
        raise TrainingError(
            f'{place} takes {_shown(dims)} of {kind}; a classifier takes [1, 3, height, width] of '
            'float: export it for a single colour picture, channels first'
        )
    pixels = _size(dims[2:], size, place)
    for dim, value in zip(tensor.shape.dim, (1, 3, pixels[1], pixels[0]), strict=True):
        dim.dim_value = value
    kept = copy.deepcopy(inputs[0])
    del graph.input[:], graph.value_info[:]
    graph.input.append(kept)
    graph.output[0].type.tensor_type.ClearField('shape')
    model.ir_version = max(model.ir_version, 4)  # before, weights had to be inputs as well
    return str(kept.name), pixels


def _size(
    sides: tuple[int | None, ...], size: tuple[int, int] | None, place: str
) -> tuple[int, int]:
    """Return width and height, from those of the model (height, width) and those named."""
    own = (sides[1], sides[0])
    if size is not None and any(o not in (None, s) for o, s in zip(own, size, strict=True)):
        raise TrainingError(
            f'{place} takes pictures of {_shown(own)} px (width, height), --size says '
            f'{size[0]}x{size[1]}; leave --size out'
        )
    width, height = size or own
    if width is None or height is None:
        raise TrainingError(
            f'{place} takes pictures of any size; name one with --size WIDTHxHEIGHT, best that '
            'of its training'
        )
    if not (1 <= width <= _LARGEST_SIDE and 1 <= height <= _LARGEST_SIDE):
        raise TrainingError(
            f'{place} takes pictures of {width} x {height} px; the sides must be 1 to '
            f'{_LARGEST_SIDE}'
        )
    return width, height


def _logits(graph: Any, place: str) -> str:
    """Return the tensor with the logits: the output, or what a last Softmax reads."""
    made_by = {name: node for node in graph.node for name in node.output}
    output = str(graph.output[0].name)
    node = made_by.get(output)
    if node is None:
        raise TrainingError(f'{place} puts out what no node of it makes; export it again')
    while node is not None and node.op_type in _PASSING:
        node = made_by.get(node.input[0])
    if node is not None and node.op_type in _SQUASHING and node.input[0] in made_by:
        return str(node.input[0])
    return output


def _types(graph: Any) -> dict[str, TensorType]:
    """Return the types of all tensors of a graph."""
    types = {t.name: TensorType(t.data_type, tuple(t.dims)) for t in graph.initializer}
    for port in (*graph.input, *graph.value_info, *graph.output):
        tensor = port.type.tensor_type
        dims = tuple(d.dim_value if d.HasField('dim_value') else -1 for d in tensor.shape.dim)
        known = tensor.HasField('shape') and all(d >= 0 for d in dims)
        types[port.name] = TensorType(tensor.elem_type, dims if known else None)
    return types


def _fold_shapes(onnx: Any, graph: Any, types: Mapping[str, TensorType]) -> None:
    """Put numbers in the place of the nodes that ask for shapes, which are fixed by now."""
    kept = []
    for node in graph.node:
        known = types.get(node.input[0]) if node.op_type == 'Shape' else None
        if known is None or known.shape is None:
            kept.append(copy.deepcopy(node))
            continue
        part = {a.name: a.i for a in node.attribute}
        dims = known.shape[slice(part.get('start'), part.get('end'))]
        graph.initializer.append(
            onnx.helper.make_tensor(node.output[0], onnx.TensorProto.INT64, [len(dims)], dims)
        )
    del graph.node[:]
    graph.node.extend(kept)


def _needed(nodes: Any, goal: str) -> tuple[Any, ...]:
    """Return the nodes that a tensor needs, in their order."""
    wanted, kept = {goal}, []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(name for name in node.input if name)
    return tuple(reversed(kept))


def _shown(shape: tuple[int | None, ...] | None) -> str:
    """Show a shape in a message."""
    if shape is None:
        return 'an open shape'
    return f'[{", ".join("?" if side is None else str(side) for side in shape[:8])}]'

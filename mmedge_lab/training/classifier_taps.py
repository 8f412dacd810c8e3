"""Divides a classifier into stages that run one after another, with a tap after each."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_lab.training.classifier_graph import ClassifierGraph, onnx_library
from mmedge_lab.training.cut_points import CutPoint
from mmedge_ros.encoding.classifier_description import ATTRIBUTES, LOGITS
from mmedge_ros.encoding.onnx_session import open_session, runtime_errors
from mmedge_ros.encoding.tapped_network import TappedNetwork

_LARGEST_DIFFERENCE = 1e-4
_TRIALS, _SEED = 3, 1
_RESERVED = (LOGITS, ATTRIBUTES, 'tap_', 'pooled_', 'map_')


def write_stages(
    graph: ClassifierGraph, cuts: Sequence[CutPoint], folder: Path, name: str
) -> list[Path]:
    """Write the stages ``<name>_1.onnx`` and so on.

    Stage k puts out ``tap_k`` (1, D), the mean of its map, and ``map_k``, which the next one
    reads; the last one puts out ``logits`` (1, J). Opset and weights are the model's.

    :raises OSError: if a file cannot be written
    """
    onnx = onnx_library()
    names = _names(graph, cuts)
    paths = []
    begin = graph.picture
    for number, end in enumerate((*(cut.tensor for cut in cuts), graph.logits), start=1):
        stage = _stage(onnx, graph, begin, end, names, number if number <= len(cuts) else 0)
        path = folder / f'{name}_{number}.onnx'
        path.write_bytes(stage.SerializeToString())
        paths.append(path)
        begin = end
    return paths


def check_stages(graph: ClassifierGraph, stages: Sequence[Path], folder: Path) -> float:
    """Compare the stages with the model as it was given, on random pictures.

    :param folder: for the model while it is compared
    :return: the greatest absolute difference of logits (relative to the greatest, where that is
        above 1)
    :raises TrainingError: if it is 1e-4 or more, or if what is put out are probabilities
    :raises EncodingError: if ONNX Runtime cannot run the model
    """
    network = TappedNetwork(stages)
    whole = folder / 'whole.onnx'
    try:
        whole.write_bytes(_with_logits(graph).SerializeToString())
        session = open_session(whole)
        rng = np.random.default_rng(_SEED)
        worst, all_sum_to_one = 0.0, True
        for _ in range(_TRIALS):
            blob = rng.normal(size=(1, 3, graph.size[1], graph.size[0])).astype(np.float32)
            with runtime_errors(f'{graph.place} does not run'):
                expected = np.asarray(session.run([graph.logits], {graph.picture: blob})[0], float)
            worst = float(np.maximum(worst, _difference(network.run(blob)[LOGITS], expected)))
            all_sum_to_one &= bool(expected.min() >= 0.0 and abs(expected.sum() - 1.0) < 1e-3)
    finally:
        whole.unlink(missing_ok=True)
    if not worst < _LARGEST_DIFFERENCE:
        raise TrainingError(
            f'the stages of {graph.place} put out other logits than the whole (difference '
            f'{worst:.2g}); export it in float32, without random operators'
        )
    if all_sum_to_one:
        raise TrainingError(
            f'{graph.place} puts out probabilities that no Softmax at its end makes; export it '
            'so that it puts out logits'
        )
    return worst


def _difference(one: NDArray[Any], other: NDArray[Any]) -> float:
    if one.shape != other.shape:
        return math.inf
    with np.errstate(invalid='ignore'):  # NaN fails the check
        return float(np.abs(one - other).max() / max(1.0, np.abs(other).max()))


def _names(graph: ClassifierGraph, cuts: Sequence[CutPoint]) -> Mapping[str, str]:
    """Return what tensors are called in the stages, where that is not their own name."""
    own = {name for node in graph.nodes for name in (*node.input, *node.output)}
    names = {name: f'model/{name}' for name in own if name.startswith(_RESERVED)}
    names |= {cut.tensor: f'map_{number}' for number, cut in enumerate(cuts, start=1)}
    return {**names, graph.logits: LOGITS}


def _stage(
    onnx: Any, graph: ClassifierGraph, begin: str, end: str, names: Mapping[str, str], tap: int
) -> Any:
    """Return the model of a stage; ``tap`` is its number, 0 for the last."""
    wanted, nodes = {end}, []
    for node in reversed(graph.nodes):
        if wanted.intersection(node.output) - {begin}:
            nodes.append(_renamed(node, names))
            wanted.update(name for name in node.input if name)
    nodes.reverse()
    stored = []
    for tensor in (graph.stored[name] for name in sorted(wanted) if name in graph.stored):
        stored.append(copy.deepcopy(tensor))
        stored[-1].name = names.get(tensor.name, tensor.name)
    made = names.get(end, end)
    outputs = [_port(onnx, graph, end, names)]
    if tap:
        nodes.append(onnx.helper.make_node('GlobalAveragePool', [made], [f'pooled_{tap}']))
        nodes.append(onnx.helper.make_node('Flatten', [f'pooled_{tap}'], [f'tap_{tap}'], axis=1))
        kind, shape = graph.types[end]
        size = [1, (shape or (1, 1))[1]]
        outputs.insert(0, onnx.helper.make_tensor_value_info(f'tap_{tap}', kind, size))
    content = onnx.helper.make_graph(
        nodes, 'stage', [_port(onnx, graph, begin, names)], outputs, stored
    )
    opsets = [entry for entry in graph.given.opset_import if entry.domain in ('', 'ai.onnx')]
    return onnx.helper.make_model(
        content, opset_imports=opsets, ir_version=max(graph.given.ir_version, 4)
    )


def _port(onnx: Any, graph: ClassifierGraph, tensor: str, names: Mapping[str, str]) -> Any:
    kind, shape = graph.types[tensor]
    return onnx.helper.make_tensor_value_info(names.get(tensor, tensor), kind, list(shape or ()))


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    renamed = copy.deepcopy(node)
    renamed.input[:] = [names.get(name, name) for name in node.input]
    renamed.output[:] = [names.get(name, name) for name in node.output]
    return renamed


def _with_logits(graph: ClassifierGraph) -> Any:
    """Return the model as it was given, with the logits as an output."""
    model = copy.deepcopy(graph.given)
    if all(port.name != graph.logits for port in model.graph.output):
        model.graph.output.append(onnx_library().helper.make_empty_tensor_value_info(graph.logits))
    return model

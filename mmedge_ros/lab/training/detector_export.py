"""Turns a trained network into an ONNX file of half the size, and checks one against the other."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.letterbox import Letterbox
from mmedge_ros.encoding.onnx_session import open_session
from mmedge_ros.encoding.ultralytics_export import write_onnx
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.sensing.camera.image import Picture

# Boxes of cells that see nothing mean nothing.
_COMPARED_SCORE = 0.1
_LARGEST_BOX_DIFFERENCE = 1.0
_LARGEST_SCORE_DIFFERENCE = 0.02
# Smaller tensors are shapes, strides and biases: nothing would be saved.
_SMALLEST_STORED_HALF = 64


class ExportCheck(NamedTuple):
    """Greatest differences between torch and ONNX Runtime over some pictures.

    ``cells`` counts those where one of them sees something, whose boxes are compared.
    """

    pictures: int
    cells: int
    box_px: float
    score: float


def export_detector(
    network: Any, target: Path, size: tuple[int, int], pictures: Sequence[Picture]
) -> ExportCheck:
    """Write detections, features and embedding as one graph, and check it on pictures.

    :param network: trained, in evaluation mode; it stays as it is
    :raises TrainingError: if the file does not find what the network finds
    :raises OSError: if the file cannot be written
    """
    write_onnx(copy.deepcopy(network).float().cpu().eval(), target, size)
    store_as_float16(target)
    return check_export(lambda blob: _run_torch(network, blob), target, size, pictures)


def store_as_float16(path: Path) -> None:
    """Store the weights of an ONNX file as float16, and cast them back when it is opened.

    Arithmetic stays float32 and as fast: the runtime folds the casts into the weights.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(str(path))
    graph = model.graph
    casts = []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < _SMALLEST_STORED_HALF:
            continue
        with np.errstate(over='ignore'):
            half = values.astype(np.float16)
        if not np.isfinite(half).all():
            continue
        stored = f'{tensor.name}.half'
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(half, stored))
        casts.append(helper.make_node('Cast', [stored], [tensor.name], to=TensorProto.FLOAT))
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def check_export(
    answer: Callable[[NDArray[np.floating]], NDArray[np.float32]],
    target: Path,
    size: tuple[int, int],
    pictures: Sequence[Picture],
) -> ExportCheck:
    """Compare what an ONNX file puts out with what the network does that it was made from.

    :param answer: the network: (1, 3, H, W) to (1, 4 + classes, cells), boxes in px first
    :raises TrainingError: if they differ by more than rounding explains
    """
    session = open_session(target)
    letterbox = Letterbox(size, UltralyticsHead.style, np.float32)
    worst_box = worst_score = 0.0
    count = 0
    for picture in pictures:
        letterbox.fill(picture)
        wanted = answer(letterbox.blob)[0]
        found = session.run(['detections'], {'images': letterbox.blob})[0][0]
        seen = np.maximum(wanted[4:], found[4:]).max(axis=0) >= _COMPARED_SCORE
        differences = np.abs(wanted - found)
        worst_score = float(np.maximum(worst_score, differences[4:].max()))  # keeps a NaN
        worst_box = max(worst_box, float(differences[:4, seen].max(initial=0.0)))
        count += int(np.count_nonzero(seen))
    result = ExportCheck(len(pictures), count, round(worst_box, 4), round(worst_score, 5))
    if not (worst_box <= _LARGEST_BOX_DIFFERENCE and worst_score <= _LARGEST_SCORE_DIFFERENCE):
        raise TrainingError(
            f'the exported network differs from the trained one by up to {worst_box:.2f} px and '
            f'{worst_score:.3f} of score; it is not used. Export again with the pinned versions '
            'of torch and onnx'
        )
    return result


def _run_torch(network: Any, blob: NDArray[np.floating]) -> NDArray[np.float32]:
    import torch

    device = next(network.parameters()).device
    with torch.no_grad():
        output = network(torch.from_numpy(blob.astype(np.float32)).to(device))[0]
    return np.asarray(output.cpu().numpy(), np.float32)

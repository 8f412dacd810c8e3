"""Writes trained networks as ONNX files of half the size, and checks them against the network."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_lab.training.grid_projection import GridProjection
from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.feature_grid import CANVAS, SEMANTIC_CHANNELS
from mmedge_ros.encoding.letterbox import Canvas, Letterbox
from mmedge_ros.encoding.onnx_session import open_session
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.encoding.ultralytics_export import write_onnx
from mmedge_ros.sensing.camera.image import Picture

_OPSET = 17
# Boxes of cells that see nothing mean nothing: compared are those of this score or more.
_COMPARED_SCORE = 0.1
_LARGEST_BOX_DIFFERENCE = 1.0
_LARGEST_SCORE_DIFFERENCE = 0.02
_LARGEST_FEATURE = 0.1
# Smaller tensors are shapes, strides and biases: nothing would be saved.
SMALLEST_STORED_HALF = 64

Blob = NDArray[np.floating]


class ExportCheck(NamedTuple):
    """Greatest differences between torch and ONNX Runtime over some pictures.

    ``cells`` counts those where one of them sees something, whose boxes are compared;
    ``feature`` is that of the learned channels of a grid, which have a variance of about one.
    """

    pictures: int
    cells: int
    box_px: float
    score: float
    feature: float = 0.0


def export_detector(
    network: Any, target: Path, size: tuple[int, int], pictures: Sequence[Picture]
) -> ExportCheck:
    """Write detections, features and embedding as one graph, and check it on pictures.

    :param network: trained, in evaluation mode; it stays as it is
    :raises TrainingError: if the file does not put out what the network does
    :raises OSError: if the file cannot be written
    """
    import torch

    write_onnx(copy.deepcopy(network).float().cpu().eval(), target, size)
    store_as_float16(target)
    session, device = open_session(target), next(network.parameters()).device

    def wanted(blob: Blob) -> dict[str, Any]:
        with torch.no_grad():
            found = network(torch.from_numpy(blob.astype(np.float32)).to(device))[0]
        return {'detections': found.cpu().numpy()}

    return check_export(
        wanted,
        lambda blob: {'detections': session.run(['detections'], {'images': blob})[0]},
        Letterbox(size, UltralyticsHead.style, np.float32),
        pictures,
    )


def export_camera_level(
    network: Any,
    projection: GridProjection | None,
    size: tuple[int, int],
    folder: Path,
    level: str,
    pictures: Sequence[Picture],
) -> tuple[list[Path], ExportCheck]:
    """Write the stages ``<level>_1.onnx`` and so on, in the order in which they run.

    :param network: trained; it stays as it is
    :param projection: to the learned channels of the grid; None for zeros
    :param size: width and height of the input
    :param pictures: to check the files on
    :raises TrainingError: if the network is of another design, or the files do not put out
        what it does
    :raises OSError: if a file cannot be written
    """
    import torch

    from mmedge_lab.training.networks.camera_level import CameraLevelNetwork

    whole = CameraLevelNetwork(
        copy.deepcopy(network).float().cpu().eval().fuse(verbose=False), projection, size
    )
    facts = {
        'task': 'detect',
        'names': str(dict(network.names)),
        'imgsz': str([size[1], size[0]]),
        'end2end': 'False',
        'head': type(network.model[-1]).__name__,
        'license': 'AGPL-3.0 (https://ultralytics.com/license)',
    }
    images = {'images': torch.zeros(1, 3, size[1], size[0])}
    paths = write_stages(whole.stages, images, folder / level, facts)

    def wanted(blob: Blob) -> dict[str, Any]:
        with torch.no_grad():
            grid, detections = whole(torch.from_numpy(np.asarray(blob, np.float32)))
        return {'grid': grid.numpy(), 'detections': detections.numpy()}

    canvas = Canvas.in_input(CANVAS, size)
    letterbox = Letterbox(size, UltralyticsHead.style, np.float32, canvas)
    return paths, check_export(wanted, TappedNetwork(paths).run, letterbox, pictures)


def check_export(
    wanted: Callable[[Blob], Mapping[str, Any]],
    exported: Callable[[Blob], Mapping[str, Any]],
    letterbox: Letterbox,
    pictures: Sequence[Picture],
) -> ExportCheck:
    """Compare detections (1, 4 + classes, cells), and grids (1, 64, 30, 40) where there are any.

    :raises TrainingError: if they differ by more than rounding explains
    """
    cells, worst = 0, np.zeros(3)
    for picture in pictures:
        letterbox.fill(picture)
        one, other = wanted(letterbox.blob), exported(letterbox.blob)
        found, again = one['detections'][0], other['detections'][0]
        apart = np.abs(found - again)
        seen = np.maximum(found[4:], again[4:]).max(axis=0) >= _COMPARED_SCORE
        cells += int(np.count_nonzero(seen))
        feature = 0.0
        if 'grid' in one:
            feature = np.abs(one['grid'] - other['grid'])[0, SEMANTIC_CHANNELS:].max()
        now = apart[:4, seen].max(initial=0.0), apart[4:].max(), feature
        worst = np.maximum(worst, now)  # keeps a NaN, which is refused below
    box, score, feature = worst.tolist()
    if not all(worst <= (_LARGEST_BOX_DIFFERENCE, _LARGEST_SCORE_DIFFERENCE, _LARGEST_FEATURE)):
        raise TrainingError(
            f'the exported network differs from the trained one by up to {box:.2f} px, '
            f'{score:.3f} of score and {feature:.3f} of a feature; it is not used. Export '
            'again with the pinned versions of torch and onnx'
        )
    return ExportCheck(len(pictures), cells, round(box, 4), round(score, 5), round(feature, 5))


def write_stages(
    stages: Iterable[Any],
    tensors: Mapping[str, Any],
    target: Path,
    facts: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write ``<target>_1.onnx`` and so on, in the order in which they run.

    :param stages: modules with the names of the tensors that each reads and writes
    :param tensors: examples of what the first of them reads
    :raises OSError: if a file cannot be written
    """
    known, paths = dict(tensors), []
    for number, stage in enumerate(stages, start=1):
        path = target.with_name(f'{target.name}_{number}.onnx')
        inputs = {name: known[name] for name in stage.reads}
        made = write_graph(stage.eval(), inputs, stage.writes, path, facts)
        known.update(zip(stage.writes, made, strict=True))
        paths.append(path)
    return paths


def write_graph(
    module: Any,
    inputs: Mapping[str, Any],
    outputs: Sequence[str],
    path: Path,
    facts: Mapping[str, str] | None = None,
    *,
    half: bool = True,
) -> tuple[Any, ...]:
    """Write one torch module as an ONNX file, and return what it puts out.

    :param inputs: example tensors by the names the file gives them
    :param facts: metadata of the file
    :param half: store weights as float16
    :raises OSError: if it cannot be written
    """
    import onnx
    import torch

    tensors = tuple(inputs.values())
    with torch.no_grad():
        torch.onnx.export(
            module,
            tensors,
            str(path),
            opset_version=_OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamo=False,
        )
        made = module(*tensors)
    if half:
        store_as_float16(path)
    if facts:
        graph = onnx.load(str(path))
        for key, value in facts.items():
            graph.metadata_props.add(key=key, value=value)
        onnx.save(graph, str(path))
    return made if isinstance(made, tuple) else (made,)


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
        if values.dtype != np.float32 or values.size < SMALLEST_STORED_HALF:
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


def greatest_difference(
    wanted: NDArray[np.floating], made: NDArray[np.floating], largest: float, what: str
) -> float:
    """Return how far an exported network is off, as a share of the greatest value.

    :param what: was exported
    :raises TrainingError: if it is more than ``largest``, or not a number
    """
    apart = float(np.abs(wanted - made).max() / max(float(np.abs(wanted).max()), 1.0))
    if not apart <= largest:
        raise TrainingError(
            f'the exported {what} differs from the trained one by {apart:.2%}; it is not used. '
            'Export again with the pinned versions of torch and onnx'
        )
    return apart

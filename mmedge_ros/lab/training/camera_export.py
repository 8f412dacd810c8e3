"""Writes a camera level as ONNX stages, and checks them against the network they come from."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.feature_grid import CANVAS, SEMANTIC_CHANNELS
from mmedge_ros.encoding.letterbox import Canvas, Letterbox
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.encoding.ultralytics_network import import_libraries
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.canvas_mapping import GridProjection
from mmedge_ros.lab.training.detector_export import store_as_float16
from mmedge_ros.sensing.camera.image import Picture

_OPSET = 17
# Boxes of cells that see nothing mean nothing: compared are those of this score or more.
_COMPARED_SCORE = 0.1
_LARGEST_BOX_DIFFERENCE = 1.0
_LARGEST_SCORE_DIFFERENCE = 0.02
_LARGEST_FEATURE_DIFFERENCE = 0.1


class StagesCheck(NamedTuple):
    """Greatest differences between torch and the ONNX stages over some pictures.

    ``box_px`` of cells where one of them sees something; ``feature`` of the learned channels,
    which have a variance of about one.
    """

    pictures: int
    box_px: float
    score: float
    feature: float


def export_camera_level(
    network: Any,
    projection: GridProjection | None,
    size: tuple[int, int],
    folder: Path,
    level: str,
    pictures: Sequence[Picture],
) -> tuple[list[Path], StagesCheck]:
    """Write ``<level>_1.onnx`` and so on, in the order in which they run.

    :param network: trained; it stays as it is
    :param projection: to the learned channels of the grid; None for zeros
    :param size: width and height of the input
    :param pictures: to check the files on
    :raises TrainingError: if the network is of another design, or the files do not put out
        what it does
    :raises OSError: if a file cannot be written
    """
    from mmedge_ros.lab.training.networks.camera_level import CameraLevel

    fused = copy.deepcopy(network).float().cpu().eval().fuse(verbose=False)
    whole = CameraLevel(fused, projection, size)
    facts = {
        'task': 'detect',
        'names': str(dict(network.names)),
        'imgsz': str([size[1], size[0]]),
        'end2end': 'False',
        'head': type(network.model[-1]).__name__,
        'license': 'AGPL-3.0 (https://ultralytics.com/license)',
    }
    paths = _write_stages(whole, size, folder, level, facts)
    return paths, check_stages(whole, paths, size, pictures)


def check_stages(
    whole: Any, paths: Sequence[Path], size: tuple[int, int], pictures: Sequence[Picture]
) -> StagesCheck:
    """Compare what the files put out with what the network does that they were made from.

    :param whole: a ``CameraLevel``
    :raises TrainingError: if they differ by more than rounding explains
    """
    import torch

    network = TappedNetwork(paths)
    letterbox = Letterbox(size, UltralyticsHead.style, np.float32, Canvas.in_input(CANVAS, size))
    box = score = feature = 0.0
    for picture in pictures:
        letterbox.fill(picture)
        with torch.no_grad():
            grid, detections = whole(torch.from_numpy(np.asarray(letterbox.blob, np.float32)))
        found = network.run(letterbox.blob)
        wanted = detections.numpy()[0]
        differences = np.abs(wanted - found['detections'][0])
        seen = np.maximum(wanted[4:], found['detections'][0, 4:]).max(axis=0) >= _COMPARED_SCORE
        # np.maximum keeps a NaN, which the comparison below then refuses.
        score = float(np.maximum(score, differences[4:].max()))
        box = float(np.maximum(box, differences[:4, seen].max(initial=0.0)))
        learned = np.abs(grid.numpy() - found['grid'])[0, SEMANTIC_CHANNELS:]
        feature = float(np.maximum(feature, learned.max()))
    result = StagesCheck(len(pictures), round(box, 4), round(score, 5), round(feature, 5))
    if not (
        box <= _LARGEST_BOX_DIFFERENCE
        and score <= _LARGEST_SCORE_DIFFERENCE
        and feature <= _LARGEST_FEATURE_DIFFERENCE
    ):
        raise TrainingError(
            f'the exported stages differ from the trained network by up to {box:.2f} px, '
            f'{score:.3f} of score and {feature:.3f} of a feature; they are not used. Export '
            'again with the pinned versions of torch and onnx'
        )
    return result


def write_graph(
    module: Any,
    inputs: Mapping[str, Any],
    outputs: Sequence[str],
    path: Path,
    facts: Mapping[str, str] | None = None,
) -> tuple[Any, ...]:
    """Write one torch module as an ONNX file with float16 weights, and return what it puts out.

    :param inputs: example tensors by the names the file gives them
    :param facts: metadata of the file
    :raises OSError: if it cannot be written
    """
    torch, _, onnx = import_libraries(path.parent)
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
    store_as_float16(path)
    if facts:
        graph = onnx.load(str(path))
        for key, value in facts.items():
            graph.metadata_props.add(key=key, value=value)
        onnx.save(graph, str(path))
    return made if isinstance(made, tuple) else (made,)


def _write_stages(
    whole: Any, size: tuple[int, int], folder: Path, level: str, facts: Mapping[str, str]
) -> list[Path]:
    import torch

    tensors = {'images': torch.zeros(1, 3, size[1], size[0])}
    paths = []
    for number, stage in enumerate(whole.stages, start=1):
        path = folder / f'{level}_{number}.onnx'
        inputs = {name: tensors[name] for name in stage.reads}
        made = write_graph(stage, inputs, stage.writes, path, facts)
        tensors.update(zip(stage.writes, made, strict=True))
        paths.append(path)
    return paths

"""Little ONNX networks for tests of bundles with stages, radar levels and embeddings.

A camera level has three stages: ``p1`` (1, 3, 30, 40) is the mean brightness 0..1 of cells of
16 px, ``p2`` is twice ``p1``, and the last stage reads both: each of the 64 channels of ``grid``
is ``p1 + p2`` summed over colours, so 9 times the brightness of a grey picture. ``detections``
is always one person of score 0.9, whose box is ``BOX`` in pixels of the 640 x 480 input.
A radar level puts out, in each of 16 channels, the first channel of ``view`` plus the mean of
``birds_eye``. An embedding is the mean of the grid, 32 times.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from onnx import helper
from tiny_graph import write_graph

from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS
from mmedge_ros.encoding.bundle.weights import sha256_of

BOX = (100.0, 120.0, 140.0, 220.0)
NAMES = ('person', 'cyclist', 'car', 'dog')
_CELLS = 80 * 60 + 40 * 30 + 20 * 15


def write_camera_stages(folder: Path, level: str = 'small', rows: int = 30) -> list[Path]:
    """Write the three stages; ``rows`` other than 30 make a grid of a wrong shape."""
    images, cells = {'images': (1, 3, 480, 640)}, (1, 3, 30, 40)
    pool = helper.make_node(
        'AveragePool', ['images'], ['p1'], kernel_shape=[16, 16], strides=[16, 16]
    )
    double = helper.make_node('Add', ['p1', 'p1'], ['p2'])
    last = [
        helper.make_node('Add', ['p1', 'p2'], ['both']),
        helper.make_node('Conv', ['both', 'ones'], ['whole']),
        helper.make_node('Slice', ['whole', 'begin', 'end', 'axis'], ['grid']),
        helper.make_node('Identity', ['found'], ['detections']),
    ]
    found = np.zeros((1, 8, _CELLS), np.float32)
    x0, y0, x1, y1 = BOX
    found[0, :5, 7] = (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0, 0.9
    constants = {
        'ones': np.ones((64, 3, 1, 1), np.float32),
        'begin': np.array([0]),
        'end': np.array([rows]),
        'axis': np.array([2]),
        'found': found,
    }
    metadata = {'names': str(dict(enumerate(NAMES)))}
    outputs = {'grid': (1, 64, rows, 40), 'detections': (1, 8, _CELLS)}
    return [
        write_graph(folder / f'{level}_1.onnx', [pool], images, {'p1': cells}),
        write_graph(folder / f'{level}_2.onnx', [double], {'p1': cells}, {'p2': cells}),
        write_graph(
            folder / f'{level}_3.onnx',
            last,
            {'p1': cells, 'p2': cells},
            outputs,
            constants,
            metadata,
        ),
    ]


def write_radar_network(path: Path, channels: int = 16) -> Path:
    nodes = [
        helper.make_node('Conv', ['view', 'first'], ['seen']),
        helper.make_node('ReduceMean', ['birds_eye'], ['above'], keepdims=1),
        helper.make_node('Add', ['seen', 'above'], ['grid']),
    ]
    first = np.zeros((channels, 6, 1, 1), np.float32)
    first[:, 0] = 1.0
    inputs = {'view': (1, 6, 30, 40), 'birds_eye': (1, 6, 32, 40)}
    return write_graph(path, nodes, inputs, {'grid': (1, channels, 30, 40)}, {'first': first})


def write_embedding(path: Path, channels: int, size: int = 32) -> Path:
    nodes = [
        helper.make_node('Conv', ['grid', 'mean'], ['same']),
        helper.make_node('ReduceMean', ['same'], ['embedding'], axes=[2, 3], keepdims=0),
    ]
    mean = np.full((size, channels, 1, 1), 1.0 / channels, np.float32)
    inputs = {'grid': (1, channels, 30, 40)}
    return write_graph(path, nodes, inputs, {'embedding': (1, size)}, {'mean': mean})


def file_entry(path: Path) -> dict[str, Any]:
    return {'weights': path.name, 'sha256': sha256_of(path), 'bytes': path.stat().st_size}


def write_grid_bundle(folder: Path, **changes: Any) -> Path:
    """Write a bundle with one level of each modality, embeddings and (untrue) fusion parts.

    :param changes: sections of the manifest to replace, or to leave out where None
    """
    stages = [file_entry(path) for path in write_camera_stages(folder)]
    radar = file_entry(write_radar_network(folder / 'radar.onnx'))
    camera_embedding = write_embedding(folder / 'embed_camera.onnx', 64)
    radar_embedding = write_embedding(folder / 'embed_radar.onnx', 16)
    manifest = {
        'name': 'tiny_grids',
        'camera': {'levels': {'small': {'stages': stages}}},
        'radar': {'levels': {'small': radar}},
        'grid': {'format': 1},
        'embedding': {
            'camera': file_entry(camera_embedding),
            'radar': file_entry(radar_embedding),
        },
        'fusion': {'format': 2, **dict.fromkeys(FUSION_PARTS, radar), 'threshold': 0.25},
        **changes,
    }
    kept = {name: value for name, value in manifest.items() if value is not None}
    (folder / 'manifest.yaml').write_text(yaml.safe_dump(kept))
    return folder

"""Writes fusion networks of a few bytes whose results can be worked out by hand.

A unit is its grid, and is encoded as its grid whatever is before and after it: others bring
nothing, and changes are none. Units weigh the same, so that what is pooled is their mean. All
54 maps are the sum of what is pooled of the camera plus ten times that of the radar.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper
from tiny_graph import write_graph

from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS

CHANNELS = {'camera': 3, 'radar': 2}
CELLS = (2, 2)
Files = dict[str, Path]


def write_tiny_fusion(folder: Path) -> Files:
    """Write all parts of a fusion into a folder; return them by their names."""
    files = {part: folder / f'{part}.onnx' for part in FUSION_PARTS}
    for modality, channels in CHANNELS.items():
        write_project(files[f'project_{modality}'], channels)
        for lag in (1, 2):
            write_change(files[f'change_{modality}_{lag}'], channels)
    write_head(files['fuse'])
    return files


def pooling_note(channels: int) -> str:
    return json.dumps({'decays': [0.0] * channels, 'newest_only': False})


def write_project(
    path: Path,
    channels: int,
    *,
    grid: str = 'grid',
    batch: int | str = 1,
    kind: int = TensorProto.FLOAT,
    others: int = 2,
    note: str | None = None,
) -> Path:
    """Write what projects a unit; the options make it one that cannot be used."""
    shape = (batch, channels, *CELLS)
    nothing = helper.make_tensor('nothing', kind, [1], [0.0])
    return write_graph(
        path,
        [
            helper.make_node('Relu', [grid], ['unit']),
            helper.make_node('Relu', [grid], ['own']),
            helper.make_node('ConstantOfShape', ['shape'], ['others'], value=nothing),
        ],
        {grid: shape},
        {'unit': shape, 'own': shape, 'others': (others, channels, *CELLS)},
        {'shape': np.array([others, channels, *CELLS], np.int64)},
        {'pooling': pooling_note(channels) if note is None else note},
        kinds=dict.fromkeys((grid, 'unit', 'own', 'others'), kind),
    )


def write_change(path: Path, channels: int, *, earlier: str = 'earlier') -> Path:
    """Write what compares units; the option makes it one that cannot be used."""
    shape = (1, channels, *CELLS)
    return write_graph(
        path,
        [
            helper.make_node('Sub', ['unit', earlier], ['difference']),
            helper.make_node('Mul', ['difference', 'zero'], ['change']),
        ],
        {'unit': shape, earlier: shape},
        {'change': shape},
        constants={'zero': np.float32(0.0)},
    )


def write_head(
    path: Path, *, maps: int = 54, camera: int = CHANNELS['camera'], facts: str = 'facts'
) -> Path:
    """Write a head; the options make it one that does not fit."""
    grids = {'camera': (1, camera, *CELLS), 'radar': (1, CHANNELS['radar'], *CELLS)}
    inputs: dict[str, tuple[int, ...]] = {}
    for modality, shape in grids.items():
        inputs |= {f'{modality}_pooled': shape, f'{modality}_newest': shape}
        inputs[f'{modality}_{facts}'] = (1, 3)
    nodes = [
        *(
            helper.make_node('ReduceSum', [f'{modality}_pooled'], [f'{modality}_sum'], keepdims=1)
            for modality in grids
        ),
        helper.make_node('Mul', ['radar_sum', 'ten'], ['tenfold']),
        helper.make_node('Add', ['camera_sum', 'tenfold'], ['sum']),
        helper.make_node('Expand', ['sum', 'shape'], ['maps']),
    ]
    return write_graph(
        path,
        nodes,
        inputs,
        {'maps': (1, maps, *CELLS)},
        constants={
            'ten': np.float32(10.0),
            'shape': np.array([1, maps, *CELLS], np.int64),
        },
    )

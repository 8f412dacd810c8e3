"""Writes fusion networks of a few bytes whose results can be worked out by hand.

A step adds the grid to ``total`` (1, C, 2, 2). All 54 maps are the sum of the camera's total
plus ten times that of the radar; what is pooled is a modality's total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = {'camera': 3, 'radar': 2}
CELLS = (2, 2)
Shape = Sequence[int | str]


class Files(NamedTuple):
    """In the order `FusionNetworkRuntime` takes them."""

    step_camera: Path
    step_radar: Path
    fuse: Path


def write_tiny_fusion(folder: Path) -> Files:
    """Write step_camera.onnx, step_radar.onnx and fuse.onnx into a folder."""
    return Files(
        write_step(folder / 'step_camera.onnx', CHANNELS['camera']),
        write_step(folder / 'step_radar.onnx', CHANNELS['radar']),
        write_head(folder / 'fuse.onnx'),
    )


def write_step(
    path: Path,
    channels: int,
    *,
    total: str = 'total',
    batch: int | str = 1,
    kind: int = TensorProto.FLOAT,
    second: int = 1,
) -> Path:
    """Write a step; the options make it one that cannot be used."""
    shape = (batch, channels, *CELLS)
    return write_graph(
        path,
        [
            helper.make_node('Add', [total, 'grid'], ['next_total']),
            helper.make_node('Identity', ['grid'], ['next_newest']),
            helper.make_node('Identity', ['seconds_to_end'], ['next_seconds']),
        ],
        {total: shape, 'grid': shape, 'seconds_to_end': (second,)},
        {'next_total': shape, 'next_newest': shape, 'next_seconds': (second,)},
        kind,
    )


def write_head(path: Path, *, maps: int = 54, camera: int = CHANNELS['camera']) -> Path:
    """Write a head; the options make it one that does not fit."""
    totals = {'camera_total': (1, camera, *CELLS), 'radar_total': (1, CHANNELS['radar'], *CELLS)}
    nodes = [
        *(helper.make_node('ReduceSum', [name], [f'{name}_sum'], keepdims=1) for name in totals),
        helper.make_node('Mul', ['radar_total_sum', 'ten'], ['tenfold']),
        helper.make_node('Add', ['camera_total_sum', 'tenfold'], ['sum']),
        helper.make_node('Expand', ['sum', 'shape'], ['maps']),
        helper.make_node('Identity', ['camera_total'], ['camera_pooled']),
        helper.make_node('Identity', ['radar_total'], ['radar_pooled']),
    ]
    return write_graph(
        path,
        nodes,
        totals,
        {
            'maps': (1, maps, *CELLS),
            'camera_pooled': totals['camera_total'],
            'radar_pooled': totals['radar_total'],
        },
        constants={
            'ten': np.float32(10.0),
            'shape': np.array([1, maps, *CELLS], np.int64),
        },
    )


def write_graph(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Mapping[str, Shape],
    kind: int = TensorProto.FLOAT,
    constants: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write a graph as versions of any ONNX Runtime of the last years read it."""
    graph = helper.make_graph(
        list(nodes),
        'tiny_fusion',
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in (constants or {}).items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8)
    onnx.save(model, str(path))
    return path

"""Little fusion networks: what the newest picture says, every box at the same distance.

The state of a step is the newest grid and the number of units; the head puts out the semantics
of the newest camera grid and ln(``DISTANCE``) everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper
from tiny_stages import file_entry, write_graph, write_grid_bundle

DISTANCE = 6.0


def write_fusion_bundle(folder: Path, **changes: Any) -> Path:
    """Write the bundle of ``tiny_stages`` with fusion parts that fit."""
    steps = {
        f'step_{modality}': write_step(folder / f'step_{modality}.onnx', (1, channels, 30, 40))
        for modality, channels in (('camera', 64), ('radar', 20))
    }
    parts = {**steps, 'fuse': write_head(folder / 'fuse.onnx')}
    fusion: dict[str, Any] = {name: file_entry(path) for name, path in parts.items()}
    return write_grid_bundle(folder, fusion={**fusion, 'threshold': 0.99}, **changes)


def write_step(path: Path, grid: Sequence[int]) -> Path:
    nodes = [
        helper.make_node('Identity', ['grid'], ['next_newest']),
        helper.make_node('Add', ['count', 'one'], ['next_count']),
    ]
    inputs = {'grid': grid, 'seconds_to_end': (1,), 'newest': grid, 'count': (1, 1)}
    outputs = {'next_newest': grid, 'next_count': (1, 1)}
    return write_graph(path, nodes, inputs, outputs, {'one': np.ones((1, 1), np.float32)})


def write_head(path: Path, channels: int = 6) -> Path:
    """Write the head; ``channels`` other than 6 make maps of a wrong shape."""
    nodes = [
        helper.make_node('Slice', ['camera_newest', 'begin', 'end', 'axis'], ['semantics']),
        helper.make_node('Concat', ['semantics', 'distances'], ['maps'], axis=1),
        helper.make_node('Identity', ['camera_newest'], ['camera_pooled']),
        helper.make_node('Identity', ['radar_newest'], ['radar_pooled']),
    ]
    inputs = {'camera_newest': (1, 64, 30, 40), 'radar_newest': (1, 20, 30, 40)}
    outputs = {
        'maps': (1, 48 + channels, 30, 40),
        'camera_pooled': (1, 64, 30, 40),
        'radar_pooled': (1, 20, 30, 40),
    }
    constants = {
        'begin': np.array([0]),
        'end': np.array([48]),
        'axis': np.array([1]),
        'distances': np.full((1, channels, 30, 40), math.log(DISTANCE), np.float32),
    }
    return write_graph(path, nodes, inputs, outputs, constants)

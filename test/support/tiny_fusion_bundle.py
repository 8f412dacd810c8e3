"""Little fusion networks: what the newest picture says, every box at the same distance.

A unit is encoded as the first channel of its grid. The head puts out the semantics of the newest
camera grid and ln(``DISTANCE``) everywhere.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper
from tiny_fusion import pooling_note
from tiny_graph import write_graph
from tiny_stages import file_entry, write_grid_bundle

DISTANCE = 6.0
CHANNELS = {'camera': 64, 'radar': 20}
CELLS = (30, 40)
UNIT = (1, 1, *CELLS)


def write_fusion_bundle(folder: Path, **changes: Any) -> Path:
    """Write the bundle of ``tiny_stages`` with fusion parts that fit."""
    parts = {'fuse': write_head(folder / 'fuse.onnx')}
    for modality, channels in CHANNELS.items():
        name = f'project_{modality}'
        parts[name] = write_project(folder / f'{name}.onnx', channels)
        for lag in (1, 2):
            name = f'change_{modality}_{lag}'
            parts[name] = write_change(folder / f'{name}.onnx')
    fusion: dict[str, Any] = {name: file_entry(path) for name, path in parts.items()}
    return write_grid_bundle(folder, fusion={'format': 2, **fusion, 'threshold': 0.99}, **changes)


def write_project(path: Path, channels: int) -> Path:
    nodes = [
        helper.make_node('Slice', ['grid', 'begin', 'end', 'axis'], ['unit']),
        helper.make_node('Identity', ['unit'], ['own']),
        helper.make_node('Concat', ['unit', 'unit'], ['twice'], axis=0),
        helper.make_node('Mul', ['twice', 'zero'], ['others']),
    ]
    constants = {
        'begin': np.array([0]),
        'end': np.array([1]),
        'axis': np.array([1]),
        'zero': np.float32(0.0),
    }
    outputs = {'unit': UNIT, 'own': UNIT, 'others': (2, 1, *CELLS)}
    return write_graph(
        path,
        nodes,
        {'grid': (1, channels, *CELLS)},
        outputs,
        constants=constants,
        metadata={'pooling': pooling_note(1)},
    )


def write_change(path: Path) -> Path:
    nodes = [
        helper.make_node('Sub', ['unit', 'earlier'], ['difference']),
        helper.make_node('Mul', ['difference', 'zero'], ['change']),
    ]
    inputs = {'unit': UNIT, 'earlier': UNIT}
    return write_graph(path, nodes, inputs, {'change': UNIT}, constants={'zero': np.float32(0.0)})


def write_head(path: Path, channels: int = 6) -> Path:
    """Write the head; ``channels`` other than 6 make maps of a wrong shape."""
    nodes = [
        helper.make_node('Slice', ['camera_newest', 'begin', 'end', 'axis'], ['semantics']),
        helper.make_node('Concat', ['semantics', 'distances'], ['maps'], axis=1),
    ]
    inputs: dict[str, tuple[int, ...]] = {}
    for modality, count in CHANNELS.items():
        inputs |= {f'{modality}_pooled': UNIT, f'{modality}_newest': (1, count, *CELLS)}
        inputs[f'{modality}_facts'] = (1, 3)
    constants = {
        'begin': np.array([0]),
        'end': np.array([48]),
        'axis': np.array([1]),
        'distances': np.full((1, channels, *CELLS), math.log(DISTANCE), np.float32),
    }
    outputs = {'maps': (1, 48 + channels, *CELLS)}
    return write_graph(path, nodes, inputs, outputs, constants=constants)

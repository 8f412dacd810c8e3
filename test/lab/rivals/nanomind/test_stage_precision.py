"""A stage is made in every precision, timed in turn, and kept in the one that pays."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from tiny_stages import write_graph

from mmedge_lab.rivals.nanomind.stage_precision import Candidate, Stage, best, candidates
from mmedge_ros.encoding.bundle.manifest import BundleFile

RNG = np.random.default_rng(3)


def stage_of(path: Path) -> Stage:
    fed = [{'x': RNG.normal(size=(1, 8, 20, 20)).astype(np.float32)} for _ in range(12)]
    return Stage(('camera', 'levels', 'small'), BundleFile(path, 64 * '0', None), fed)


def convolution(path: Path, groups: int = 1) -> Path:
    """A convolution over all channels, or over few of them at a time."""
    weights = RNG.normal(size=(8, 8 // groups, 3, 3)).astype(np.float32)
    node = helper.make_node(
        'Conv', ['x', 'w'], ['y'], name='conv', pads=[1, 1, 1, 1], group=groups
    )
    shape = (1, 8, 20, 20)
    return write_graph(path, [node], {'x': shape}, {'y': shape}, {'w': weights})


def test_a_convolution_becomes_whole_numbers_that_put_out_nearly_the_same(tmp_path: Path) -> None:
    measured = candidates(stage_of(convolution(tmp_path / 'stage.onnx')), tmp_path, 'cpu')
    found = {one.precision: one for one in measured}
    assert measured[0].precision == 'fp32'
    assert measured[0].error == 0.0
    assert 0.0 < found['int8'].error < 0.05
    assert 0.0 < found['fp16'].error < 0.01
    assert all(one.seconds > 0.0 for one in found.values())
    nodes = {node.op_type for node in onnx.load(found['int8'].path).graph.node}
    assert 'QLinearConv' in nodes


@pytest.mark.parametrize(
    ('fp16', 'int8', 'kept'),
    [(1.0, 0.85, 'int8'), (0.7, 0.85, 'fp16'), (1.0, 0.95, 'fp32'), (math.nan, math.nan, 'fp32')],
)
def test_what_is_a_tenth_faster_is_kept(fp16: float, int8: float, kept: str) -> None:
    nowhere = Path('stage.onnx')
    measured = [
        Candidate('fp32', nowhere, 1.0),
        Candidate('fp16', nowhere, fp16),
        Candidate('int8', nowhere, int8),
    ]
    assert best(measured).precision == kept

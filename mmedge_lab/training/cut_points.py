"""Where a classifier can be left: maps through which everything leads that is computed later.

Within a residual block the shortcut leads past every other map, so blocks are never cut inside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mmedge_lab.training import TrainingError
from mmedge_lab.training.classifier_graph import ClassifierGraph, onnx_library

# Where all but so little of the work is done, leaving saves nothing.
_LATEST = 0.98
# Cut points closer to each other than this share of the work count as one.
_FINEST = 1.0 / 500.0
_WEIGHTS_AT = {
    'Conv': 1, 'ConvTranspose': 1, 'ConvInteger': 1, 'QLinearConv': 3,
    'Gemm': 1, 'MatMul': 1, 'MatMulInteger': 1, 'QLinearMatMul': 3,
}  # fmt: skip


class CutPoint(NamedTuple):
    """A map (1, ``channels``, h, w) that alone leads on; ``share`` of the work lies before it.

    Work is the number of multiplications. ``node`` is the number of the node that makes it.
    """

    tensor: str
    channels: int
    share: float
    node: int


class _Work(NamedTuple):
    """A node that multiplies: its number, its multiplications, and channels of a convolution.

    ``groups`` is 0 for what is no convolution of a map, as within squeeze-and-excite.
    """

    node: int
    products: int
    groups: int
    reads: int
    makes: int


def cut_points(graph: ClassifierGraph) -> tuple[CutPoint, ...]:
    """Return where a classifier can be left, in the order of its work.

    Of neighbours without work between them (convolution, normalisation, activation, pooling) it is
    the last; none lies after the map was pooled to one cell, or inside of an inverted block.

    :raises TrainingError: if shapes are open, nothing is multiplied, or there is no such place
    """
    works = _works(graph)
    total = sum(work.products for work in works)
    if not total:
        raise TrainingError(f'{graph.place} multiplies nothing; it is no trained classifier')
    ends = [work.node for work in works]
    sums = [0, *itertools.accumulate(work.products for work in works)]
    inside = list(_inverted_blocks(works))
    points: dict[int, CutPoint] = {}
    for node, tensor in _separators(graph):
        share = sums[int(np.searchsorted(ends, node, side='right'))] / total
        shape = graph.shape(tensor)
        if shape is None or len(shape) != 4 or shape[2] * shape[3] <= 1:
            if share > 0.0:
                break  # pooled, or made a vector
            continue
        allowed = 0.0 < share <= _LATEST and not any(a <= node < b for a, b in inside)
        if allowed and _is_float(graph, tensor):
            points[round(share / _FINEST)] = CutPoint(tensor, shape[1], share, node)
    if not points:
        raise TrainingError(
            f'{graph.place} has no place where one feature map alone leads on, before it is '
            'pooled; a semantic memory needs a convolutional classifier, such as a ResNet, '
            'MobileNet or EfficientNet'
        )
    return tuple(points.values())


def evenly_spread(points: Sequence[CutPoint], taps: int) -> tuple[CutPoint, ...]:
    """Choose ``taps`` of the cut points, or all where there are fewer.

    Chosen are those whose stages are most alike: the least sum of the squares of their shares.
    """
    best: list[tuple[float, tuple[int, ...]]] = [
        (point.share**2, (number,)) for number, point in enumerate(points)
    ]
    for _ in range(1, min(taps, len(points))):
        unusable: tuple[float, tuple[int, ...]] = (math.inf, ())
        best = [
            min(
                (
                    (best[i][0] + (point.share - points[i].share) ** 2, (*best[i][1], number))
                    for i in range(number)
                ),
                default=unusable,
            )
            for number, point in enumerate(points)
        ]
    ends = (
        (cost + (1.0 - point.share) ** 2, chosen)
        for (cost, chosen), point in zip(best, points, strict=True)
    )
    return tuple(points[number] for number in min(ends)[1])


def _separators(graph: ClassifierGraph) -> Iterator[tuple[int, str]]:
    """Yield number of node and tensor of all single tensors through which everything leads."""
    of_picture = {graph.picture}
    last_read: dict[str, int] = {graph.logits: len(graph.nodes)}
    for number, node in enumerate(graph.nodes):
        if of_picture.intersection(node.input):
            of_picture.update(node.output)
            last_read.update((name, number) for name in node.input if name != graph.logits)
    alive: set[str] = {graph.picture}
    for number, node in enumerate(graph.nodes):
        if not of_picture.intersection(node.input):
            continue
        alive.update(name for name in node.output if name in last_read)
        alive -= {name for name in node.input if last_read.get(name) == number}
        if len(alive) == 1:
            yield number, next(iter(alive))


def _works(graph: ClassifierGraph) -> list[_Work]:
    """Return the nodes of a classifier that multiply."""
    works = []
    for number, node in enumerate(graph.nodes):
        place = _WEIGHTS_AT.get(node.op_type)
        if place is None:
            continue
        weights, made = graph.shape(node.input[place]), graph.shape(node.output[0])
        if weights is None or made is None or len(weights) < 2 or not all(made):
            raise TrainingError(
                f'{graph.place} has open shapes (at {node.op_type} {node.name[:80]!r}); export '
                'it with fixed ones, or simplify it (onnxsim)'
            )
        if 'Conv' not in node.op_type:
            is_transposed = any(a.name == 'transB' and a.i for a in node.attribute)
            inner = weights[-1] if is_transposed else weights[-2]
            works.append(_Work(number, math.prod(made) * inner, 0, inner, made[-1]))
            continue
        groups = next((a.i for a in node.attribute if a.name == 'group'), 1)
        # A transposed convolution has (in, out / groups, kernel), and is computed per input.
        per_cell = math.prod(weights[1:])
        cells = math.prod(made)
        if node.op_type == 'ConvTranspose':
            cells = math.prod(graph.shape(node.input[0]) or made)
        is_of_map = math.prod(made[2:]) > 1
        works.append(
            _Work(number, cells * per_cell, groups * is_of_map, weights[1] * groups, made[1])
        )
    return works


def _inverted_blocks(works: Sequence[_Work]) -> Iterator[tuple[int, int]]:
    """Yield the nodes (from, to) between which a block with a depthwise convolution lies.

    From it to the next dense convolution; where that one narrows the map, the block was widened
    before, and begins with the convolution that did so.
    """
    maps = [work for work in works if work.groups]
    for place, work in enumerate(maps):
        if work.groups == 1 or work.groups != work.reads:
            continue
        dense = next((other for other in maps[place + 1 :] if other.groups == 1), None)
        if dense is None:
            continue
        widened = place > 0 and dense.makes < dense.reads
        yield (maps[place - 1].node if widened else work.node), dense.node


def _is_float(graph: ClassifierGraph, tensor: str) -> bool:
    kinds = onnx_library().TensorProto
    return graph.types[tensor].element in (kinds.FLOAT, kinds.FLOAT16)

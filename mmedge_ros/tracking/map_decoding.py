"""From the maps of feature fusion to detections in pixels of the original picture.

Maps are (54, 30, 40) float32: 48 channels of semantics (see ``encoding.feature_grid``) and 6 of
ln(distance in m): channels 48..51 for the four cells of stride 8 in each grid cell (``sub`` as in
the semantics), 52 for stride 16, 53 for stride 32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding.detection_heads import Candidates, best_boxes
from mmedge_ros.encoding.feature_grid import (
    COLUMNS,
    GRID_CLASSES,
    ROWS,
    SEMANTIC_CHANNELS,
    STRIDES,
    VALUES,
    canvas_placement,
    cell_middles,
)

_CLASSES = len(GRID_CLASSES)
# Six slots of 8 channels: the four cells of stride 8 in a grid cell, stride 16, stride 32.
_SLOTS = SEMANTIC_CHANNELS // VALUES
_CELLS = ROWS * COLUMNS
# Nearer and farther than anything a drone's sensors see; keeps exp() from overflowing.
_LOG_DISTANCES = (math.log(0.2), math.log(1000.0))
# Any box is smaller than this many strides; beyond lies what only a broken network says.
_LARGEST_EDGE = 1e4
# x0, y0, x1, y1 lie l, t, r, b from the middle of the cell.
_SIGNS = np.array([-1.0, -1.0, 1.0, 1.0], np.float32)


class DecodingParameters(NamedTuple):
    """Which of the boxes in the maps are detections.

    ``threshold`` and ``iou_threshold`` in 0..1; ``labels`` are kept, () for all;
    ``distance_deviation`` is the relative standard deviation of a distance from the maps.
    """

    threshold: float
    iou_threshold: float = 0.45
    maximum_detections: int = 100
    labels: tuple[str, ...] = ()
    distance_deviation: float = 0.15


def decode_maps(
    maps: NDArray[np.float32], image_size: tuple[int, int], parameters: DecodingParameters
) -> tuple[Detection, ...]:
    """Return the detections, best first; each with the distance that its cell gives.

    :param maps: (54, 30, 40); values that are not finite make no detection
    :param image_size: width and height of the original picture
    """
    kept = np.array([not parameters.labels or n in parameters.labels for n in GRID_CLASSES])
    values = maps[:SEMANTIC_CHANNELS].reshape(_SLOTS, VALUES, _CELLS)
    with np.errstate(invalid='ignore', over='ignore'):
        # The kept classes decide first: few cells are left to look at.
        reached = (values[:, :_CLASSES][:, kept] >= _logit(parameters.threshold)).any(axis=1)
        slots, cells = np.nonzero(reached & _IS_READ)
        chosen = values[slots, :, cells]
        classes = np.where(kept, chosen[:, :_CLASSES], -np.inf).argmax(axis=1)
        logits = chosen[np.arange(len(chosen)), classes].astype(np.float64)
        edges = chosen[:, _CLASSES:]
        boxes = _MIDDLES[slots, cells] + _SIGNS * edges * _STRIDE_OF_SLOT[slots]
        good = np.isfinite(logits) & (np.abs(edges) < _LARGEST_EDGE).all(axis=1)
        good &= (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        scores = (1.0 / (1.0 + np.exp(-logits[good]))).astype(np.float32)
        boxes, classes = boxes[good], classes[good]
        order = best_boxes(Candidates(boxes, scores, classes), parameters.iou_threshold)
        boxes = canvas_placement(*image_size).to_picture(boxes[order]).tolist()
        logs = maps[SEMANTIC_CHANNELS:].reshape(_SLOTS, _CELLS)[slots, cells][good][order]
        distances = np.exp(np.clip(logs, *_LOG_DISTANCES)).tolist()
    best = zip(boxes, scores[order].tolist(), classes[order], distances, strict=True)
    detections = (
        Detection(Box(*box), score, GRID_CLASSES[label], far, far * parameters.distance_deviation)
        for box, score, label, far in best
        if box[2] > box[0] and box[3] > box[1]  # the rest lies outside the picture
    )
    return tuple(detections)[: parameters.maximum_detections]


def _logit(threshold: float) -> float:
    if threshold <= 0.0:
        return -math.inf
    return math.log(threshold) - math.log1p(-threshold) if threshold < 1.0 else math.inf


def _middles_of_slots() -> NDArray[np.float32]:
    """Middles (6, 1200, 4) of the cells in canvas px: x, y, x, y."""
    fine, middle, coarse = (cell_middles(stride) for stride in STRIDES)
    in_order = [fine[row::2, column::2] for row in (0, 1) for column in (0, 1)]
    in_order += [middle, coarse.repeat(2, axis=0).repeat(2, axis=1)]
    return np.tile(np.stack(in_order).reshape(_SLOTS, _CELLS, 2), 2)


def _read_cells() -> NDArray[np.bool_]:
    """Mark (6, 1200) what counts; of the repetitions of a coarse cell that is the first."""
    read = np.ones((_SLOTS, ROWS, COLUMNS), bool)
    read[-1, 1::2], read[-1, :, 1::2] = False, False
    return read.reshape(_SLOTS, _CELLS)


_STRIDE_OF_SLOT = np.array([[STRIDES[0]]] * 4 + [[STRIDES[1]], [STRIDES[2]]], np.float32)
_MIDDLES = _middles_of_slots()
_IS_READ = _read_cells()

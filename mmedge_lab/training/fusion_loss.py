"""The loss of fused maps: which cells stand for an object, what they say of it, how far it is.

Cells are given to objects by how well they do already (task-aligned assignment, Feng et al.,
TOOD, arXiv 2108.07755): of the cells inside a box the ten with the greatest score^0.5 * IoU^6
stand for it, and are taught a score that follows their IoU. Boxes learn by the complete IoU
(Zheng et al., arXiv 2005.03572), ranges by their logarithm.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from mmedge_lab.training.detector_training import cell_middles, cell_weights
from mmedge_lab.training.window_set import WindowBatch
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    COLUMNS,
    GRID_CLASSES,
    ROWS,
    SEMANTIC_CHANNELS,
    VALUES,
)

_CLASSES = len(GRID_CLASSES)
_SCORE_POWER, _IOU_POWER = 0.5, 6.0
_CELLS_PER_OBJECT = 10
# Smaller boxes are taken to be so large (px) when cells are looked for, or none would lie inside.
_SMALLEST_SIDE = 12.0
_CLASS_GAIN, _BOX_GAIN, _RANGE_GAIN = 0.5, 7.5, 1.0
_LEAST_QUALITY = 0.01
_TINY = 1e-9


class Cells(NamedTuple):
    """Maps taken apart, scale after scale, A = 6300 cells.

    ``logits`` (B, A, 4), ``boxes`` (B, A, 4) corners in canvas px, ``log_ranges`` (B, A).
    """

    logits: Any
    boxes: Any
    log_ranges: Any


class CellAssignment(NamedTuple):
    """For each cell the object it stands for: ``owner`` (B, A) its row, -1 for none.

    ``quality`` (B, A) is the score to be learned, 0 for those that stand for none.
    """

    owner: Any
    quality: Any


class FusionLoss:
    """The loss of maps (B, 54, 30, 40) against the truth of a batch."""

    def __init__(self, device: str = 'cpu') -> None:
        self._grid = cell_middles(CANVAS)
        grid = torch.from_numpy(self._grid).to(device)
        self._middles, self._strides = grid[:, :2], grid[:, 2:]

    def __call__(self, maps: Any, batch: WindowBatch) -> Any:
        """Return the loss, a scalar tensor."""
        device = maps.device
        cells = self.cells(maps.float())
        objects = torch.from_numpy(batch.objects).to(device)
        with torch.no_grad():
            given = self.assign(cells, objects)
        wanted = torch.zeros_like(cells.logits)
        place, cell = (given.owner >= 0).nonzero(as_tuple=True)
        rows = objects[given.owner[place, cell]]
        quality = given.quality[place, cell]
        wanted[place, cell, rows[:, 1].long()] = quality
        total = quality.sum().clamp(min=1.0)

        weights = cell_weights(batch.ignored, len(maps), self._grid, _CLASSES)
        # A cell that stands for an object to find learns it, whatever else is there.
        weight = torch.from_numpy(weights).to(device).maximum((wanted > 0.0).float())
        classes = functional.binary_cross_entropy_with_logits(
            cells.logits, wanted, weight, reduction='sum'
        )
        boxes = (1.0 - complete_iou(cells.boxes[place, cell], rows[:, 2:6])) * quality
        known = torch.isfinite(rows[:, 6])
        logs = torch.where(known, rows[:, 6], 1.0).clamp(min=0.2).log()
        ranges = (cells.log_ranges[place, cell] - logs).abs() * quality * known
        loss = _CLASS_GAIN * classes + _BOX_GAIN * boxes.sum() + _RANGE_GAIN * ranges.sum()
        return loss / total

    def cells(self, maps: Any) -> Cells:
        """Take maps apart."""
        semantics, ranges = maps.split((SEMANTIC_CHANNELS, SEMANTIC_CHANNELS // VALUES), dim=1)
        logits, edges = _by_cell(semantics, VALUES).split((_CLASSES, VALUES - _CLASSES), dim=-1)
        before, after = (edges * self._strides).chunk(2, dim=-1)
        boxes = torch.cat((self._middles - before, self._middles + after), dim=-1)
        return Cells(logits, boxes, _by_cell(ranges, 1)[..., 0])

    def assign(self, cells: Cells, objects: Any) -> CellAssignment:
        """Give cells to the objects (K, 7) of a batch; without gradients."""
        batch, count = cells.log_ranges.shape
        owner = torch.full((batch, count), -1, dtype=torch.long, device=objects.device)
        quality = torch.zeros((batch, count), device=objects.device)
        if not len(objects):
            return CellAssignment(owner, quality)
        claim, cell = self._inside(objects[:, 2:6]).nonzero(as_tuple=True)
        window, label = objects[claim, 0].long(), objects[claim, 1].long()
        scores = cells.logits[window, cell, label].sigmoid()
        overlaps = iou(cells.boxes[window, cell], objects[claim, 2:6])
        fits = scores.pow(_SCORE_POWER) * overlaps.pow(_IOU_POWER)
        best = _best_of_each(fits, claim, len(objects))
        claim, cell, window = claim[best], cell[best], window[best]
        fits, overlaps = fits[best], overlaps[best]
        # Of several objects a cell stands for the one it overlaps best, of equals for the last.
        spot = window * count + cell
        wins = overlaps >= _greatest(overlaps, spot, batch * count)[spot]
        owner.view(-1).scatter_reduce_(0, spot[wins], claim[wins], 'amax')
        holds = owner.view(-1)[spot] == claim
        claim, spot, fits, overlaps = claim[holds], spot[holds], fits[holds], overlaps[holds]
        most_fit = _greatest(fits, claim, len(objects))[claim]
        most_iou = _greatest(overlaps, claim, len(objects))[claim]
        # Whoever is given a cell is learned, however bad it still is.
        share = fits / most_fit.clamp(min=_TINY) * most_iou
        quality.view(-1)[spot] = share.clamp(min=_LEAST_QUALITY)
        return CellAssignment(owner, quality)

    def _inside(self, boxes: Any) -> Any:
        """Mark (K, A) the cells whose middle lies in a box."""
        middle, size = (boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]
        half = size.clamp(min=_SMALLEST_SIDE) / 2
        along = [
            (self._middles[:, axis] - middle[:, axis, None]).abs() < half[:, axis, None]
            for axis in (0, 1)
        ]
        return along[0] & along[1]


def iou(one: Any, two: Any) -> Any:
    """Return the intersection over union of boxes (..., 4); 0 for those without an area."""
    low = torch.maximum(one[..., :2], two[..., :2])
    high = torch.minimum(one[..., 2:], two[..., 2:])
    common = (high - low).clamp(min=0.0).prod(dim=-1)
    areas = [(box[..., 2:] - box[..., :2]).clamp(min=0.0).prod(dim=-1) for box in (one, two)]
    return common / (areas[0] + areas[1] - common).clamp(min=_TINY)


def complete_iou(made: Any, wanted: Any) -> Any:
    """Return the IoU (K,) less what boxes are apart in place and shape."""
    overlap = iou(made, wanted)
    low = torch.minimum(made[:, :2], wanted[:, :2])
    high = torch.maximum(made[:, 2:], wanted[:, 2:])
    diagonal = (high - low).square().sum(dim=1).clamp(min=_TINY)
    apart = (made[:, :2] + made[:, 2:] - wanted[:, :2] - wanted[:, 2:]).square().sum(dim=1) / 4
    angles = []
    for box in (made, wanted):
        width, height = (box[:, 2:] - box[:, :2]).clamp(min=_TINY).unbind(dim=1)
        angles.append(torch.atan(width / height))
    shape = 4.0 / math.pi**2 * (angles[1] - angles[0]).square()
    with torch.no_grad():
        weight = shape / (1.0 - overlap + shape).clamp(min=_TINY)
    return overlap - apart / diagonal - weight * shape


def _by_cell(channels: Any, values: int) -> Any:
    """Bring (B, 6 * values, 30, 40) to (B, A, values): stride 8, 16, then 32, row by row."""
    batch = channels.shape[0]
    fine, middle, coarse = channels.split((4 * values, values, values), dim=1)
    fine = fine.reshape(batch, 2, 2, values, ROWS, COLUMNS).permute(0, 4, 1, 5, 2, 3)
    # Each cell of stride 32 is there four times.
    scales = (fine, middle.permute(0, 2, 3, 1), coarse[:, :, ::2, ::2].permute(0, 2, 3, 1))
    return torch.cat([scale.reshape(batch, -1, values) for scale in scales], dim=1)


def _greatest(values: Any, groups: Any, count: int) -> Any:
    """Return the greatest value (count,) of each group, 0 for empty ones."""
    made = torch.zeros(count, dtype=values.dtype, device=values.device)
    return made.scatter_reduce(0, groups, values, 'amax')


def _best_of_each(values: Any, groups: Any, count: int) -> Any:
    """Mark the greatest few values (N,) of each group."""
    order = values.argsort(descending=True, stable=True)
    order = order[groups[order].argsort(stable=True)]
    sizes = torch.bincount(groups, minlength=count)
    first = sizes.cumsum(0) - sizes
    rank = torch.arange(len(values), device=values.device) - first[groups[order]]
    chosen = torch.zeros(len(values), dtype=torch.bool, device=values.device)
    chosen[order[rank < _CELLS_PER_OBJECT]] = True
    return chosen

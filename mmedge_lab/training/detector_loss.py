"""The loss of a detector, without the cells on objects that are too small or hidden to judge."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training.batches import Batch
from mmedge_ros.encoding.detection_heads import STRIDES
from mmedge_ros.encoding.ultralytics_network import detection_loss


class DetectorLoss:
    """ultralytics' loss, in which cells on ignored objects are not taught to be background.

    :param network: made by ``new_network``
    :param size: width and height of the pictures it is trained on
    """

    def __init__(self, network: Any, size: tuple[int, int], classes: int) -> None:
        self._size = size
        self._classes = classes
        self._grid = cell_middles(size)
        self._weights: Any = None
        self._loss = detection_loss(network, self._class_loss)

    def __call__(self, output: Any, batch: Batch) -> Any:
        """Return the loss of a batch, a scalar tensor, per picture."""
        import torch

        device = output['scores'].device
        count = len(batch.pictures)
        weights = cell_weights(batch.ignored, count, self._grid, self._classes)
        self._weights = torch.from_numpy(weights).to(device)
        targets = {
            'batch_idx': torch.from_numpy(batch.objects[:, 0].copy()),
            'cls': torch.from_numpy(batch.objects[:, 1:2].copy()),
            'bboxes': torch.from_numpy(_shares(batch.objects[:, 2:], self._size)),
        }
        return self._loss(output, targets)[0].sum() / count

    def _class_loss(self, logits: Any, targets: Any) -> Any:
        from torch.nn.functional import binary_cross_entropy_with_logits

        loss = binary_cross_entropy_with_logits(logits, targets, reduction='none')
        # A cell that an object to find was assigned to learns it, whatever else is there.
        return loss * self._weights.maximum((targets > 0.0).to(loss.dtype))


def cell_weights(
    ignored: NDArray[np.float32], count: int, grid: NDArray[np.float32], classes: int
) -> NDArray[np.float32]:
    """Return 0 for cells and classes of ignored objects and 1 else: (count, cells, classes).

    :param ignored: rows of picture, class, x0, y0, x1, y1 in px
    :param grid: rows of x, y, stride of each cell, see `cell_middles`
    """
    weights = np.ones((count, len(grid), classes), np.float32)
    x, y, half = grid[:, 0], grid[:, 1], grid[:, 2] / 2
    for picture, label, x0, y0, x1, y1 in ignored.tolist():
        # Half a cell more, or the smallest objects would lie between the middles of cells.
        inside = (x > x0 - half) & (x < x1 + half) & (y > y0 - half) & (y < y1 + half)
        weights[int(picture), inside, int(label)] = 0.0
    return weights


def cell_middles(size: tuple[int, int]) -> NDArray[np.float32]:
    """Return rows of x, y, stride for all cells, in the order the head puts them out."""
    parts = []
    for stride in STRIDES:
        y, x = np.mgrid[: size[1] // stride, : size[0] // stride]
        middles = [(axis.ravel() + 0.5) * stride for axis in (x, y)]
        parts.append(np.stack((*middles, np.full(x.size, stride)), axis=1))
    return np.concatenate(parts).astype(np.float32)


def _shares(boxes: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float32]:
    """Turn corners in px into centre and size as shares of the picture."""
    scale = np.array(size, np.float32)
    low, high = boxes[:, :2] / scale, boxes[:, 2:] / scale
    return np.concatenate(((low + high) / 2, high - low), axis=1)

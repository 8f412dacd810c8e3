"""Fits the learned channels of feature grids: PCA of one level, and what others know of it.

The largest level's features are brought to their principal components, whitened. Smaller levels
see the same pictures and learn by ridge regression to predict the same values from features of
their own. All of it follows from first and second moments, which one pass over the pictures
collects. Predictions in cells of the input are carried to cells of the canvas
(feature_grid), the same for all levels.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_ros.encoding.detection_heads import UltralyticsHead
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    CELL,
    COLUMNS,
    LEARNED_CHANNELS,
    ROWS,
    cell_middles,
    scale_shape,
)
from mmedge_ros.encoding.letterbox import Canvas, Letterbox
from mmedge_ros.sensing.camera.image import Picture

# Every so many-th picture is kept from the fit and judges it.
_HELD_OUT = 5
_RIDGE = 1e-3  # share of the mean variance of a feature
_SMALLEST_VARIANCE = 1e-6  # components below that share of the first hold noise only

Matrix = NDArray[np.float64]


class GridProjection(NamedTuple):
    """A 1x1 convolution to the learned channels: weight (16, C) and bias (16,), float32."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def empty(cls, channels: int) -> GridProjection:
        """Return the projection that puts out zeros, for networks not yet fitted."""
        return cls(
            np.zeros((LEARNED_CHANNELS, channels), np.float32),
            np.zeros(LEARNED_CHANNELS, np.float32),
        )


class LevelNetwork(NamedTuple):
    """A trained network, and the width and height of the input it is used with."""

    network: Any
    size: tuple[int, int]


@dataclass(frozen=True)
class ProjectionFit:
    """A projection, and the share of the reference's variance it explains on pictures kept out.

    It is 1 for the reference.
    """

    projection: GridProjection
    r2: float


def fit_projections(
    levels: Mapping[str, LevelNetwork], reference: str, pictures: Iterable[Picture]
) -> dict[str, ProjectionFit]:
    """Fit the projections of all levels so that their channels mean the same.

    The same pictures in the same order give the same weights.

    :param reference: the level whose principal components are the learned channels
    :param pictures: (H, W, 3) uint8 BGR; every fifth only judges the fit
    :raises TrainingError: if there are fewer than five pictures, or they all look the same
    """
    readers = {level: FeatureReader(*each) for level, each in levels.items()}
    fitted: Matrix | None = None
    judged: Matrix | None = None
    for number, picture in enumerate(pictures):
        ones = np.ones((1, np.prod(CANVAS) // CELL**2))
        parts = [reader.features(picture).astype(np.float64) for reader in readers.values()]
        rows = np.concatenate((ones, *parts))
        moments = rows @ rows.T
        if number % _HELD_OUT == _HELD_OUT - 1:
            judged = moments if judged is None else judged + moments
        else:
            fitted = moments if fitted is None else fitted + moments
    if fitted is None or judged is None:
        raise TrainingError(
            f'the learned channels need at least {_HELD_OUT} pictures to be fitted; give more'
        )
    places, begin = {}, 1
    for level, reader in readers.items():
        places[level] = np.arange(begin, begin + reader.channels)
        begin += reader.channels
    target = _principal_components(fitted, places[reference])
    fits = {}
    for level, own in places.items():
        weights = target if level == reference else _ridge(fitted, own, places[reference], target)
        r2 = _explained(judged, own, weights, places[reference], target)
        projection = GridProjection(
            weights[1:].T.astype(np.float32), weights[0].astype(np.float32)
        )
        fits[level] = ProjectionFit(projection, r2)
    return fits


class FeatureReader:
    """Reads a network's features at the places of the grid's cells."""

    def __init__(self, network: Any, size: tuple[int, int]) -> None:
        from mmedge_lab.training.networks.camera_level import feature_channels

        self._network = copy.deepcopy(network).float().eval()
        canvas = Canvas.in_input(CANVAS, size)
        self._letterbox = Letterbox(size, UltralyticsHead.style, np.float32, canvas)
        self._down, self._across = resampling(size)
        self.channels = feature_channels(network)

    def features(self, picture: Picture) -> NDArray[np.float32]:
        """Return the features (C, 1200) of a picture, row by row of the grid."""
        import torch

        from mmedge_lab.training.networks.camera_level import grid_features

        self._letterbox.fill(picture)
        device = next(self._network.parameters()).device
        blob = torch.from_numpy(np.asarray(self._letterbox.blob, np.float32)).to(device)
        with torch.no_grad():
            raw = self._network(blob)[1]
            features = grid_features(raw['feats'])[0].cpu().numpy()
        on_grid = self._down @ features @ self._across
        return np.asarray(on_grid.reshape(len(on_grid), -1), np.float32)


def _principal_components(moments: Matrix, own: NDArray[np.intp]) -> Matrix:
    """Return weights (1 + C, 16) of the whitened components, the row of constants first."""
    count = moments[0, 0]
    mean = moments[0, own] / count
    covariance = moments[np.ix_(own, own)] / count - np.outer(mean, mean)
    variances, axes = np.linalg.eigh(covariance)
    variances, axes = variances[::-1][:LEARNED_CHANNELS], axes[:, ::-1][:, :LEARNED_CHANNELS]
    if not np.isfinite(variances).all() or variances[0] <= 0.0:
        raise TrainingError('all pictures look the same to the network; take others to fit it')
    # An axis has no sign of its own: the same one is taken every time.
    largest = np.abs(axes).argmax(axis=0)
    axes = axes * np.sign(axes[largest, np.arange(axes.shape[1])])
    scale = np.sqrt(np.maximum(variances, _SMALLEST_VARIANCE * variances[0]))
    weights = axes / scale
    return np.concatenate((-(mean @ weights)[None], weights))


def _ridge(
    moments: Matrix, own: NDArray[np.intp], reference: NDArray[np.intp], target: Matrix
) -> Matrix:
    """Return weights (1 + C, 16) that predict the target's values from a level's own features."""
    rows, columns = np.r_[0, own], np.r_[0, reference]
    normal = moments[np.ix_(rows, rows)].copy()
    count, mean = moments[0, 0], moments[0, own] / moments[0, 0]
    variance = float(np.mean(np.diag(moments)[own] / count - mean**2))
    normal[np.arange(1, len(rows)), np.arange(1, len(rows))] += _RIDGE * count * variance
    normal[0, 0] += 1e-9 * count
    return np.asarray(np.linalg.solve(normal, moments[np.ix_(rows, columns)] @ target))


def _explained(
    moments: Matrix,
    own: NDArray[np.intp],
    weights: Matrix,
    reference: NDArray[np.intp],
    target: Matrix,
) -> float:
    """Return the share of the variance of all channels together that is explained."""
    rows, columns = np.r_[0, own], np.r_[0, reference]
    of_own = np.einsum('ac,ab,bc->c', weights, moments[np.ix_(rows, rows)], weights)
    shared = np.einsum('ac,ab,bc->c', weights, moments[np.ix_(rows, columns)], target)
    of_target = np.einsum('ac,ab,bc->c', target, moments[np.ix_(columns, columns)], target)
    error = of_target - 2.0 * shared + of_own
    mean = moments[0, columns] @ target / moments[0, 0]
    total = of_target - moments[0, 0] * mean**2
    return float(1.0 - error.sum() / max(total.sum(), 1e-12))


class Carried(NamedTuple):
    """How the predictions of one stride go from the input's cells to the canvas's.

    ``source`` (cells of the canvas,) is the input's cell, ``known`` whether there is one;
    ``offset`` (4, cells) and ``scale`` make l, t, r, b of the canvas's cell, in strides, from
    those of the input's.
    """

    source: NDArray[np.int64]
    known: NDArray[np.bool_]
    offset: NDArray[np.float32]
    scale: float


def carry(input_size: tuple[int, int], stride: int) -> Carried:
    """Give each cell of the input to the cell of the canvas whose middle is nearest to its own."""
    canvas = Canvas.in_input(CANVAS, input_size)
    columns, rows = (side // stride for side in input_size)
    y, x = np.mgrid[:rows, :columns]
    middles = (np.stack((x, y), axis=-1).reshape(-1, 2) + 0.5) * stride
    middles = (middles - np.array(canvas.middle)) / canvas.scale + np.array(CANVAS) / 2
    shape = scale_shape(stride)
    cells = np.clip(np.floor(middles / stride).astype(np.int64), 0, np.array(shape)[::-1] - 1)
    number = cells[:, 1] * shape[1] + cells[:, 0]
    source = np.full(shape[0] * shape[1], -1, np.int64)
    source[number[::-1]] = np.arange(len(number))[::-1]  # where two meet, the first stays
    known = source >= 0
    source = np.maximum(source, 0)
    own = cell_middles(stride).reshape(-1, 2)
    moved = ((own - middles[source]) / stride).T
    offset = np.concatenate((moved, -moved)).astype(np.float32) * known
    return Carried(source, known, offset, 1.0 / canvas.scale)


def resampling(input_size: tuple[int, int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return matrices (30, h) and (w, 40) that resample features at stride 16 onto the grid.

    Linear between the middles of cells, and constant beyond the outermost.
    """
    canvas = Canvas.in_input(CANVAS, input_size)
    matrices = []
    for axis, cells in ((1, ROWS), (0, COLUMNS)):
        count = input_size[axis] // CELL
        middles = (np.arange(cells) + 0.5) * CELL
        on_input = (middles - CANVAS[axis] / 2) * canvas.scale + canvas.middle[axis]
        place = np.clip(on_input / CELL - 0.5, 0.0, count - 1.0)
        below = np.minimum(np.floor(place).astype(int), max(count - 2, 0))
        matrix = np.zeros((cells, count), np.float32)
        matrix[np.arange(cells), below] = 1.0 - (place - below)
        if count > 1:
            matrix[np.arange(cells), below + 1] += (place - below).astype(np.float32)
        matrices.append(matrix)
    return matrices[0], matrices[1].T

"""Colours regressed onto the classes of a recogniser: the simplest embedding that is learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging.colour_features import colour_features
from mmedge_lab.judging.memory_rivals import Regression
from mmedge_lab.training.crop_set import CROP_MARGIN, learned, read_crops
from mmedge_lab.training.recogniser_labels import ATTRIBUTES, CLASSES, UNKNOWN
from mmedge_ros.data_types import FloatArray

_RIDGE = 1e-2


def colour_ridge(folder: Path) -> Regression:
    """Fit a ridge regression on the crops of scenes that a recogniser is taught with.

    :param folder: crops, as `mmedge lab train recogniser` keeps them
    :raises TrainingError: if there are none, or they cannot be read
    """
    crops = learned(read_crops(sorted(folder.glob('crops_*.npz'))))
    height, width = crops.crops.shape[1:3]
    rows, columns = (_inside(side) for side in (height, width))
    features = np.stack([colour_features(crop[rows, columns]) for crop in crops.crops])
    return _fitted(features, _targets(crops.facts))


def _inside(side: int) -> slice:
    """Return where a box lies in a crop, along one side."""
    margin = side * CROP_MARGIN / (1.0 + 2.0 * CROP_MARGIN)
    return slice(round(margin), round(side - margin))


def _targets(facts: NDArray[np.int8]) -> FloatArray:
    """Return 1 where a class or a value of an attribute is true, (N, D)."""
    sizes = [len(CLASSES), *map(len, ATTRIBUTES.values())]
    targets = np.zeros((len(facts), sum(sizes)))
    first = 0
    for known, size in zip(facts.T.astype(np.int64), sizes, strict=True):
        rows = np.flatnonzero(known != UNKNOWN)
        targets[rows, first + known[rows]] = 1.0
        first += size
    return targets


def _fitted(features: FloatArray, targets: FloatArray) -> Regression:
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-6

    def inputs(values: FloatArray) -> FloatArray:
        return np.column_stack([(values - mean) / deviation, np.ones(len(values))])

    known = inputs(features)
    squares = known.T @ known + _RIDGE * len(known) * np.eye(known.shape[1])
    weights = np.linalg.solve(squares, known.T @ targets)
    return lambda values: np.asarray(inputs(np.asarray(values, float)) @ weights, np.float32)

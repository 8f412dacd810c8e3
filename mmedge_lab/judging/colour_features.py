"""What a mean colour says of an object: the rival that learned embeddings must beat."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mmedge_lab.judging.mean_colour import colour_vector
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.detector import Image

_BANDS = 3


def colour_features(crop: Image) -> FloatArray:
    """Return shares of named colours, and mean colours with their squares, of three bands.

    Of an object (H, W, 3) BGR: (42,).
    """
    height, width = crop.shape[:2]
    middle = crop[:, width // 4 : max(3 * width // 4, width // 4 + 1)] / 255.0
    edges = [round(band * height / _BANDS) for band in range(_BANDS + 1)]
    means = [
        middle[first : max(end, first + 1)].mean(axis=(0, 1)) for first, end in pairwise(edges)
    ]
    colours = np.concatenate(means)
    return np.concatenate([colour_vector(crop).astype(float), colours, colours**2])

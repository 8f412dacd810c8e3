"""The simplest embedding: which share of the pixels of an object has which of eight colours.

It needs no training and no network, and is the rival of every embedding that does. It knows
colours of top, bottom and of the whole; nothing else.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.detector import Image
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.query import COLOURS, ParsedQuery

MANIFEST = 'mean-colour-1'
# Rows that show them, as shares of the height; heads, shoes and what is around are left out.
_BANDS = {'top': (0.15, 0.5), 'bottom': (0.5, 0.85), '': (0.15, 0.85)}
_PLACES = {'top': 0, 'bottom': 1, '': 2, 'paint': 2}
_SIDES = (0.25, 0.75)
LENGTH = len(_BANDS) * len(COLOURS)
# Hues (half degrees, as OpenCV has them) at which red, yellow or brown, green and blue end; what
# is beyond them is red again.
_HUES = np.array([9, 37, 82, 142])
_OF_HUES = np.array([COLOURS.index(c) for c in ('red', 'yellow', 'green', 'blue', 'red')])
_BLACK, _WHITE, _DULL = 51, 184, 46
_BRIGHT, _VIVID = 140, 128


def colour_vector(crop: Image) -> Vectors:
    """Return the shares of colours of an object (H, W, 3) BGR: (`LENGTH`,), of length 1."""
    height, width = crop.shape[:2]
    left, right = (round(side * width) for side in _SIDES)
    names = _names(crop[:, left : max(right, left + 1)])
    shares = []
    for begin, end in _BANDS.values():
        first = min(round(begin * height), height - 1)
        band = names[first : max(round(end * height), first + 1)]
        counts = np.bincount(band.reshape(-1), minlength=len(COLOURS))
        shares.append(counts / band.size)
    vector = np.concatenate(shares)
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


class MeanColourScorer:
    """Rates `colour_vector`s by the colours that are asked for; what has none is rated 0."""

    def scores(self, query: ParsedQuery, vectors: Vectors) -> FloatArray:
        wanted = [
            len(COLOURS) * _PLACES[part] + COLOURS.index(value)
            for part, value in query.subject.attributes
            if part in _PLACES and value in COLOURS
        ]
        if not wanted:
            return np.zeros(len(vectors))
        return np.asarray(vectors[:, wanted].mean(axis=1), float)


def _names(pixels: Image) -> NDArray[np.intp]:
    """Return for each pixel (H, W) the place of its colour in `COLOURS`."""
    hues = np.asarray(cv2.cvtColor(pixels, cv2.COLOR_BGR2HSV), np.int64)
    hue, saturation, value = hues[..., 0], hues[..., 1], hues[..., 2]
    names = _OF_HUES[np.searchsorted(_HUES, hue)]
    is_dull = (value < _BRIGHT) | (saturation < _VIVID)
    names[is_dull & (names == COLOURS.index('yellow'))] = COLOURS.index('brown')
    names[saturation < _DULL] = COLOURS.index('grey')
    names[(saturation < _DULL) & (value > _WHITE)] = COLOURS.index('white')
    names[value < _BLACK] = COLOURS.index('black')
    return names

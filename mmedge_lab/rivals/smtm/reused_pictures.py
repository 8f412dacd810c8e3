"""Reuse of what a picture has in common with the one before, as DeepMon and DeepCache do.

Both keep the maps of all layers and compute anew only what changed. Here the picture itself is put
together of old and new blocks and run as a whole, which shows the accuracy; the work that is
spared is taken to be the share of old blocks at every layer. That is an upper bound: at each
convolution what can be reused shrinks by the width of its kernel, and copying maps is not free.
"""

from __future__ import annotations

import time

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.smtm.methods import LookAnswer
from mmedge_ros.encoding.crops import CropForm, as_input
from mmedge_ros.encoding.tapped_classifier import TappedClassifier

_SMALLEST_BLOCK, _BLOCKS_A_SIDE = 8, 8
_BINS = 8
_CHANNELS = 3
_WHITE = 255.0


class ReusedBlocks:
    """Runs crops that hold blocks of the crop before.

    :param crops: (N, h, w, 3) of the rows that are looked at
    :param limit: of the distance of colour histograms (0..1), below which a block is reused; of
        ``moves`` the peak signal-to-noise ratio in dB, from which on it is
    :param moves: a block may come from elsewhere near by (DeepCache, arXiv 1712.01670); otherwise
        from its own place (DeepMon, MobiSys 2017)
    """

    # Of the maps of all layers, which are not kept here.
    bytes = 0

    def __init__(
        self,
        classifier: TappedClassifier,
        form: CropForm,
        crops: NDArray[np.uint8],
        limit: float,
        *,
        moves: bool = False,
    ) -> None:
        self._classifier, self._form, self._crops = classifier, form, crops
        self._limit, self._moves = limit, moves
        side = min(crops.shape[1:3])
        self._block = min(max(side // _BLOCKS_A_SIDE, _SMALLEST_BLOCK), side)
        self._last: NDArray[np.uint8] | None = None

    def look(self, row: int, track: int) -> LookAnswer:  # noqa: ARG002 the id does not matter
        """Put the crop together, and run it."""
        begun = time.thread_time()
        crop, reused = self._crops[row].copy(), 0.0
        if self._last is not None:
            reused = self._moved(crop) if self._moves else self._same(crop)
        self._last = crop
        seconds = time.thread_time() - begun
        shares, _ = self._classifier.classify(as_input(crop, self._form))
        return LookAnswer(int(shares.argmax()), self._classifier.network.blocks, seconds, reused)

    def _same(self, crop: NDArray[np.uint8]) -> float:
        """Take over the blocks whose colours are alike; return their share of the picture."""
        assert self._last is not None
        old, new = self._blocks(self._last), self._blocks(crop)
        one, other = _histograms(old), _histograms(new)
        with np.errstate(invalid='ignore'):
            apart = np.nan_to_num((one - other) ** 2 / (one + other)).sum(axis=2) / 2.0
        alike = apart / (self._block**2 * _CHANNELS) < self._limit
        new[alike] = old[alike]
        return self._share(crop, int(alike.sum()))

    def _moved(self, crop: NDArray[np.uint8]) -> float:
        """Take over the blocks that are found near by; return their share of the picture."""
        assert self._last is not None
        last, size, reach = self._last, self._block, self._block // 2
        wanted = _WHITE**2 / 10.0 ** (self._limit / 10.0) * size**2 * _CHANNELS
        blocks, found = self._blocks(crop), 0
        for row, column in np.ndindex(blocks.shape[:2]):
            top, left = max(row * size - reach, 0), max(column * size - reach, 0)
            window = last[top : (row + 1) * size + reach, left : (column + 1) * size + reach]
            block = np.ascontiguousarray(blocks[row, column])
            apart, _, (x, y), _ = cv2.minMaxLoc(cv2.matchTemplate(window, block, cv2.TM_SQDIFF))
            if apart <= wanted:
                blocks[row, column] = window[y : y + size, x : x + size]
                found += 1
        return self._share(crop, found)

    def _blocks(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return a view (R, C, size, size, 3) of the whole blocks of a picture."""
        size = self._block
        rows, columns = picture.shape[0] // size, picture.shape[1] // size
        down, right, _ = picture.strides
        return np.lib.stride_tricks.as_strided(
            picture,
            (rows, columns, size, size, _CHANNELS),
            (down * size, right * size, *picture.strides),
        )

    def _share(self, crop: NDArray[np.uint8], blocks: int) -> float:
        height, width = crop.shape[:2]
        return float(blocks * self._block**2 / (height * width))


def _histograms(blocks: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return how many values (R, C, 24) of each block and channel are in each of eight bins."""
    rows, columns = blocks.shape[:2]
    bins = (blocks.reshape(rows * columns, -1, _CHANNELS) >> 5).astype(np.intp)
    bins += np.arange(_CHANNELS) * _BINS
    bins += np.arange(rows * columns)[:, None, None] * _BINS * _CHANNELS
    counts = np.bincount(bins.reshape(-1), minlength=rows * columns * _BINS * _CHANNELS)
    return counts.reshape(rows, columns, -1).astype(float)

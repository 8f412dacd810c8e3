"""Runs crops through a classifier once, stage by stage, and keeps what every stage puts out.

Streams of thousands of looks are simulated from that: a look takes the time of the stages that
would have run, and of the lookups that were made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import OnShare
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.crops import CropForm, as_input
from mmedge_ros.encoding.tapped_classifier import TappedClassifier

_WARM_UP = 5
# What an object looks like at the end of a drift: darker, and in warmer light (shares of the
# values of blue, green and red).
_DRIFTED = np.array([0.35, 0.5, 0.6], np.float32)


class KeptOutputs(NamedTuple):
    """What K stages make of N crops, and what they take.

    ``vectors`` (N, D_l) are those of the L taps, ``heads`` (N, J) the logits of the head at each
    tap (None without one), ``shares`` (N, J) the probabilities at the end. ``stage_seconds`` (K,)
    and ``pooling_seconds`` (L,) are medians of the processor's time, the latter to make a vector
    of what a stage puts out.
    """

    vectors: tuple[FloatArray, ...]
    heads: tuple[FloatArray | None, ...]
    shares: FloatArray
    stage_seconds: FloatArray
    pooling_seconds: FloatArray

    @property
    def whole(self) -> NDArray[np.intp]:
        """What the whole classifier says (N,)."""
        said: NDArray[np.intp] = self.shares.argmax(axis=1)
        return said

    @property
    def whole_seconds(self) -> float:
        """What all stages take, one after another."""
        return float(self.stage_seconds.sum())


def run_crops(
    classifier: TappedClassifier,
    crops: NDArray[np.uint8],
    form: CropForm,
    on_share: OnShare = lambda _share: None,
) -> KeptOutputs:
    """Run crops (N, h, w, 3), as large as the input, through all stages.

    :raises EncodingError: if a stage fails
    """
    network, classes = classifier.network, len(classifier.classes)
    for _ in range(_WARM_UP):
        classifier.classify(as_input(crops[0], form))
    vectors: list[list[FloatArray]] = []
    heads: list[list[NDArray[np.float32]]] = []
    shares, seconds, pooling = [], [], []
    clock = time.thread_time
    for number, crop in enumerate(crops):
        blob = as_input(crop, form)
        taken, pooled, of_taps, of_heads = [], [], [], []
        begun = clock()
        state = network.start(blob)
        taken.append(clock() - begun)
        while state.block < network.blocks:
            begun = clock()
            vector = np.asarray(state.pooled, float)
            pooled.append(clock() - begun)
            of_taps.append(vector)
            of_heads.append(classifier.at_exit(state)[:classes])
            begun = clock()
            state = network.advance(state)
            taken.append(clock() - begun)
        vectors.append(of_taps)
        heads.append(of_heads)
        shares.append(classifier.outcome(state)[0])
        seconds.append(taken)
        pooling.append(pooled)
        on_share((number + 1) / len(crops))
    return KeptOutputs(
        tuple(np.stack(of_tap) for of_tap in zip(*vectors, strict=True)),
        tuple(_head(of_tap, classes) for of_tap in zip(*heads, strict=True)),
        np.stack(shares),
        np.median(np.array(seconds), axis=0),
        np.median(np.array(pooling), axis=0),
    )


def drifted(crops: NDArray[np.uint8], share: float) -> NDArray[np.uint8]:
    """Return crops in a light that has changed by so much (0..1) of the way to dusk."""
    factors = 1.0 + share * (_DRIFTED - 1.0)
    return np.asarray(np.rint(crops * factors), np.uint8)


def _head(rows: Sequence[NDArray[np.float32]], classes: int) -> FloatArray | None:
    return np.stack(rows).astype(float) if all(len(row) == classes for row in rows) else None

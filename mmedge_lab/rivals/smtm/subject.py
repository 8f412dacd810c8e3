"""What is benched: a classifier with taps, its semantic memory, and what it makes of crops.

The crops are those of the scenes that `mmedge lab train recogniser` keeps: thresholds are fitted
on some scenes, others judge. Each crop runs through all stages once. Streams of thousands of looks
are simulated from that: a look takes the time of the stages that would have run, and of the
lookups that were made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.training.crop_set import (
    CLASSES,
    CropSet,
    crop_files,
    cut_anew,
    fitted_on,
    judged,
    object_numbers,
    read_crops,
)
from mmedge_lab.training.semantic_centres import fit_exits, with_thresholds
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import SECTION, describe_classifier
from mmedge_ros.encoding.crops import CropForm, as_input
from mmedge_ros.encoding.semantic_memory import SemanticCentres, read_centres, whitened
from mmedge_ros.encoding.tapped_classifier import TappedClassifier, open_classifier

# In so many steps the light of a stream may change.
DRIFT_LEVELS = 5
_WARM_UP = 5
# What an object looks like at the end of a drift: darker, and in warmer light (shares of the
# values of blue, green and red).
_DRIFTED = np.array([0.35, 0.5, 0.6], np.float32)


class LabelledCrops(NamedTuple):
    """Crops (N, h, w, 3) uint8 BGR as large as the input of the classifier.

    ``labels`` (N,) are numbers of classes. Crops with one number in ``objects`` (N,) show one
    object, in the order of time.
    """

    crops: NDArray[np.uint8]
    labels: NDArray[np.int64]
    objects: NDArray[np.int64]


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


@dataclass(frozen=True)
class ClassifierOnCrops:
    """A classifier and its outputs.

    ``crops`` are the N crops that judge. ``kept`` holds what is made of them once for each level
    of the drift, one level after another; ``fitted`` is what is made of the crops that thresholds
    are fitted on, of classes ``fitted_labels``. ``centres`` is None without a semantic memory.
    """

    classifier: TappedClassifier
    form: CropForm
    crops: LabelledCrops
    kept: KeptOutputs
    fitted: KeptOutputs
    fitted_labels: NDArray[np.int64]
    centres: SemanticCentres | None

    def centres_of(self, eps: float) -> SemanticCentres | None:
        """Return the semantic centres with thresholds of another error."""
        if self.centres is None:
            return None
        held = self.fitted.vectors[: len(self.centres.centres)]
        labels, whole = self.fitted_labels.tolist(), self.fitted.whole.tolist()
        return with_thresholds(self.centres, held, labels, eps, whole)

    def heads_of(self, eps: float) -> tuple[float, ...]:
        """Return the thresholds of the heads for an error."""
        return fit_exits(self.fitted.heads, self.fitted.whole, self.fitted_labels, eps)

    def nearest(self, tap: int) -> NDArray[np.intp] | None:
        """Return the class (N,) with the nearest centre at a tap alone; None without centres."""
        if self.centres is None or tap >= len(self.centres.centres):
            return None
        origin, white = self.centres.origins[tap], self.centres.whitening[tap]
        vectors = self.kept.vectors[tap][: len(self.crops.labels)]
        known = whitened(self.centres.centres[tap], origin, white)
        said: NDArray[np.intp] = (whitened(vectors, origin, white) @ known.T).argmax(axis=1)
        return said


def open_classifier_on(bundle: Path, folder: Path, most: int = 0) -> ClassifierOnCrops:
    """Open the recogniser of a bundle and run the crops of a folder through it.

    :param most: so many crops of each class in each part; 0: all
    :raises EvaluationError: if the bundle has no recogniser, or the folder no crops for it
    :raises EncodingError: if the bundle cannot be used, or its semantic memory is of another
        classifier
    :raises TrainingError: if crops cannot be read
    """
    description = describe_classifier(bundle)
    if description is None or description.classes != CLASSES:
        raise EvaluationError(
            f'{bundle} has no {SECTION} of simulated objects; `mmedge lab train recogniser` makes '
            'one'
        )
    fitting, judging = read_bench_crops(folder, description.form, most)
    memorised = open_classifier(description)
    classifier, form = memorised.classifier, description.form
    fitted = run_crops(classifier, fitting.crops, form)
    if memorised.memory is not None:
        for layer in range(memorised.memory.layers):
            memorised.memory.checked(fitted.vectors[layer][0], layer)
    levels = [drifted(judging.crops, n / (DRIFT_LEVELS - 1)) for n in range(DRIFT_LEVELS)]
    kept = run_crops(classifier, np.concatenate(levels), form)
    centres = None if description.memory is None else read_centres(description.memory.verified())
    return ClassifierOnCrops(classifier, form, judging, kept, fitted, fitting.labels, centres)


def read_bench_crops(
    folder: Path, form: CropForm, most: int = 0
) -> tuple[LabelledCrops, LabelledCrops]:
    """Return the crops that thresholds are fitted on, and those that judge.

    :param most: so many of each class in each part; 0: all
    :raises EvaluationError: if they are of too few classes
    :raises TrainingError: if there are none, or they cannot be read
    """
    parts: tuple[list[LabelledCrops], list[LabelledCrops]] = ([], [])
    for path in crop_files(folder):
        # One file after another: all of them together are large.
        crops = read_crops([path])
        for part, chosen in zip(parts, (fitted_on(crops), judged(crops)), strict=True):
            part.append(_labelled(chosen, form))
    fitting, judging = (_of_each_class(part, most) for part in parts)
    classes = min(len(np.unique(part.labels)) for part in (fitting, judging))
    if classes < 2:
        raise EvaluationError(
            f'{folder} has too few crops, of {classes} classes, to fit thresholds on some and to '
            'judge on others; take more scenes'
        )
    return fitting, judging


def _labelled(crops: CropSet, form: CropForm) -> LabelledCrops:
    shape = (len(crops.crops), form.size[1], form.size[0], 3)
    shown = np.array(cut_anew(crops, form), np.uint8).reshape(shape)
    return LabelledCrops(shown, crops.facts[:, 0].astype(np.int64), object_numbers(crops))


def _of_each_class(parts: Sequence[LabelledCrops], most: int) -> LabelledCrops:
    """Join crops, at most so many of each class, the first ones, in their order; 0: all."""
    crops = LabelledCrops(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    if not most:
        return crops
    kept = [np.flatnonzero(crops.labels == label)[:most] for label in np.unique(crops.labels)]
    rows = np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.intp)
    return LabelledCrops._make(part[rows] for part in crops)


def run_crops(
    classifier: TappedClassifier, crops: NDArray[np.uint8], form: CropForm
) -> KeptOutputs:
    """Run crops (N, h, w, 3) through all stages.

    :raises EncodingError: if a stage fails
    """
    network, classes = classifier.network, len(classifier.classes)
    for _ in range(_WARM_UP):
        classifier.classify(as_input(crops[0], form))
    vectors, heads, shares, seconds, pooling = [], [], [], [], []
    clock = time.thread_time
    for crop in crops:
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
    return KeptOutputs(
        tuple(np.stack(of_tap) for of_tap in zip(*vectors, strict=True)),
        tuple(_head(of_tap, classes) for of_tap in zip(*heads, strict=True)),
        np.stack(shares),
        np.median(np.array(seconds), axis=0),
        np.median(np.array(pooling), axis=0),
    )


def drifted(crops: NDArray[np.uint8], share: float) -> NDArray[np.uint8]:
    """Return crops in a light that has changed by so much (0..1) of the way to dusk."""
    return np.asarray(np.rint(crops * (1.0 + share * (_DRIFTED - 1.0))), np.uint8)


def _head(rows: Sequence[NDArray[np.float32]], classes: int) -> FloatArray | None:
    return np.stack(rows).astype(float) if all(len(row) == classes for row in rows) else None

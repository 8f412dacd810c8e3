"""The crops that a recogniser is benched on, in the size of its input.

They come from the scenes that `mmedge lab train recogniser` keeps. Thresholds are fitted on some,
the others judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.training.crop_set import (
    CropSet,
    cut_anew,
    fitted_on,
    judged,
    object_numbers,
    read_crops,
)
from mmedge_lab.training.recogniser_labels import CLASSES
from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.detector import Image


class LabelledCrops(NamedTuple):
    """Crops (N, h, w, 3) uint8 BGR as large as the input of the classifier.

    ``labels`` (N,) are numbers of classes. Crops with one number in ``objects`` (N,) show one
    object, in the order of time.
    """

    crops: NDArray[np.uint8]
    labels: NDArray[np.int64]
    objects: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> LabelledCrops:
        """Return some of the crops."""
        return LabelledCrops._make(part[chosen] for part in self)


class BenchCrops(NamedTuple):
    """What thresholds are fitted on, and what judges."""

    fitted_on: LabelledCrops
    judged: LabelledCrops


def read_bench_crops(
    folder: Path, description: ClassifierDescription, most: int = 0
) -> BenchCrops:
    """Read the crops of scenes in a folder.

    :param most: so many of each class in each part; 0: all
    :raises EvaluationError: if there are none, or they are not of the recogniser's classes
    :raises TrainingError: if crops cannot be read
    """
    files = sorted(folder.glob('crops_*.npz'))
    if not files:
        raise EvaluationError(
            f'{folder} holds no crops; name the folder that `mmedge lab train recogniser --crops` '
            'keeps'
        )
    found = _of_scenes(files, description)
    for part in (found.fitted_on, found.judged):
        if len(np.unique(part.labels)) < 2:
            raise EvaluationError(
                f'{folder} has too few crops, of {len(np.unique(part.labels))} classes, to fit '
                'thresholds on some and to judge on others; take more scenes'
            )
    return found._replace(
        fitted_on=_of_each_class(found.fitted_on, most), judged=_of_each_class(found.judged, most)
    )


def _of_scenes(files: Sequence[Path], description: ClassifierDescription) -> BenchCrops:
    if description.classes != CLASSES:
        raise EvaluationError(
            f'{files[0].parent} has crops of simulated objects, but the classes are '
            f'{", ".join(description.classes[:3])}, ...; name a bundle of `mmedge lab train '
            'recogniser`'
        )
    fitted, judging = [], []
    for path in files:
        # One file after another: all of them together are large.
        crops = read_crops([path])
        fitted.append(_fitting(fitted_on(crops), description.form))
        judging.append(_fitting(judged(crops), description.form))
    return BenchCrops(_joined(fitted), _joined(judging))


def _fitting(crops: CropSet, form: CropForm) -> LabelledCrops:
    labels, objects = crops.facts[:, 0].tolist(), object_numbers(crops).tolist()
    return _crops(cut_anew(crops, form), labels, objects, form)


def _crops(
    shown: Sequence[Image], labels: Sequence[int], objects: Sequence[int], form: CropForm
) -> LabelledCrops:
    shape = (len(shown), form.size[1], form.size[0], 3)
    return LabelledCrops(
        np.array(shown, np.uint8).reshape(shape),
        np.array(labels, np.int64),
        np.array(objects, np.int64),
    )


def _joined(groups: Sequence[LabelledCrops]) -> LabelledCrops:
    return LabelledCrops(*(np.concatenate(part) for part in zip(*groups, strict=True)))


def _of_each_class(crops: LabelledCrops, most: int) -> LabelledCrops:
    """Return at most so many crops of each class, the first ones, in their order."""
    if not most:
        return crops
    kept = [np.flatnonzero(crops.labels == label)[:most] for label in np.unique(crops.labels)]
    return crops.rows(np.sort(np.concatenate(kept)))

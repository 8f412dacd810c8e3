"""The crops that a recogniser is benched on, in the size of its input.

They come from the scenes of `mmedge lab train recogniser`, or from a folder for each class.
Thresholds are fitted on some of them, the others judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.training.crop_set import (
    CROP_MARGIN,
    CROP_SIZE,
    CropSet,
    fitted_on,
    judged,
    read_crops,
)
from mmedge_lab.training.labelled_pictures import (
    HELD_OUT_EVERY,
    labelled_pictures,
    require_enough,
)
from mmedge_lab.training.recogniser_labels import CLASSES
from mmedge_lab.training.tap_figures import shown_part
from mmedge_ros.data_types import Box
from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.encoding.crops import CropForm, cut, resized
from mmedge_ros.encoding.detector import Image
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.video_reader import read_picture

_OBJECTS_OF_A_SCENE = 100_000


class LabelledCrops(NamedTuple):
    """Crops (N, h, w, 3) uint8 BGR as large as the input of the classifier.

    ``labels`` (N,) are numbers of classes. Crops with one number in ``objects`` (N,) show one
    object, in the order of time; of pictures, those of one class.
    """

    crops: NDArray[np.uint8]
    labels: NDArray[np.int64]
    objects: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> LabelledCrops:
        """Return some of the crops."""
        return LabelledCrops._make(part[chosen] for part in self)


class BenchCrops(NamedTuple):
    """What thresholds are fitted on, what judges, and how many pictures could not be read."""

    fitted_on: LabelledCrops
    judged: LabelledCrops
    unreadable: int = 0


def read_bench_crops(
    folder: Path, description: ClassifierDescription, most: int = 0
) -> BenchCrops:
    """Read the crops of a folder: those of scenes, else pictures in a folder for each class.

    :param most: so many of each class in each part; 0: all
    :raises EvaluationError: if there are none, or they are not of the recogniser's classes
    :raises TrainingError: if crops cannot be read, or a class has too few pictures
    """
    files = sorted(folder.glob('crops_*.npz'))
    if files:
        found = _of_scenes(files, description)
    elif folder.is_dir() and any(place.is_dir() for place in folder.iterdir()):
        found = _of_pictures(folder, description)
    else:
        raise EvaluationError(
            f'{folder} holds no crops; name the folder that `mmedge lab train recogniser --crops` '
            'keeps, or one with a folder of pictures for each class'
        )
    for part in (found.fitted_on, found.judged):
        if len(np.unique(part.labels)) < 2:
            raise EvaluationError(
                f'{folder} has too few crops, of {len(np.unique(part.labels))} classes, to fit '
                'thresholds on some and to judge on others; take more scenes or pictures'
            )
    return found._replace(
        fitted_on=_of_each_class(found.fitted_on, most), judged=_of_each_class(found.judged, most)
    )


def _of_scenes(files: Sequence[Path], description: ClassifierDescription) -> BenchCrops:
    if description.classes != CLASSES:
        raise EvaluationError(
            f'{files[0].parent} has crops of simulated objects, but the classes are '
            f'{", ".join(description.classes[:3])}, ...; name a folder with a folder of pictures '
            'for each class'
        )
    fitted, judging = [], []
    for path in files:
        # One file after another: all of them together are large.
        crops = read_crops([path])
        fitted.append(_fitting(fitted_on(crops), description.form))
        judging.append(_fitting(judged(crops), description.form))
    return BenchCrops(_joined(fitted), _joined(judging))


def cut_anew(crops: CropSet, form: CropForm) -> list[Image]:
    """Return kept crops as `crops.crop_input` would cut and resize them from the picture."""
    box = box_of_object()
    return [
        resized(np.ascontiguousarray(cut(crop, box, form.margin, form.square)), form.size)
        for crop in crops.crops
    ]


def box_of_object(larger: float = 0.0) -> Box:
    """Return where the object is in a kept crop, larger by a share of its size on each side."""
    width, height = CROP_SIZE
    share = (1.0 + 2.0 * larger) / (1.0 + 2.0 * CROP_MARGIN)
    x, y = width * (1.0 - share) / 2.0, height * (1.0 - share) / 2.0
    return Box(x, y, width - x, height - y)


def object_numbers(crops: CropSet) -> NDArray[np.int64]:
    """Return a number (N,) for each crop, the same for all of one object and no other."""
    numbers: NDArray[np.int64] = crops.scenes.astype(np.int64) * _OBJECTS_OF_A_SCENE
    return numbers + crops.objects


def _fitting(crops: CropSet, form: CropForm) -> LabelledCrops:
    labels, objects = crops.facts[:, 0].tolist(), object_numbers(crops).tolist()
    return _crops(cut_anew(crops, form), labels, objects, form)


def _of_pictures(folder: Path, description: ClassifierDescription) -> BenchCrops:
    classes, form = description.classes, description.form
    pictures = labelled_pictures(folder, len(classes), classes)
    unreadable, shown, labels, is_fitted_on = 0, [], [], []
    for label, (name, files) in enumerate(zip(classes, pictures.files, strict=True)):
        readable, first_error = 0, ''
        for file in files:
            try:
                picture = read_picture(file)
            except SensingError as err:
                unreadable += 1
                first_error = first_error or f'{file.name}: {err}'
                continue
            shown.append(resized(np.ascontiguousarray(shown_part(picture, form)), form.size))
            labels.append(label)
            # As `mmedge lab model tap` holds them out.
            is_fitted_on.append(readable % HELD_OUT_EVERY == HELD_OUT_EVERY - 1)
            readable += 1
        require_enough(name, readable, first_error)
    crops, fitted = _crops(shown, labels, labels, form), np.array(is_fitted_on, np.bool_)
    return BenchCrops(crops.rows(fitted), crops.rows(~fitted), unreadable)


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

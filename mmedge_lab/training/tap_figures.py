"""Runs labelled pictures through a classifier with taps, and says what its memory is worth."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.cut_points import CutPoint
from mmedge_lab.training.labelled_pictures import (
    HELD_OUT_EVERY,
    LabelledPictures,
    require_enough,
)
from mmedge_ros.data_types import Box, FloatArray
from mmedge_ros.encoding.classifier_description import SECTION, describe_classifier
from mmedge_ros.encoding.crops import CropForm, as_input, cut
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.tapped_classifier import (
    MemorisedClassifier,
    TappedClassifier,
    open_classifier,
)
from mmedge_ros.recurrence.hot_classes import HotClassParameters
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.video_reader import read_picture

_WARM_UP = 3
# All classes stay hot, however long ago they were met.
_ALL_ALIKE = HotClassParameters(window=100_000, coverage=1.0)


class StageFigures(NamedTuple):
    """A stage: its share of the work, median seconds of the processor, and what is left there.

    ``width`` is the number of values of its tap (0: the last stage, which has none); ``is_safe``
    says that its threshold is finite, ``left`` is the share of held-out pictures that leave there.
    """

    share: float
    seconds: float
    width: int
    is_safe: bool
    left: float


class TapFigures(NamedTuple):
    """What a bundle is worth on pictures that were held out, all classes alike.

    The thresholds were chosen on the same pictures, so the figures flatter a little.
    ``saved`` is the share of the processor's time, ``unreadable`` counts pictures that were passed
    over.
    """

    stages: tuple[StageFigures, ...]
    fitted: int
    held_out: int
    whole_accuracy: float
    accuracy: float
    saved: float
    memory_bytes: int
    unreadable: int


class Passed(NamedTuple):
    """Pictures that went through all stages: vectors (N, D_l) by tap, labels (N,), seconds."""

    vectors: list[FloatArray]
    labels: NDArray[np.int64]
    held_out: NDArray[np.bool_]
    right: NDArray[np.bool_]
    seconds: FloatArray
    files: tuple[Path, ...]
    unreadable: int


def pass_pictures(
    classifier: TappedClassifier, form: CropForm, pictures: LabelledPictures, report: Report
) -> Passed:
    """Run all pictures through all stages; every third of a class is held out.

    :raises TrainingError: if too few of a class can be read, or a tap puts out what is no number
    """
    for _ in range(_WARM_UP):
        _through(classifier, np.zeros((1, 3, form.size[1], form.size[0]), np.float32))
    rows: list[tuple[list[FloatArray], int, list[float]]] = []
    labels, held_out, files = [], [], []
    total, unreadable = sum(map(len, pictures.files)), 0
    for label, (name, of_class) in enumerate(zip(pictures.classes, pictures.files, strict=True)):
        readable, first_error = 0, ''
        for file in of_class:
            report((len(rows) + unreadable) / total, f'{len(rows)} of {total} pictures')
            try:
                blob = _input(read_picture(file), form)
            except SensingError as err:
                unreadable += 1
                first_error = first_error or f'{file.name}: {err}'
                continue
            rows.append(_through(classifier, blob))
            labels.append(label)
            files.append(file)
            held_out.append(readable % HELD_OUT_EVERY == HELD_OUT_EVERY - 1)
            readable += 1
        require_enough(name, readable, first_error)
    known = np.array(labels, np.int64)
    return Passed(
        [np.stack(of_tap) for of_tap in zip(*(row[0] for row in rows), strict=True)],
        known,
        np.array(held_out, np.bool_),
        np.array([row[1] for row in rows]) == known,
        np.array([row[2] for row in rows]),
        tuple(files),
        unreadable,
    )


def _require_numbers(tap: FloatArray, stage: int) -> None:
    if not np.isfinite(tap).all():
        raise TrainingError(
            f'stage {stage} puts out what is no number; look whether --mean and --deviation are '
            'those of the training, and export the model in float32'
        )


def _through(
    classifier: TappedClassifier, blob: NDArray[np.float32]
) -> tuple[list[FloatArray], int, list[float]]:
    """Run all stages; return the vectors of the taps, the class, and each stage's seconds."""
    taps, seconds = [], []
    begun = time.thread_time()
    state = classifier.network.start(blob)
    for _ in range(classifier.taps):
        seconds.append(time.thread_time() - begun)
        taps.append(np.asarray(state.pooled, float))
        _require_numbers(taps[-1], state.block)
        begun = time.thread_time()
        if state.block < classifier.taps:
            state = classifier.network.advance(state)
    probabilities, _ = classifier.outcome(state)
    seconds.append(time.thread_time() - begun)
    return taps, int(probabilities.argmax()), seconds


def judged(
    part: Path,
    form: CropForm,
    cuts: Sequence[CutPoint],
    passed: Passed,
    thresholds: FloatArray,
    report: Report,
) -> TapFigures:
    """Look at the held-out pictures, one class after another, with all of them hot.

    :param part: folder of the bundle, which is opened as a flight does
    :param thresholds: (L,) of the taps
    :raises EncodingError: if it cannot be opened or run
    """
    classifier = _opened(part)
    right, order = 0, list(_alternating(passed))
    for place, number in enumerate(order):
        report(place / len(order), f'judging {place} of {len(order)}')
        look = classifier.look(_input(read_picture(passed.files[number]), form))
        right += look.label == passed.labels[number]
    held = passed.held_out
    full = float(passed.seconds[held].sum(axis=1).mean())
    counts = classifier.counts
    return TapFigures(
        _stages(cuts, passed, thresholds, np.array([*counts.exits, counts.full]) / len(order)),
        int((~held).sum()),
        int(held.sum()),
        float(passed.right[held].mean()),
        right / len(order),
        1.0 - counts.seconds / len(order) / full if full > 0.0 else float('nan'),
        classifier.memory.bytes if classifier.memory is not None else 0,
        passed.unreadable,
    )


def _stages(
    cuts: Sequence[CutPoint], passed: Passed, thresholds: FloatArray, left: FloatArray
) -> tuple[StageFigures, ...]:
    shares = np.diff([0.0, *(point.share for point in cuts), 1.0])
    medians = np.median(passed.seconds, axis=0)
    widths = [*(point.channels for point in cuts), 0]
    is_safe = [*np.isfinite(thresholds).tolist(), False]
    return tuple(
        StageFigures(float(share), float(median), width, safe, float(leaving))
        for share, median, width, safe, leaving in zip(
            shares, medians, widths, is_safe, left, strict=True
        )
    )


def _opened(part: Path) -> MemorisedClassifier:
    """Open the bundle as a flight does, with each class met once."""
    description = describe_classifier(part)
    if description is None:
        raise TrainingError(f'{part} was written without its section {SECTION}')
    classifier = open_classifier(description, hot=_ALL_ALIKE)
    # The first run of a session takes longer.
    width, height = description.form.size
    for _ in range(_WARM_UP):
        classifier.classifier.classify(np.zeros((1, 3, height, width), np.float32))
    if classifier.memory is not None:
        for label in range(len(description.classes)):
            classifier.memory.hot.met(label)
    return classifier


def _alternating(passed: Passed) -> Iterator[int]:
    """Yield the numbers of the held-out pictures, a class after another."""
    numbers = np.flatnonzero(passed.held_out)
    by_class = [
        numbers[passed.labels[numbers] == label].tolist() for label in np.unique(passed.labels)
    ]
    for row in zip_longest(*by_class):
        yield from (number for number in row if number is not None)


def shown_part(picture: Image, form: CropForm) -> Image:
    """Return what a classifier is shown of a picture: all, or with ``square`` its middle."""
    if not form.square:
        return picture
    height, width = picture.shape[:2]
    side = min(height, width)
    left, top = (width - side) // 2, (height - side) // 2
    return cut(picture, Box(left, top, left + side, top + side))


def _input(picture: Image, form: CropForm) -> NDArray[np.float32]:
    return as_input(shown_part(picture, form), form)

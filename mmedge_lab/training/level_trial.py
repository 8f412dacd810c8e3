"""Tries a network of any origin as a level: what it knows, finds, and how long it takes.

It runs in a process of its own, so that one that hangs or crashes ends with a sentence.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator, as_jpeg
from mmedge_lab.training import TrainingError
from mmedge_lab.training.scene_pictures import truth_of
from mmedge_lab.worker_processes import WorkError, value_within
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import Detector, DetectorParameters
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.records.ground_truth import PERSON, TrueFrame
from mmedge_ros.report.detector_accuracy import judge_detector
from mmedge_ros.sensing.camera.image import Picture

# What networks call the classes that the rest of the package knows.
CLASS_WORDS = {
    PERSON: (PERSON, 'people', 'pedestrian', 'human', 'man', 'woman'),
    'cyclist': ('cyclist', 'bicyclist', 'rider'),
    'car': ('car',),
    'dog': ('dog',),
}
_SCENE, _SEED, _SECONDS = 'park_day_near', 77, 8.0
_INSTANTS = (1.0, 3.0, 5.0, 7.0)
# Opening and a first run; the process itself takes about 2 s to start.
LONGEST_TRIAL = 60.0
_LONGEST_PICTURE = 10.0
_TIMED_SECONDS = 10.0
_FEWEST, _ENOUGH = 5, 100
# A scene of two people in which more are seen at this score is decoded in the wrong way.
_SURE, _MOST_SEEN = 0.5, 30


class TrialPicture(NamedTuple):
    """A picture as JPEG, and what is in it."""

    jpeg: bytes
    truth: TrueFrame


class Trial(NamedTuple):
    """What is known of a network after its trial.

    ``labels`` are what its own class names are called in this package, where they differ;
    ``median`` and ``p95`` are seconds for decoding a picture and looking at it, with one thread;
    ``recall`` is the share of ``people`` in the pictures that it found.
    """

    input_size: tuple[int, int]
    classes: tuple[str, ...]
    labels: dict[str, str]
    median: float
    p95: float
    people: int
    recall: float


def trial_pictures() -> tuple[TrialPicture, ...]:
    """Simulate pictures of 640 x 480 px with people 75 to 135 px tall, by day; takes seconds."""
    camera = CameraSimulator(build_world(_SCENE, _SEED, _SECONDS))
    pictures = (camera.picture(instant) for instant in _INSTANTS)
    return tuple(TrialPicture(as_jpeg(p.image), truth_of(p.objects)) for p in pictures)


def try_network(
    name: str,
    network: Path,
    pictures: Sequence[TrialPicture],
    people: str = '',
    longest: float = LONGEST_TRIAL,
) -> Trial:
    """Open a network in a process of its own, run it on pictures and time it.

    :param name: of the level, for messages
    :param people: what it calls people, if that is no usual word
    :param longest: seconds for everything
    :raises TrainingError: if it cannot serve as a level
    """
    work = partial(trial_of, network, tuple(pictures), people)
    try:
        trial: Trial = value_within(name, longest, work, (EncodingError, TrainingError))
    except WorkError as err:
        raise TrainingError(
            f'level {name!r} cannot be made from {network.name}: {err}'
            + ('; use a smaller network or input' if 'not done after' in str(err) else '')
        ) from err
    return trial


def trial_of(network: Path, pictures: Sequence[TrialPicture], people: str = '') -> Trial:
    """Do the trial here and now; see `try_network`."""
    classes = OnnxDetector(network, DetectorParameters(labels=())).labels
    labels = class_labels(classes, people, network.name)
    detector = OnnxDetector(network, labels=labels)
    seen = [(_decoded(picture.jpeg), picture.truth) for picture in pictures]
    _require_plausible(detector, [image for image, _ in seen], network.name)
    found = judge_detector(detector, seen)
    times = _timed(detector, [picture.jpeg for picture in pictures])
    median, p95 = np.quantile(times, (0.5, 0.95))
    recall = 0.0 if math.isnan(found.recall_20px) else found.recall_20px
    return Trial(
        detector.input_size, classes, labels, float(median), float(p95), found.people, recall
    )


def class_labels(classes: Sequence[str], people: str, network: str) -> dict[str, str]:
    """Return what classes are called in this package, where their own names differ.

    :param people: what the network calls people, '' for a usual word
    :raises TrainingError: if none of its classes is a person
    """
    by_word = {word: label for label, words in CLASS_WORDS.items() for word in words}
    labels = {own: by_word.get(own.strip().lower(), own) for own in classes}
    if people in labels:
        labels[people] = PERSON
    if PERSON not in labels.values():
        missing = f'; it has no class {people!r} either' if people else ''
        raise TrainingError(
            f'none of the classes of {network} is a person ({_listed(classes)}){missing}. If one '
            'of them is, say --people CLASS; else use a network that was trained on people'
        )
    return {own: label for own, label in labels.items() if own != label}


def _listed(classes: Sequence[str], most: int = 8) -> str:
    rest = f' and {len(classes) - most} more' if len(classes) > most else ''
    return ', '.join(classes[:most]) + rest


def _decoded(jpeg: bytes) -> Picture:
    return np.asarray(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def _require_plausible(detector: Detector, images: Sequence[Picture], network: str) -> None:
    for image in images:
        begun = time.perf_counter()
        detections = detector.detect(image).detections
        seconds = time.perf_counter() - begun
        if seconds > _LONGEST_PICTURE:
            raise TrainingError(
                f'{network} takes {seconds:.0f} s for a picture on this machine; use a smaller '
                'network or input'
            )
        count = sum(detection.score >= _SURE for detection in detections)
        if count > _MOST_SEEN:
            raise TrainingError(
                f'{network} sees {count} people where two are: its boxes are not read as they '
                'are meant. Export it again as docs/models.md says'
            )


def _timed(detector: Detector, jpegs: Sequence[bytes]) -> list[float]:
    """Return seconds per picture: enough of them, or what fits into the time there is."""
    times: list[float] = []
    while len(times) < _ENOUGH and (sum(times) < _TIMED_SECONDS or len(times) < _FEWEST):
        begun = time.perf_counter()
        detector.detect(_decoded(jpegs[len(times) % len(jpegs)]))
        times.append(time.perf_counter() - begun)
    return times

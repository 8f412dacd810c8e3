"""Makes a bundle of networks that a user brings: each tried, timed, and described as ours are.

A network of any origin is tried in a process of its own, so that one that hangs or crashes ends
with a sentence.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from mmedge_lab.judging.detector_accuracy import judge_detector
from mmedge_lab.simulation.build import build_world
from mmedge_lab.simulation.camera import CameraSimulator, as_jpeg
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.bundle_files import file_entry, new_bundle, require_free, write_manifest
from mmedge_lab.training.scene_pictures import truth_of
from mmedge_lab.worker_processes import WorkError, value_within
from mmedge_ros import __version__
from mmedge_ros.adaptation.configuration_space import LEVELS_FROM_CHEAPEST, from_cheapest
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.bundle.weights import require_weights, sha256_of
from mmedge_ros.encoding.class_words import CLASS_WORDS, known_class
from mmedge_ros.encoding.detector import Detector, DetectorParameters
from mmedge_ros.encoding.onnx_detector import OnnxDetector
from mmedge_ros.encoding.ultralytics_export import exported_onnx
from mmedge_ros.monitoring.machine import machine_description
from mmedge_ros.replay.ground_truth import PERSON, TrueFrame
from mmedge_ros.sensing.camera.image import Picture

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_-]{0,31}')
# Reports call the only model of a modality so.
_RESERVED = 'any'
_MOST_LEVELS = 8
# The highest rate of a camera that the optimiser chooses, s.
_KEEPS_UP = 1.0 / 30.0
# Two times that differ by less are alike on a machine that does other things as well.
_ALIKE = 1.1
UNKNOWN = 'unknown'
# Bytes: networks of users do not go into a repository.
_LARGEST = 1 << 40
_SCENE, _SEED, _SECONDS = 'park_day_near', 77, 8.0
_INSTANTS = (1.0, 3.0, 5.0, 7.0)
# Opening and a first run; the process itself takes about 2 s to start.
LONGEST_TRIAL = 60.0
_LONGEST_PICTURE = 10.0
_TIMED_SECONDS = 10.0
_FEWEST, _ENOUGH = 5, 100
# A scene of two people in which more are seen at this score is decoded in the wrong way.
_SURE, _MOST_SEEN = 0.5, 30


@dataclass(frozen=True)
class UserLevels:
    """What to make a bundle of: weight files by level.

    ``size`` is the input of exported .pt weights; ``people`` what the networks call people;
    ``trusted`` whether code in .pt weights may be run.
    """

    weights: Mapping[str, Path]
    out: Path
    size: tuple[int, int]
    people: str = ''
    licence: str = UNKNOWN
    trusted: bool = False


def named_levels(texts: Sequence[str]) -> dict[str, Path]:
    """Read NAME=FILE texts.

    :raises TrainingError: for anything else, a name or a file that is given twice, or a file
        that is missing
    """
    levels: dict[str, Path] = {}
    for text in texts:
        name, equals, file = text.partition('=')
        if not equals or not _NAME.fullmatch(name) or name == _RESERVED or not file:
            raise TrainingError(
                f'--level {text!r} does not read NAME=FILE, such as small=yolo11n.onnx; a name '
                f'has up to 32 letters, digits, - and _, and is not {_RESERVED!r}'
            )
        if name in levels:
            raise TrainingError(f'level {name!r} is named twice; give each a name of its own')
        try:
            levels[name] = require_weights(Path(file).expanduser())
        except RuntimeError as err:
            raise TrainingError(f'--level {text}: {err}; give a full path') from err
    if not 1 <= len(levels) <= _MOST_LEVELS:
        raise TrainingError(
            f'{len(levels)} levels; name 1 to {_MOST_LEVELS} with --level NAME=FILE'
        )
    first: dict[str, str] = {}
    for name, path in levels.items():
        other = first.setdefault(sha256_of(path), name)
        if other != name:
            raise TrainingError(
                f'levels {other!r} and {name!r} are one and the same network ({path.name}); '
                'leave one out'
            )
    return levels


def build_bundle(
    request: UserLevels, pictures: Sequence[TrialPicture], report: Report
) -> dict[str, Trial]:
    """Try every network, and put a bundle of them in its place.

    :param pictures: to try them on
    :return: the trials, from the fastest level
    :raises TrainingError: if a network cannot serve as a level, or the bundle cannot be written
    :raises EncodingError: if .pt weights cannot be exported
    """
    require_free(request.out)
    with new_bundle(request.out, largest=_LARGEST) as part:
        trials = _tried(request, part, pictures, report)
        ordered = ascending(trials)
        write_manifest(part, request.out.name, _content(request, part, ordered))
        for level in ordered:
            _require_whole(part, level)
    return ordered


def _tried(
    request: UserLevels, part: Path, pictures: Sequence[TrialPicture], report: Report
) -> dict[str, Trial]:
    trials = {}
    for place, (level, weights) in enumerate(request.weights.items()):
        report(place / len(request.weights), f'trying {level}')
        network = weights
        if weights.suffix.lower() == '.pt':
            network = exported_onnx(weights, request.size, trusted=request.trusted)
        trials[level] = try_network(level, network, pictures, request.people)
        shutil.copyfile(network, part / f'{level}.onnx')
    return trials


def ascending(trials: Mapping[str, Trial]) -> dict[str, Trial]:
    """Order levels by their measured times.

    :raises TrainingError: if they are called small, medium and large, and are not
    """
    by_time = sorted(trials, key=lambda level: trials[level].median)
    usual = set(trials) <= set(LEVELS_FROM_CHEAPEST)
    ordered = from_cheapest(by_time)
    for level, above in pairwise(ordered if usual else ()):
        one, two = trials[level].median, trials[above].median
        if one > _ALIKE * two:
            raise TrainingError(
                f'{level!r} takes {1e3 * one:.1f} ms for a picture and {above!r} '
                f'{1e3 * two:.1f} ms: swap these names, or choose names other than '
                f'{", ".join(LEVELS_FROM_CHEAPEST)}, which stand for ascending cost'
            )
    return {level: trials[level] for level in ordered}


def default_level(trials: Mapping[str, Trial]) -> str:
    """Return the slowest level that keeps up with 30 pictures a second, else the fastest.

    :param trials: from the fastest
    """
    fast = [level for level, trial in trials.items() if trial.median <= _KEEPS_UP]
    return (fast or list(trials)[:1])[-1]


def _content(request: UserLevels, part: Path, trials: Mapping[str, Trial]) -> dict[str, Any]:
    levels = {}
    for level, trial in trials.items():
        entry = file_entry(part / f'{level}.onnx')
        times = {'median': round(1e3 * trial.median, 3), 'p95': round(1e3 * trial.p95, 3)}
        entry |= {'input_size': list(trial.input_size), 'encode_ms': times}
        if trial.labels:
            entry['labels'] = trial.labels
        levels[level] = entry
    known = {trial.labels.get(c, c) for trial in trials.values() for c in trial.classes}
    return {
        'camera': {'default': default_level(trials), 'levels': levels},
        'labels': [label for label in CLASS_WORDS if label in known],
        'timing': {'machine': machine_description(), 'threads': 1, 'picture': '640 x 480, JPEG'},
        'source': {
            level: {'file': path.name, 'sha256': sha256_of(path)}
            for level, path in request.weights.items()
        },
        'software': {'mmedge_ros': __version__},
        'licence': request.licence,
    }


def _require_whole(part: Path, level: str) -> None:
    """Open the copy as a flight does."""
    try:
        open_detector(part, level=level)
    except EncodingError as err:
        raise TrainingError(
            f'level {level!r} does not open once copied into the bundle ({err}); weights in a '
            'second file (.onnx.data) do not come along: export it as one file'
        ) from err


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
    labels = {own: known_class(own) or own for own in classes}
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

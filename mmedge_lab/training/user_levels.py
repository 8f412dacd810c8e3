"""Makes a bundle of networks that a user brings: each tried, timed, and described as ours are."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from mmedge_lab.judging.bundle_evaluation import EvaluationRequest, evaluate_bundle
from mmedge_lab.judging.flight_workers import OnProgress
from mmedge_lab.training import Report, TrainingError
from mmedge_lab.training.bundle_files import (
    file_entry,
    finish_bundle,
    require_free,
    write_manifest,
)
from mmedge_lab.training.checkpoint import new_folder, work_beside
from mmedge_lab.training.fitted_parts import enter_accuracy
from mmedge_lab.training.level_trial import CLASS_WORDS, Trial, TrialPicture, try_network
from mmedge_ros import __version__
from mmedge_ros.configuration.configuration_space import LEVELS_FROM_CHEAPEST, from_cheapest
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.model_bundle import open_detector
from mmedge_ros.encoding.bundle.weights import require_weights, sha256_of
from mmedge_ros.encoding.ultralytics_export import exported_onnx
from mmedge_ros.monitoring.machine import machine_description

_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_-]{0,31}')
# Reports call the only model of a modality so.
_RESERVED = 'any'
_MOST_LEVELS = 8
# The highest rate of a camera that the optimiser chooses, s.
_KEEPS_UP = 1.0 / 30.0
# Two times that differ by less are alike on a machine that does other things as well.
_ALIKE = 1.1
UNKNOWN = 'unknown'


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
    work = work_beside(request.out)
    try:
        part = new_folder(work)
        trials = _tried(request, part, pictures, report)
        ordered = ascending(trials)
        write_manifest(part, request.out.name, _content(request, part, ordered))
        for level in ordered:
            _require_whole(part, level)
        finish_bundle(part, request.out, math.inf)
    except OSError as err:
        raise TrainingError(
            f'{err.filename or work}: {err.strerror or err}; make room there and try again'
        ) from err
    finally:
        shutil.rmtree(work, ignore_errors=True)
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


def judge_levels(
    bundle: Path, request: EvaluationRequest, on_progress: OnProgress
) -> Mapping[str, Any]:
    """Judge every rate and level of a bundle, and enter what they are worth into its manifest.

    :raises EvaluationError: if a flight has no ground truth
    :raises ReplayError: if a flight cannot be used
    """
    report = evaluate_bundle(request, on_progress)
    enter_accuracy(bundle, report)
    return report

"""Writes the networks of a whole pipeline as a bundle, and says what it is made from."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros import __version__
from mmedge_ros.encoding.bundle.model_bundle import MANIFEST, REAL, SIMULATED
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.feature_grid import GRID_FORMAT
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.detector_bundle import LICENCE
from mmedge_ros.lab.training.fusion_settings import CAMERA_LEVELS, LEVELS, FusionSettings
from mmedge_ros.lab.training.picture_set import CLASSES
from mmedge_ros.lab.training.teacher import Teacher

LARGEST_BUNDLE = 25_000_000
_DEFAULT_LEVEL = 'large'


def file_entry(path: Path) -> dict[str, Any]:
    """Return what a manifest says of a weight file."""
    return {'weights': path.name, 'sha256': sha256_of(path), 'bytes': path.stat().st_size}


def encoder_entries(
    camera: Mapping[str, Sequence[Path]], radar: Mapping[str, Sequence[Path]]
) -> dict[str, Any]:
    """Return what a manifest says of the levels of both modalities."""
    return {
        'camera': {
            'default': _DEFAULT_LEVEL,
            'levels': {
                level: {
                    'stages': [file_entry(path) for path in camera[level]],
                    'input_size': list(CAMERA_LEVELS[level].size),
                }
                for level in LEVELS
            },
        },
        'radar': {
            'default': _DEFAULT_LEVEL,
            'levels': {
                level: {'stages': [file_entry(path) for path in radar[level]]} for level in LEVELS
            },
        },
        'grid': {'format': GRID_FORMAT},
        'labels': list(CLASSES),
    }


def write_manifest(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    """Write the manifest of a bundle.

    :raises OSError: if it cannot be written
    """
    manifest = {'name': name, **content}
    text = yaml.safe_dump(_plain(manifest), sort_keys=False, width=96, allow_unicode=True)
    (folder / MANIFEST).write_text(text, encoding='utf-8')


def finish_bundle(part: Path, folder: Path) -> int:
    """Move a written bundle to its place, where it comes into being whole.

    :return: its size in bytes
    :raises TrainingError: if it is larger than a bundle may be
    :raises OSError: if it cannot be moved
    """
    total = sum(path.stat().st_size for path in part.iterdir())
    if total > LARGEST_BUNDLE:
        raise TrainingError(
            f'the bundle in {part} has {total / 1e6:.1f} MB and may have '
            f'{LARGEST_BUNDLE / 1e6:.0f}; use narrower networks'
        )
    for path in part.iterdir():
        with path.open('rb') as file:
            os.fsync(file.fileno())
    if folder.is_dir():
        folder.rmdir()  # an empty one, or nothing is written
    part.rename(folder)
    return total


def new_folder(folder: Path) -> Path:
    """Make an empty folder, in place of what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def data_facts(
    flights: Iterable[Mapping[str, Any]], teacher: Teacher | None = None
) -> dict[str, Any]:
    """Return what a bundle was learned from, as its manifest says it.

    :param flights: see ``picture_set.describe_flight``
    """
    described = list(flights)
    scenarios = Counter(str(flight.get('scenario', flight['name'])) for flight in described)
    return {
        'flights': len(described),
        'scenarios': dict(sorted(scenarios.items())),
        'seeds': [flight['seed'] for flight in described if 'seed' in flight],
        'simulator': sorted({f['simulator'] for f in described if 'simulator' in f}),
        'truth': f'pseudo-labels of {teacher.name}' if teacher else 'ground truth',
    }


def common_entries(flights: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a manifest says of the pictures that were learned from."""
    simulated = all('simulator' in flight for flight in flights)
    return {'domain': SIMULATED if simulated else REAL}


def training_entries(
    settings: FusionSettings,
    detectors: Mapping[str, Mapping[str, Any]],
    data: Mapping[str, Any],
    course: Mapping[str, Any],
    versions: Mapping[str, str],
) -> dict[str, Any]:
    """Return the facts of a training and the licence of its result.

    :param course: how it went
    """
    return {
        'training': {
            'data': dict(data),
            'detectors': {name: dict(facts) for name, facts in detectors.items()},
            'settings': settings.plain(),
            'course': dict(course),
            'software': {'mmedge_ros': __version__, **versions},
        },
        'licence': LICENCE,
    }


def _plain(value: Any) -> Any:
    """Return plain values without figures that are not known."""
    if isinstance(value, Mapping):
        kept = {str(k): _plain(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if not (isinstance(v, float) and math.isnan(v))}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def identity_text(content: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal content."""
    return json.dumps(_plain(content), sort_keys=True)

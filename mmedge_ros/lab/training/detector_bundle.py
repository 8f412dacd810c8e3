"""Writes a trained detector as a bundle: the network, and a manifest that says what it is."""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros import __version__
from mmedge_ros.encoding.bundle.model_bundle import MANIFEST, SIMULATED
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.lab.evaluation.detector_accuracy import DetectorAccuracy
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.detector_settings import DetectorSettings
from mmedge_ros.lab.training.network_export import ExportCheck
from mmedge_ros.lab.training.picture_set import CLASSES, PictureSet

LICENCE = (
    'The weights were trained by this project from random numbers on pictures of its own '
    'simulator, and are given under Apache-2.0 as far as that is ours to say. The design of the '
    'network (YOLO26) and the program that trained and exported it are ultralytics, AGPL-3.0; '
    'it is not needed to run them. Its authors hold that networks trained with it fall under '
    'AGPL-3.0 as well: take advice before you ship them in a closed product.'
)
_DIGITS = 4


def require_free(folder: Path) -> None:
    """Make sure that a bundle may be put there.

    :raises TrainingError: if something is there already, or the place cannot be written
    """
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise TrainingError(
            f'{folder} exists already and was left as it is; remove it, or name another folder '
            'with --out'
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(folder.parent, os.W_OK):
        raise TrainingError(f'nothing can be written to {folder.parent}; name another --out')


def write_bundle(
    folder: Path,
    part: Path,
    network: Path,
    settings: DetectorSettings,
    content: Mapping[str, Any],
) -> None:
    """Put a network and its manifest into ``folder``, which comes into being whole.

    :param part: folder to write it in first, on the same disk
    :param content: further entries of the manifest
    :raises OSError: if it cannot be written
    """
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    weights = part / f'{settings.level}.onnx'
    shutil.copyfile(network, weights)
    level = {
        'weights': weights.name,
        'sha256': sha256_of(weights),
        'bytes': weights.stat().st_size,
        'input_size': list(settings.size),
    }
    manifest = {
        'name': folder.name,
        'domain': SIMULATED,
        'camera': {'default': settings.level, 'levels': {settings.level: level}},
        'labels': list(CLASSES),
        **content,
        'licence': LICENCE,
    }
    text = yaml.safe_dump(manifest, sort_keys=False, width=96, allow_unicode=True)
    (part / MANIFEST).write_text(text, encoding='utf-8')
    for path in part.iterdir():
        with path.open('rb') as file:
            os.fsync(file.fileno())
    if folder.is_dir():
        folder.rmdir()  # an empty one, or nothing is written
    part.rename(folder)


def training_facts(
    pictures: PictureSet, settings: DetectorSettings, versions: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a bundle was made from, as its manifest says it."""
    flights = pictures.flights
    scenarios = Counter(str(flight.get('scenario', flight['name'])) for flight in flights)
    return {
        'data': {
            'flights': len(flights),
            'scenarios': dict(sorted(scenarios.items())),
            'seeds': [flight['seed'] for flight in flights if 'seed' in flight],
            'simulator': sorted({f['simulator'] for f in flights if 'simulator' in f}),
            'pictures': len(pictures),
            'objects': pictures.objects,
            'sha256': pictures.digest,
        },
        'settings': settings.plain(),
        'software': {'mmedge_ros': __version__, **versions},
    }


def accuracy_facts(accuracy: DetectorAccuracy) -> dict[str, Any]:
    """Return the figures of one set that a manifest holds."""
    chosen = [s for s in accuracy.strata if s.group in ('size', 'light', 'distance', 'visibility')]
    strata: dict[str, dict[str, Any]] = {}
    for stratum in chosen:
        strata.setdefault(stratum.group, {})[stratum.name] = {
            'people': stratum.people,
            **_known({'ap50': stratum.ap50, 'recall': stratum.recall}),
        }
    return {
        'pictures': accuracy.pictures,
        'people': accuracy.people,
        **_known(
            {
                'map50': accuracy.map50,
                'map50_20px': accuracy.map50_20px,
                'recall_20px': accuracy.recall_20px,
                'precision_20px': accuracy.precision_20px,
            }
        ),
        **strata,
    }


def export_facts(check: ExportCheck) -> dict[str, Any]:
    """Return how far the exported network is from the trained one."""
    return {
        'pictures': check.pictures,
        'cells': check.cells,
        'largest_box_difference_px': check.box_px,
        'largest_score_difference': check.score,
    }


def _known(figures: Mapping[str, float]) -> dict[str, float]:
    return {k: round(v, _DIGITS) for k, v in figures.items() if math.isfinite(v)}

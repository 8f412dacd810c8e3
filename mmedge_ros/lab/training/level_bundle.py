"""Joins trained detectors into one bundle with a level for each way of running them.

Decision fusion needs no more than that; `mmedge train fusion` builds on the same checkpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from mmedge_ros.encoding.bundle.model_bundle import MANIFEST
from mmedge_ros.lab.training import Report, TrainingError, part_of
from mmedge_ros.lab.training.bundle_files import (
    LICENCE,
    domain_of,
    export_facts,
    file_entry,
    finish_bundle,
    new_folder,
    require_free,
    write_manifest,
)
from mmedge_ros.lab.training.checkpoint import save_checkpoint, work_beside
from mmedge_ros.lab.training.detector_evaluation import accuracy_by_set
from mmedge_ros.lab.training.detector_training import TrainedDetector, load_detector
from mmedge_ros.lab.training.epoch_training import prepare_torch
from mmedge_ros.lab.training.flight_pictures import flights_in, labelled_pictures, readable
from mmedge_ros.lab.training.fusion_settings import CAMERA_LEVELS, NARROW, WIDE
from mmedge_ros.lab.training.network_export import export_detector
from mmedge_ros.lab.training.picture_set import CLASSES, describe_flight
from mmedge_ros.sensing.camera.image import Picture

DEFAULT_LEVEL = 'medium'
# What a training of feature fusion begins with, beside the networks of the flight.
STARTING_POINTS = {NARROW: 'narrow.pt', WIDE: 'wide.pt'}
_CHECKED_PICTURES = 16


@dataclass(frozen=True)
class LevelRequest:
    """What is joined: checkpoints or bundles of `mmedge train detector --keep-work`.

    ``flights`` are those it was trained on: the export is checked on pictures of theirs.
    """

    flights: Path
    narrow: Path
    wide: Path
    out: Path
    judged: Mapping[str, Path] = field(default_factory=dict)


def join_levels(request: LevelRequest, report: Report) -> dict[str, dict[str, Any]]:
    """Export every level, check it, judge it, and put the bundle in its place.

    :param report: told the share done (0..1) and what is being done
    :return: the figures by level and set
    :raises TrainingError: when it cannot be done
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    require_free(request.out)
    flights = flights_in(request.flights)
    judged = {name: flights_in(folder) for name, folder in request.judged.items()}
    work = work_beside(request.out)
    try:
        part = new_folder(work)
        prepare_torch(work, 1)
        detectors = {
            NARROW: load_detector(request.narrow, NARROW),
            WIDE: load_detector(request.wide, WIDE),
        }
        shown = _pictures(flights)
        levels, exports, metrics = {}, {}, {}
        for place, (level, (detector, size)) in enumerate(CAMERA_LEVELS.items()):
            network = part / f'{level}.onnx'
            report(place / len(CAMERA_LEVELS), f'exporting {level}')
            check = export_detector(detectors[detector].network, network, size, shown)
            exports[level] = export_facts(check)
            levels[level] = {**file_entry(network), 'input_size': list(size)}
            rest = part_of(report, place / len(CAMERA_LEVELS), (place + 1) / len(CAMERA_LEVELS))
            metrics[level] = accuracy_by_set(network, judged, rest, f'judging {level}')
        for width, name in STARTING_POINTS.items():
            _save_starting_point(part / name, detectors[width])
        content = {
            'domain': domain_of([describe_flight(flight) for flight in flights]),
            'camera': {'default': DEFAULT_LEVEL, 'levels': levels},
            'labels': list(CLASSES),
            'training': {
                width: _facts(place, detectors[width])
                for width, place in ((NARROW, request.narrow), (WIDE, request.wide))
            },
            'export': exports,
            'metrics': metrics,
            'licence': LICENCE,
        }
        write_manifest(part, request.out.name, content)
        for left in part.iterdir():
            if left.is_dir():
                shutil.rmtree(left)
        finish_bundle(part, request.out)
    except OSError as err:
        raise TrainingError(
            f'{err.filename or work}: {err.strerror or err}; make room there and try again'
        ) from err
    return metrics


def _pictures(flights: tuple[Path, ...]) -> list[Picture]:
    """Return one picture of each of some flights."""
    step = max(1, len(flights) // _CHECKED_PICTURES)
    found: list[Picture] = []
    for flight in flights[::step]:
        found += [image for image, _ in islice(readable(labelled_pictures(flight, 60)), 1)]
    return found[:_CHECKED_PICTURES]


def _save_starting_point(path: Path, detector: TrainedDetector) -> None:
    """Keep what a later training needs, without the state of the optimizer."""
    content = {
        'settings': detector.settings,
        'epoch': detector.epoch,
        'average': {n: _halved(v) for n, v in detector.network.state_dict().items()},
    }
    save_checkpoint(path, content)


def _halved(value: Any) -> Any:
    return value.half() if value.dtype.is_floating_point else value


def _facts(place: Path, detector: TrainedDetector) -> dict[str, Any]:
    """Return what a detector's own manifest says of its training, where there is one."""
    try:
        manifest = yaml.safe_load((place / MANIFEST).read_bytes())
        return dict(manifest['training'])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return {'settings': detector.settings}

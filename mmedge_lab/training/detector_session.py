"""From a set of flights to a detector bundle, and from trained detectors to one with levels.

Decision fusion needs no more than that; `mmedge lab train fusion` builds on the same checkpoints.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import (
    LICENCE,
    data_facts,
    domain_of,
    export_facts,
    file_entry,
    finish_bundle,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_lab.training.checkpoint import (
    disk_error,
    new_folder,
    save_checkpoint,
    work_beside,
    work_folder,
)
from mmedge_lab.training.detector_evaluation import accuracy_by_set
from mmedge_lab.training.detector_training import (
    CHECKPOINT,
    DetectorSettings,
    DetectorTraining,
    TrainedDetector,
    load_detector,
)
from mmedge_lab.training.epoch_training import prepare_torch
from mmedge_lab.training.flight_pictures import flights_in, labelled_pictures, readable
from mmedge_lab.training.fusion_settings import CAMERA_LEVELS, NARROW, WIDE
from mmedge_lab.training.network_export import export_detector
from mmedge_lab.training.picture_set import (
    CLASSES,
    PictureSet,
    describe_flight,
    open_pictures,
    write_picture_set,
)
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import SIMULATED
from mmedge_ros.sensing.camera.image import Picture
from mmedge_ros.untrusted_files import load_shallow_yaml

# Shares of the progress shown: reading flights, training, judging.
_READ, _TRAINED = 0.05, 0.95
_CHECKED_PICTURES = 16
DEFAULT_LEVEL = 'medium'
# What a training of feature fusion begins with, beside the networks of the flight.
STARTING_POINTS = {NARROW: 'narrow.pt', WIDE: 'wide.pt'}


@dataclass(frozen=True)
class DetectorRequest:
    """The request for a training: sets of flights by folder, and where the bundle goes.

    ``flights`` may also be a folder of pictures with labels, see `open_pictures`; all are taken.
    ``judged`` names the sets the result is judged on, such as validation and test. The work
    folder beside the bundle holds pictures and checkpoints; it is removed at the end unless
    ``keep_work``. ``begin_with`` is the checkpoint of a detector of the same width.
    """

    flights: Path
    out: Path
    judged: Mapping[str, Path] = field(default_factory=dict)
    settings: DetectorSettings = field(default_factory=DetectorSettings)
    resume: bool = False
    keep_work: bool = False
    begin_with: Path | None = None

    @property
    def work(self) -> Path:
        """The work folder."""
        return work_beside(self.out)


def train_detector(request: DetectorRequest, report: Report) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    try:
        require_free(request.out)
        pictures = open_pictures(request.flights)
        flights = () if pictures else flights_in(request.flights)
        judged = {name: flights_in(folder) for name, folder in request.judged.items()}
        with work_folder(request.work, CHECKPOINT, request.resume) as work:
            prepare_torch(work, request.settings.threads)
            pictures = pictures or write_picture_set(
                flights,
                work / 'pictures',
                request.settings.pictures,
                lambda share: report(_READ * share, 'reading flights'),
            )
            start = None
            if request.begin_with:
                start = load_detector(request.begin_with, request.settings.width)
                settings = replace(request.settings, begun_with=start.digest)
                request = replace(request, settings=settings)
            training = DetectorTraining(pictures, request.settings, work, start)
            training.run(part_of(report, _READ, _TRAINED))
            metrics = _finish(request, training, pictures, judged, report)
        if not request.keep_work:
            shutil.rmtree(request.work, ignore_errors=True)
        return metrics
    except OSError as err:
        raise disk_error(request.work, CHECKPOINT, err) from err


def _finish(
    request: DetectorRequest,
    training: DetectorTraining,
    pictures: PictureSet,
    judged: Mapping[str, tuple[Path, ...]],
    report: Report,
) -> dict[str, Any]:
    report(_TRAINED, 'exporting')
    network = request.work / 'network.onnx'
    check = export_detector(training.network, network, request.settings.size, _some(pictures))
    metrics = accuracy_by_set(network, judged, part_of(report, _TRAINED, 1.0))
    content = {
        'training': training_facts(pictures, request.settings, software_facts(training.device)),
        'export': export_facts(check),
        'metrics': metrics,
    }
    write_bundle(request.out, request.work / 'bundle', network, request.settings, content)
    return metrics


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
    new_folder(part)
    weights = part / f'{settings.level}.onnx'
    shutil.copyfile(network, weights)
    level = {**file_entry(weights), 'input_size': list(settings.size)}
    manifest = {
        'domain': SIMULATED,
        'camera': {'default': settings.level, 'levels': {settings.level: level}},
        'labels': list(CLASSES),
        **content,
        'licence': LICENCE,
    }
    write_manifest(part, folder.name, manifest)
    finish_bundle(part, folder)


def training_facts(
    pictures: PictureSet, settings: DetectorSettings, software: Mapping[str, str]
) -> dict[str, Any]:
    """Return a manifest's description of the training."""
    return {
        'data': {
            **data_facts(pictures.flights),
            'pictures': len(pictures),
            'objects': pictures.objects,
            'sha256': pictures.digest,
        },
        'settings': settings.plain(),
        'software': dict(software),
    }


@dataclass(frozen=True)
class LevelRequest:
    """What is joined: checkpoints or bundles of `mmedge lab train detector --keep-work`.

    ``flights`` are those it was trained on: the export is checked on pictures of theirs.
    """

    flights: Path
    narrow: Path
    wide: Path
    out: Path
    judged: Mapping[str, Path] = field(default_factory=dict)


def join_levels(request: LevelRequest, report: Report) -> dict[str, dict[str, Any]]:
    """Export every level, check it, judge it, and put the bundle in its place.

    :return: the figures by level and set
    :raises TrainingError: when it cannot be done
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    require_free(request.out)
    described, shown = _described_pictures(request.flights)
    judged = {name: flights_in(folder) for name, folder in request.judged.items()}
    work = work_beside(request.out)
    try:
        part = new_folder(work)
        prepare_torch(work, 1)
        detectors = {
            NARROW: load_detector(request.narrow, NARROW),
            WIDE: load_detector(request.wide, WIDE),
        }
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
            'domain': domain_of(described),
            'camera': {'default': DEFAULT_LEVEL, 'levels': levels},
            'labels': list(CLASSES),
            'training': {
                width: {**_facts(place, detectors[width]), 'sha256': detectors[width].digest}
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


def _described_pictures(folder: Path) -> tuple[list[dict[str, Any]], list[Picture]]:
    """Describe flights or a set of pictures, and return some of the pictures."""
    pictures = open_pictures(folder)
    if pictures is not None:
        return list(pictures.flights), _some(pictures)
    flights = flights_in(folder)
    step = max(1, len(flights) // _CHECKED_PICTURES)
    shown: list[Picture] = []
    for flight in flights[::step]:
        shown += [image for image, _ in islice(readable(labelled_pictures(flight, 60)), 1)]
    return [describe_flight(flight) for flight in flights], shown[:_CHECKED_PICTURES]


def _some(pictures: PictureSet) -> list[Picture]:
    step = max(1, len(pictures) // _CHECKED_PICTURES)
    chosen = range(0, len(pictures), step)[:_CHECKED_PICTURES]
    return [pictures.load(number).image for number in chosen]


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
    """Return the training's facts in a detector's own manifest, where there is one."""
    try:
        manifest = load_shallow_yaml((place / MANIFEST).read_bytes())
        return dict(manifest['training'])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return {'settings': detector.settings}

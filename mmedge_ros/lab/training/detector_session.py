"""From a set of flights to a detector bundle, in steps that can be cut short and taken up."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.bundle.model_bundle import SIMULATED
from mmedge_ros.lab.training import Report, part_of
from mmedge_ros.lab.training.bundle_files import (
    LICENCE,
    data_facts,
    export_facts,
    file_entry,
    finish_bundle,
    new_folder,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_ros.lab.training.checkpoint import disk_error, work_beside, work_folder
from mmedge_ros.lab.training.detector_evaluation import accuracy_by_set
from mmedge_ros.lab.training.detector_training import (
    CHECKPOINT,
    DetectorSettings,
    DetectorTraining,
)
from mmedge_ros.lab.training.epoch_training import prepare_torch
from mmedge_ros.lab.training.flight_pictures import flights_in
from mmedge_ros.lab.training.network_export import export_detector
from mmedge_ros.lab.training.picture_set import CLASSES, PictureSet, write_picture_set

# Shares of the progress shown: reading flights, training, judging.
_READ, _TRAINED = 0.05, 0.95
_CHECKED_PICTURES = 16


@dataclass(frozen=True)
class DetectorRequest:
    """A training as asked for: sets of flights by folder, and where the bundle goes.

    ``judged`` names the sets the result is judged on, such as validation and test. The work
    folder beside the bundle holds pictures and checkpoints; it is removed at the end unless
    ``keep_work``.
    """

    flights: Path
    out: Path
    judged: Mapping[str, Path] = field(default_factory=dict)
    settings: DetectorSettings = field(default_factory=DetectorSettings)
    resume: bool = False
    keep_work: bool = False

    @property
    def work(self) -> Path:
        """The work folder."""
        return work_beside(self.out)


def train_detector(request: DetectorRequest, report: Report) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :param report: told the share done (0..1) and what is being done
    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    try:
        require_free(request.out)
        flights = flights_in(request.flights)
        judged = {name: flights_in(folder) for name, folder in request.judged.items()}
        with work_folder(request.work, CHECKPOINT, request.resume) as work:
            prepare_torch(work, request.settings.threads)
            pictures = write_picture_set(
                flights,
                work / 'pictures',
                request.settings.pictures,
                lambda share: report(_READ * share, 'reading flights'),
            )
            training = DetectorTraining(pictures, request.settings, work)
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
    step = max(1, len(pictures) // _CHECKED_PICTURES)
    shown = [pictures.load(n).image for n in range(0, len(pictures), step)][:_CHECKED_PICTURES]
    check = export_detector(training.network, network, request.settings.size, shown)
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

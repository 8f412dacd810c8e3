"""From a set of flights to a detector bundle, in steps that can be cut short and taken up."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmedge_ros.lab.training.detector_bundle import (
    accuracy_facts,
    export_facts,
    require_free,
    training_facts,
    write_bundle,
)
from mmedge_ros.lab.training.detector_evaluation import evaluate_detector
from mmedge_ros.lab.training.detector_settings import DetectorSettings
from mmedge_ros.lab.training.detector_training import CHECKPOINT, DetectorTraining, prepare_torch
from mmedge_ros.lab.training.flight_pictures import flights_in
from mmedge_ros.lab.training.network_export import export_detector
from mmedge_ros.lab.training.picture_set import PictureSet, write_picture_set
from mmedge_ros.lab.training.work_folder import disk_error, work_beside, work_folder

# Shares of the progress shown: reading flights, training, judging.
_READ, _TRAINED = 0.05, 0.95
_CHECKED_PICTURES = 16

Report = Callable[[float, str], None]


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
            training.run(lambda s, words: report(_READ + (_TRAINED - _READ) * s, words))
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
    metrics: dict[str, Any] = {}
    for place, (name, flights) in enumerate(judged.items()):

        def told(share: float, done: int = place, what: str = name) -> None:
            whole = (done + share) / len(judged)
            report(_TRAINED + (1.0 - _TRAINED) * whole, f'judging on {what}')

        metrics[name] = accuracy_facts(evaluate_detector(network, flights, on_progress=told))
    content = {
        'training': training_facts(pictures, request.settings, library_versions(training.device)),
        'export': export_facts(check),
        'metrics': metrics,
    }
    write_bundle(request.out, request.work / 'bundle', network, request.settings, content)
    return metrics


def library_versions(device: str) -> dict[str, str]:
    """Return the versions of what trains and exports, and the kind of device it ran on."""
    import onnx
    import torch

    from mmedge_ros.encoding.ultralytics_network import ultralytics_version

    return {
        'torch': str(torch.__version__),
        'ultralytics': ultralytics_version(),
        'onnx': str(onnx.__version__),
        'device': device,
    }

"""From trained detectors and a set of flights to a bundle of the whole pipeline.

Steps that can be cut short and taken up: encoders of all levels and what they make of the
flights (the *features*, see shared_features), the fusion network, the export.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmedge_ros.lab.training.detector_bundle import require_free
from mmedge_ros.lab.training.detector_training import prepare_torch
from mmedge_ros.lab.training.feature_cache import require_truth
from mmedge_ros.lab.training.flight_pictures import flights_in
from mmedge_ros.lab.training.fusion_settings import NARROW, WIDE, FusionSettings
from mmedge_ros.lab.training.shared_features import Features, FeaturesRequest, prepare_features
from mmedge_ros.lab.training.teacher import Teacher
from mmedge_ros.lab.training.trained_detectors import TrainedDetector, checkpoint_of, load_detector
from mmedge_ros.lab.training.window_set import Configuration, WindowSet
from mmedge_ros.lab.training.work_folder import disk_error, work_beside, work_folder

CHECKPOINT = 'fusion.pt'
VALIDATION = 'validation'
# Shares of the progress shown.
_PREPARED, _TRAINED = 0.45, 0.95
_ROOM = '15 GB'

Report = Callable[[float, str], None]


@dataclass(frozen=True)
class FusionRequest:
    """A training as asked for: flights and detectors by folder, and where the bundle goes.

    ``judged`` names the sets the result is judged on; the one named validation also chooses the
    best epoch and the threshold. ``features`` is a folder that keeps what encoders make of
    flights (about 130 MB per flight of 8 s) for other trainings; without it that lies in the
    work folder beside the bundle, which is removed at the end unless ``keep_work``.
    ``teacher`` is a detector that stands in for the ground truth.
    """

    flights: Path
    narrow: Path
    wide: Path
    out: Path
    judged: Mapping[str, Path] = field(default_factory=dict)
    settings: FusionSettings = field(default_factory=FusionSettings)
    features: Path | None = None
    teacher: Teacher | None = None
    processes: int = 2
    resume: bool = False
    keep_work: bool = False

    @property
    def work(self) -> Path:
        """The work folder."""
        return work_beside(self.out)


def train_fusion(request: FusionRequest, report: Report) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :param report: told the share done (0..1) and what is being done
    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises ReplayError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    try:
        require_free(request.out)
        sets = {'': flights_in(request.flights)}
        sets |= {name: flights_in(folder) for name, folder in request.judged.items()}
        for place in (request.narrow, request.wide):
            checkpoint_of(place)
        if request.teacher is None:
            require_truth([flight for of_set in sets.values() for flight in of_set])
        with ExitStack() as folders:
            work = folders.enter_context(work_folder(request.work, CHECKPOINT, request.resume))
            folder = request.features or work / 'features'
            if request.features is not None:
                folders.enter_context(work_folder(folder, CHECKPOINT, resume=True))
            prepare_torch(work, request.settings.threads)
            detectors = {
                NARROW: load_detector(request.narrow, NARROW),
                WIDE: load_detector(request.wide, WIDE),
            }
            features = prepare_features(
                FeaturesRequest(
                    detectors, sets, folder, request.settings, request.teacher, request.processes
                ),
                lambda share, words: report(_PREPARED * share, words),
            )
            metrics = _train(request, features, detectors, report)
        if not request.keep_work:
            shutil.rmtree(request.work, ignore_errors=True)
        return metrics
    except OSError as err:
        raise disk_error(request.work, CHECKPOINT, err, _ROOM) from err


def _train(
    request: FusionRequest,
    features: Features,
    detectors: Mapping[str, TrainedDetector],
    report: Report,
) -> dict[str, Any]:
    from mmedge_ros.lab.training.fusion_result import FusionResult
    from mmedge_ros.lab.training.fusion_training import FusionTraining

    settings = request.settings
    windows = {
        name: WindowSet(flights, settings.window, settings.stride)
        for name, flights in features.sets.items()
    }
    chosen_on = windows.get(VALIDATION)
    judged = chosen_on.spread(settings.judged_windows, Configuration()) if chosen_on else ()
    training = FusionTraining(
        windows[''], settings, request.work / CHECKPOINT, features.digest, chosen_on, judged
    )
    training.run(lambda s, words: report(_PREPARED + (_TRAINED - _PREPARED) * s, words))
    result = FusionResult(
        training.network, settings, features, training.facts(), detectors, request.teacher
    )
    return result.write(
        request.work / 'bundle',
        request.out,
        windows,
        lambda share, words: report(_TRAINED + (1.0 - _TRAINED) * share, words),
    )

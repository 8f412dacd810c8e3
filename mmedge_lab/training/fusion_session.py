"""From trained detectors and a set of flights to a bundle of the whole pipeline.

Steps that can be cut short and taken up: encoders of all levels and what they make of the
flights (the *features*, see fusion_features), the fusion network, the export.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import (
    LICENCE,
    data_facts,
    domain_of,
    file_entry,
    new_bundle,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_lab.training.checkpoint import work_beside, work_folder
from mmedge_lab.training.detector_training import TrainedDetector, load_detector, starting_point
from mmedge_lab.training.epoch_training import prepare_torch, training_device
from mmedge_lab.training.feature_cache import require_truth
from mmedge_lab.training.fusion_features import Features, prepare_features
from mmedge_lab.training.fusion_settings import NARROW, VALIDATION, WIDE, FusionSettings
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, judge
from mmedge_lab.training.window_set import WindowConfiguration, WindowSet
from mmedge_ros.encoding.bundle.model_bundle import FUSION_FORMAT, FUSION_PARTS, load_bundle

CHECKPOINT = 'fusion.pt'
# Shares of the progress shown.
_PREPARED, _TRAINED = 0.45, 0.95
_JUDGED = 500


def train_fusion(
    flights: Path,
    narrow: Path,
    wide: Path,
    out: Path,
    report: Report,
    *,
    validation: Path | None = None,
    settings: FusionSettings | None = None,
    features: Path | None = None,
    jobs: int = 2,
    keep_work: bool = False,
) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :param flights: set to learn from
    :param narrow: bundle of the narrow detector, or its starting point, as ``wide`` is
    :param validation: set that judges the result, and chooses the best epoch and the threshold
    :param features: folder that keeps what encoders make of flights (about 130 MB per flight of
        8 s) for other trainings; without it that lies in the work folder beside the bundle, which
        is removed at the end unless ``keep_work``
    :param jobs: processes to use; 0 for one per processor
    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises ReplayError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    settings = settings or FusionSettings()
    require_free(out)
    sets = {'': flights_in(flights)}
    if validation:
        sets[VALIDATION] = flights_in(validation)
    places = {NARROW: narrow, WIDE: wide}
    for width, place in places.items():
        starting_point(place, width)
    require_truth([flight for of_set in sets.values() for flight in of_set])
    with ExitStack() as folders:
        work = folders.enter_context(work_folder(work_beside(out), keep_work))
        if features is not None:
            folders.enter_context(work_folder(features, keep=True))
        prepare_torch(work, settings.threads)
        detectors = {width: load_detector(place, width) for width, place in places.items()}
        made = prepare_features(
            detectors,
            sets,
            features or work / 'features',
            settings,
            jobs,
            part_of(report, 0.0, _PREPARED),
        )
        return _train(made, detectors, settings, work, out, report)


def _train(
    features: Features,
    detectors: Mapping[str, TrainedDetector],
    settings: FusionSettings,
    work: Path,
    out: Path,
    report: Report,
) -> dict[str, Any]:
    from mmedge_lab.training.fusion_training import fusion_training
    from mmedge_lab.training.networks.export import export_fusion

    windows = {
        name: WindowSet(flights, settings.window, settings.stride)
        for name, flights in features.sets.items()
    }
    chosen_on = windows.get(VALIDATION)
    judged = chosen_on.spread(settings.judged_windows, WindowConfiguration()) if chosen_on else ()
    training = fusion_training(
        windows[''], settings, work / CHECKPOINT, features.digest, chosen_on, judged
    )
    training.run(part_of(report, _PREPARED, _TRAINED))
    network = training.network
    metrics, threshold = _judged(network, windows, part_of(report, _TRAINED, 1.0))
    course: dict[str, Any] = {'losses': [round(loss, 4) for loss in training.losses]}
    if training.worths:
        course['worth'] = [round(worth, 4) for worth in training.worths]
        course['best_epoch'] = training.best_epoch
    with new_bundle(out) as part:
        encoders = _encoders(features, part)
        check = export_fusion(network, part)
        entries = {name: file_entry(part / f'{name}.onnx') for name in FUSION_PARTS}
        content: dict[str, Any] = {
            'domain': domain_of(features.described),
            **encoders,
            'fusion': {'format': FUSION_FORMAT, **entries, 'threshold': threshold},
            'export': {k: float(v) for k, v in check._asdict().items()},
            'metrics': metrics,
            'training': {
                'data': data_facts(features.described),
                'detectors': {
                    name: {'sha256': d.digest, 'epochs': d.epoch, 'settings': d.settings}
                    for name, d in detectors.items()
                },
                'settings': settings.plain(),
                'course': course,
                'software': software_facts(training_device()),
            },
            'licence': LICENCE,
        }
        write_manifest(part, out.name, content)
        if not load_bundle(part).has_fusion:
            raise TrainingError(f'the bundle in {part} lacks what it should have; train it anew')
    return metrics


def _encoders(features: Features, part: Path) -> dict[str, Any]:
    """Copy the encoders into a bundle; returns their entries in its manifest."""
    files = sorted(features.parts.folder.glob('*.onnx'))
    for path in (*files, *features.embeddings.values()):
        shutil.copyfile(path, part / path.name)
    kept = ('camera', 'radar', 'grid', 'labels', 'encoders')
    entries: dict[str, Any] = {
        kind: file_entry(part / path.name) for kind, path in features.embeddings.items()
    }
    return {
        **{name: features.parts.content[name] for name in kept},
        'embedding': {**entries, 'auc': features.embedding_facts},
    }


def _judged(
    network: Any, windows: Mapping[str, WindowSet], report: Report
) -> tuple[dict[str, Any], float]:
    """Return the figures by set, and the threshold that is best on the first of them."""
    from mmedge_lab.training.fusion_training import run_network

    # Where nothing else is there, the flights that were learned from have to do.
    sets = {name: of for name, of in windows.items() if name} or {'train': windows['']}
    order = sorted(sets, key=lambda name: name != VALIDATION)
    metrics: dict[str, Any] = {}
    threshold = 0.0
    for place, name in enumerate(order):
        figures: dict[str, Any] = {}
        for what, configuration in JUDGED_CONFIGURATIONS.items():
            report((place + 0.5 * len(figures)) / len(order), f'judging on {name}')
            chosen = sets[name].spread(_JUDGED, configuration)
            fused, alone = judge(sets[name], chosen, lambda batch: run_network(network, batch))
            threshold = threshold or fused.best().threshold
            figures[what] = {
                'fused': fused.at(threshold).plain(),
                'newest_picture': alone.at(threshold).plain(),
                'newest_picture_at_its_best': alone.best().plain(),
            }
        judged = len(sets[name].spread(_JUDGED, WindowConfiguration()))
        metrics[name] = {'windows': judged, **figures}
    return metrics, threshold

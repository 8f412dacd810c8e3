"""From a set of flights to a detector bundle, and from trained detectors to one with levels.

Decision fusion needs no more than that; `mmedge lab train fusion` builds on the same checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import Report, part_of
from mmedge_lab.training.bundle_files import (
    LICENCE,
    data_facts,
    domain_of,
    export_facts,
    file_entry,
    new_bundle,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_lab.training.checkpoint import work_beside, work_folder
from mmedge_lab.training.detector_evaluation import accuracy_by_set
from mmedge_lab.training.detector_training import (
    DetectorSettings,
    TrainedDetector,
    detector_training,
    load_detector,
    save_starting_point,
)
from mmedge_lab.training.epoch_training import prepare_torch, training_device
from mmedge_lab.training.fusion_settings import CAMERA_LEVELS, NARROW, VALIDATION, WIDE
from mmedge_lab.training.network_export import export_detector
from mmedge_lab.training.picture_set import (
    CLASSES,
    PictureSet,
    open_pictures,
)
from mmedge_ros.core.untrusted_files import load_shallow_yaml
from mmedge_ros.encoding.bundle.manifest import MANIFEST

# Share of the progress shown.
_TRAINED = 0.95
_CHECKED_PICTURES = 16
DEFAULT_LEVEL = 'medium'


def train_detector(
    folder: Path,
    out: Path,
    report: Report,
    *,
    validation: Path | None = None,
    settings: DetectorSettings | None = None,
    begin_with: Path | None = None,
) -> dict[str, Any]:
    """Train, export, check, judge, and put the bundle in its place.

    :param folder: of the pictures
    :param validation: set of flights that judges the result
    :param begin_with: bundle of a detector of the same width, or its starting point
    :return: the figures by set
    :raises TrainingError: when it cannot be done; after a full disk the checkpoints are kept
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    settings = settings or DetectorSettings()
    require_free(out)
    pictures, judged = open_pictures(folder), _judged(validation)
    with work_folder(work_beside(out)) as work:
        prepare_torch(work, settings.threads)
        start = None
        if begin_with:
            start = load_detector(begin_with, settings.width)
            settings = replace(settings, begun_with=start.digest)
        training = detector_training(pictures, settings, work, start)
        training.run(part_of(report, 0.0, _TRAINED))
        network = training.network
        trained = TrainedDetector(network, '', settings.plain(), settings.epochs)
        metrics = _write_levels(
            out,
            {settings.level: (network, settings.size)},
            pictures,
            judged,
            part_of(report, _TRAINED, 1.0),
            training_facts(pictures, settings),
            {settings.width: trained},
        )
    return metrics[settings.level]


def join_levels(
    folder: Path,
    narrow: Path,
    wide: Path,
    out: Path,
    report: Report,
    validation: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Export every level of two detectors, check it, judge it, and put the bundle in its place.

    :param folder: of the pictures they were trained on: the export is checked on some of them
    :param narrow: bundle of `mmedge lab train detector`, or its starting point, as ``wide`` is
    :param validation: set of flights that judges the result
    :return: the figures by level and set
    :raises TrainingError: when it cannot be done
    :raises BagError: if a flight cannot be read
    :raises EncodingError: if a library is missing
    """
    require_free(out)
    pictures, judged = open_pictures(folder), _judged(validation)
    places = {NARROW: narrow, WIDE: wide}
    with work_folder(work_beside(out)) as work:
        prepare_torch(work, 1)
        detectors = {width: load_detector(place, width) for width, place in places.items()}
        return _write_levels(
            out,
            {
                level: (detectors[width].network, size)
                for level, (width, size) in CAMERA_LEVELS.items()
            },
            pictures,
            judged,
            report,
            {
                width: {**_facts(place, detectors[width]), 'sha256': detectors[width].digest}
                for width, place in places.items()
            },
            detectors,
        )


def _judged(validation: Path | None) -> dict[str, Sequence[Path]]:
    return {} if validation is None else {VALIDATION: flights_in(validation)}


def _write_levels(
    out: Path,
    networks: Mapping[str, tuple[Any, tuple[int, int]]],
    pictures: PictureSet,
    judged: Mapping[str, Sequence[Path]],
    report: Report,
    training: Mapping[str, Any],
    detectors: Mapping[str, TrainedDetector],
) -> dict[str, dict[str, Any]]:
    """Export, check and judge networks with their input sizes; put a bundle of them in its place.

    :param training: the manifest's description of it
    :param detectors: by width what later trainings begin with
    :return: the figures by level and set
    """
    # Evenly from all of the set.
    step = max(1, len(pictures) // _CHECKED_PICTURES)
    chosen = range(0, len(pictures), step)[:_CHECKED_PICTURES]
    shown = [pictures.load(number).image for number in chosen]
    levels, exports, metrics = {}, {}, {}
    with new_bundle(out) as part:
        for width, of in detectors.items():
            save_starting_point(part / f'{width}.pt', of.network, of.settings, of.epoch)
        for place, (level, (network, size)) in enumerate(networks.items()):
            weights = part / f'{level}.onnx'
            rest = part_of(report, place / len(networks), (place + 1) / len(networks))
            rest(0.0, f'exporting {level}')
            exports[level] = export_facts(export_detector(network, weights, size, shown))
            levels[level] = {**file_entry(weights), 'input_size': list(size)}
            metrics[level] = accuracy_by_set(weights, judged, rest, f'judging {level}')
        content = {
            'camera': {
                'default': DEFAULT_LEVEL if DEFAULT_LEVEL in levels else next(iter(levels)),
                'levels': levels,
            },
            'labels': list(CLASSES),
            'domain': domain_of(pictures.flights),
            'training': training,
            'export': exports,
            'metrics': metrics,
            'licence': LICENCE,
        }
        write_manifest(part, out.name, content)
    return metrics


def training_facts(pictures: PictureSet, settings: DetectorSettings) -> dict[str, Any]:
    """Return a manifest's description of the training."""
    return {
        'data': {
            **data_facts(pictures.flights),
            'pictures': len(pictures),
            'objects': pictures.objects,
            'sha256': pictures.digest,
        },
        'settings': settings.plain(),
        'software': software_facts(training_device()),
    }


def _facts(place: Path, detector: TrainedDetector) -> dict[str, Any]:
    """Return the training's facts in a detector's own manifest, where there is one."""
    try:
        manifest = load_shallow_yaml((place / MANIFEST).read_bytes())
        return dict(manifest['training'])
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError):
        return {'settings': detector.settings}

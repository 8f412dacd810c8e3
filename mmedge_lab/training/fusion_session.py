"""From trained detectors and a set of flights to a bundle of the whole pipeline.

Steps that can be cut short and taken up: encoders of all levels and what they make of the
flights (the *features*), which trainings with other seeds or settings can share, the joint
embedding, the fusion network, the export.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training import Report, TrainingError, part_of
from mmedge_lab.training.bundle_files import (
    LICENCE,
    data_facts,
    domain_of,
    encoder_entries,
    file_entry,
    identity_text,
    new_bundle,
    require_free,
    software_facts,
    write_manifest,
)
from mmedge_lab.training.checkpoint import read_index, whole_folder, work_beside, work_folder
from mmedge_lab.training.detector_training import TrainedDetector, load_detector, starting_point
from mmedge_lab.training.epoch_training import prepare_torch, training_device
from mmedge_lab.training.feature_cache import (
    CachedFlight,
    cached_flight,
    fusion_arrays,
    require_truth,
)
from mmedge_lab.training.flight_works import FlightArrays
from mmedge_lab.training.fusion_settings import (
    CAMERA_LEVELS,
    LEVELS,
    NARROW,
    VALIDATION,
    WIDE,
    FusionSettings,
)
from mmedge_lab.training.grid_projection import LevelNetwork, fit_projections
from mmedge_lab.training.network_export import export_camera_level, write_graph
from mmedge_lab.training.picture_set import describe_flight
from mmedge_lab.training.window_judging import JUDGED_CONFIGURATIONS, judge
from mmedge_lab.training.window_set import WindowConfiguration, WindowSet
from mmedge_ros.adaptation.bundle_configurations import manifest_of
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bundle.model_bundle import FUSION_FORMAT, FUSION_PARTS, load_bundle
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture, decode_image

# Shares of the progress shown.
_PARTS, _CACHED = 0.4, 0.9
CACHE, TRAIN = 'cache', 'train'
_FACTS, SETS = 'facts.json', 'sets.json'
_DIGITS = 4
_REFERENCE = 'large'
_CHECKED = 8  # pictures, and scans
_LAYOUT = 2  # raise it when the making of encoders or arrays changes
# Levels of camera and radar of the flights that are learned from: with all of them it would take
# half as much time and room again, so every flight has the best one and another.
LEARNED = tuple((level, LEVELS[-1]) for level in LEVELS[:-1])
JUDGED_LEVELS = ((LEVELS[0], LEVELS[-1]),)
_IDENTITY = 'identity'
_EXPORT_FACTS = ('pictures', 'box_px', 'score', 'feature')
CHECKPOINT = 'fusion.pt'
# Shares of the progress shown.
_PREPARED, _TRAINED = 0.45, 0.95
_JUDGED = 500


class Parts(NamedTuple):
    """A bundle of encoders; ``digest`` identifies it, ``content`` is its manifest."""

    folder: Path
    digest: str
    content: Mapping[str, Any]


class Features(NamedTuple):
    """Encoders, cached flights by set, the embedding's networks by modality and its facts.

    ``digest`` is that of the data to learn from; ``described`` are the flights of the set ''.
    """

    parts: Parts
    sets: dict[str, list[CachedFlight]]
    embeddings: dict[str, Path]
    embedding_facts: dict[str, Any]
    digest: str
    described: tuple[dict[str, Any], ...]


def prepare_features(
    detectors: Mapping[str, TrainedDetector],
    sets: Mapping[str, Sequence[Path]],
    folder: Path,
    settings: FusionSettings,
    jobs: int,
    report: Report,
) -> Features:
    """Make what is not there yet.

    :param detectors: by width
    :param sets: flights by set, those to learn from under ''
    :raises TrainingError: if a flight cannot be used or is in two sets, or the folder holds other
        features
    :raises ReplayError: if a flight cannot be read
    :raises OSError: if the disk is full; what is whole is kept
    """
    folder.mkdir(parents=True, exist_ok=True)
    described = tuple(describe_flight(flight) for flight in sets[''])
    parts = prepare_parts(
        detectors, sets[''], folder / 'parts', settings, part_of(report, 0.0, _PARTS)
    )
    cache = FlightArrays(folder / CACHE, f'{_LAYOUT} {parts.digest} {settings.stride}', sets, jobs)
    encoding = part_of(report, _PARTS, _CACHED)
    flights, folders = {}, {}
    for place, name in enumerate(sets):
        make = partial(
            fusion_arrays, parts.folder, JUDGED_LEVELS if name else LEARNED, settings.stride_ns
        )
        made = cache.of(
            name,
            make,
            part_of(encoding, place / len(sets), (place + 1) / len(sets)),
            'encoding flights',
            'judged' if name else 'learned',
        )
        flights[name] = [cached_flight(arrays) for arrays in made.values()]
        folders[name] = [str(path.relative_to(folder)) for path in made]
    (folder / SETS).write_text(json.dumps(folders))
    digest = hashlib.sha256(json.dumps(folders['']).encode()).hexdigest()
    embeddings, facts = _embedding(
        flights,
        folder / 'embedding',
        [digest, settings.embedding_steps],
        part_of(report, _CACHED, 1),
    )
    return Features(parts, flights, embeddings, facts, digest, described)


def cached_folders(features: Path, name: str) -> list[Path]:
    """Return the folders of the cached flights of a set, see `prepare_features`."""
    return [features / place for place in read_index(features / SETS).get(name, ())]


def _embedding(
    sets: Mapping[str, Sequence[CachedFlight]], folder: Path, identity: list[Any], report: Report
) -> tuple[dict[str, Path], dict[str, Any]]:
    import torch

    from mmedge_lab.training.embedding_training import judge_embedding, train_embedding

    paths = {kind: folder / f'embedding_{kind}.onnx' for kind in (CAMERA, RADAR)}
    known = read_index(folder / _FACTS)
    if known.get('identity') == identity:
        return paths, known['facts']
    joint = train_embedding(sets[''], identity[1], report)
    with whole_folder(folder) as part:
        for kind, network, shape in (
            (CAMERA, joint.camera, CAMERA_GRID),
            (RADAR, joint.radar, RADAR_GRID),
        ):
            grid = torch.zeros(1, *shape)
            write_graph(network, {'grid': grid}, ['embedding'], part / paths[kind].name)
        figures = {
            name or TRAIN: judge_embedding(joint, flights)._asdict()
            for name, flights in sets.items()
        }
        facts = {
            name: {k: round(v, _DIGITS) for k, v in entry.items() if math.isfinite(v)}
            for name, entry in figures.items()
        }
        (part / _FACTS).write_text(json.dumps({'identity': identity, 'facts': facts}))
    return paths, facts


def prepare_parts(
    detectors: Mapping[str, TrainedDetector],
    flights: Sequence[Path],
    folder: Path,
    settings: FusionSettings,
    report: Report,
) -> Parts:
    """Make the encoders, unless the folder holds them already.

    :raises TrainingError: if the folder holds those of another training, or they cannot be made
    :raises ReplayError: if a flight cannot be read
    :raises OSError: if they cannot be written
    """
    identity = {
        'layout': _LAYOUT,
        'detectors': {name: d.digest for name, d in detectors.items()},
        'levels': {name: [w, *size] for name, (w, size) in CAMERA_LEVELS.items()},
        'flights': [describe_flight(flight) for flight in flights],
        'projection_pictures': settings.projection_pictures,
        'radar': [settings.radar_epochs, settings.radar_step, settings.precision],
    }
    digest = hashlib.sha256(identity_text(identity).encode()).hexdigest()
    if folder.is_dir():
        existing = manifest_of(folder)
        if existing.get(_IDENTITY) != digest:
            raise TrainingError(
                f'{folder} holds encoders made from other detectors or flights; name another '
                'folder, or remove it to begin anew'
            )
        return Parts(folder, digest, existing)
    with whole_folder(folder) as part:
        camera, camera_facts = _camera(
            detectors, flights, settings.projection_pictures, part, part_of(report, 0.0, 0.5)
        )
        radar, radar_facts = _radar(flights, settings, part, part_of(report, 0.5, 1.0))
        content = {
            _IDENTITY: digest,
            **encoder_entries(camera, radar),
            'encoders': {'camera': camera_facts, 'radar': radar_facts},
        }
        write_manifest(part, 'encoders', content)
    return Parts(folder, digest, manifest_of(folder))


def _camera(
    detectors: Mapping[str, TrainedDetector],
    flights: Sequence[Path],
    count: int,
    folder: Path,
    report: Report,
) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    levels = {
        name: LevelNetwork(detectors[width].network, size)
        for name, (width, size) in CAMERA_LEVELS.items()
    }
    kept: list[Picture] = []

    def shown() -> Iterator[Picture]:
        for number, picture in enumerate(_pictures(flights, count)):
            if number % max(1, count // _CHECKED) == 0:
                kept.append(picture)
            report(0.8 * min(number / count, 1.0), 'fitting learned channels')
            yield picture

    fits = fit_projections(levels, _REFERENCE, shown())
    paths, facts = {}, {}
    for place, (name, level) in enumerate(levels.items()):
        report(0.8 + 0.06 * place, f'exporting {name}')
        paths[name], check = export_camera_level(
            level.network, fits[name].projection, level.size, folder, name, kept
        )
        facts[name] = {
            'learned_r2': round(fits[name].r2, 4),
            'export': {key: float(getattr(check, key)) for key in _EXPORT_FACTS},
        }
    return paths, facts


def _radar(
    flights: Sequence[Path], settings: FusionSettings, folder: Path, report: Report
) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    from mmedge_lab.training.radar_training import (
        export_radar_level,
        radar_samples,
        radar_set,
        train_radar,
    )

    samples = list(
        radar_samples(
            flights,
            settings.radar_step,
            lambda share: report(0.2 * share, 'reading radar scans'),
        )
    )
    trained = train_radar(radar_set(samples), settings, part_of(report, 0.2, 0.96))
    scans = [s.returns for s in samples[:: max(1, len(samples) // _CHECKED)]]
    paths, facts = {}, {}
    for name, (network, accuracy) in trained.items():
        paths[name], difference = export_radar_level(network, folder, name, scans)
        figures = {key: round(value, 4) for key, value in accuracy._asdict().items()}
        facts[name] = {**figures, 'largest_export_difference': round(difference, 5)}
    return paths, facts


def _pictures(flights: Sequence[Path], count: int) -> Iterator[Picture]:
    """Yield about so many pictures, as many of each flight; damaged ones are left out."""
    of_each = max(1, round(count / len(flights)))
    for flight in flights:
        with Recording(flight) as recording:
            units = [unit for unit in recording.units() if unit.modality == CAMERA]
            step = max(1, len(units) // of_each)
            for unit in units[step // 2 :: step][:of_each]:
                try:
                    yield decode_image(unit.payload)
                except SensingError:
                    continue


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

"""The encoders of a bundle: levels of camera and radar, fitted, exported and checked.

They depend on the detectors and the flights only, and are kept as a bundle without fusion.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mmedge_ros.encoding.bundle.model_bundle import MANIFEST
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.bundle_files import (
    encoder_entries,
    identity_text,
    new_folder,
    write_manifest,
)
from mmedge_ros.lab.training.detector_training import TrainedDetector
from mmedge_ros.lab.training.fusion_settings import CAMERA_LEVELS, FusionSettings
from mmedge_ros.lab.training.picture_set import describe_flight
from mmedge_ros.lab.training.radar_targets import radar_samples
from mmedge_ros.lab.training.teacher import Teacher
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import Picture, decode_image

_REFERENCE = 'large'
_CHECKED = 8  # pictures, and scans
_LAYOUT = 1  # raise it when the encoders' making changes
_IDENTITY = 'identity'
_EXPORT_FACTS = ('pictures', 'box_px', 'score', 'feature')

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class PartsRequest:
    """What encoders are made from, and where they go.

    ``detectors`` by width; ``teacher`` stands in for the flights' own truth, ``truth_key``
    tells it from others.
    """

    detectors: Mapping[str, TrainedDetector]
    flights: Sequence[Path]
    folder: Path
    settings: FusionSettings
    teacher: Teacher | None = None
    truth_key: str = ''

    @property
    def identity(self) -> dict[str, Any]:
        """What tells these encoders from all others, as plain values."""
        settings = self.settings
        return {
            'layout': _LAYOUT,
            'detectors': {name: d.digest for name, d in self.detectors.items()},
            'levels': {name: [w, *size] for name, (w, size) in CAMERA_LEVELS.items()},
            'flights': [describe_flight(flight) for flight in self.flights],
            'truth': self.truth_key,
            'projection_pictures': settings.projection_pictures,
            'radar': [settings.radar_epochs, settings.radar_step, settings.precision],
        }


class Parts(NamedTuple):
    """A bundle of encoders; ``digest`` tells it from others, ``content`` is its manifest."""

    folder: Path
    digest: str
    content: dict[str, Any]


def prepare_parts(request: PartsRequest, report: Progress) -> Parts:
    """Make the encoders, unless the folder holds them already.

    :raises TrainingError: if the folder holds those of another training, or they cannot be made
    :raises ReplayError: if a flight cannot be read
    :raises OSError: if they cannot be written
    """
    text = identity_text(request.identity)
    digest = hashlib.sha256(text.encode()).hexdigest()
    found = _existing(request.folder)
    if found is not None:
        if found.get(_IDENTITY) != digest:
            raise TrainingError(
                f'{request.folder} holds encoders made from other detectors or flights; name '
                'another folder, or remove it to begin anew'
            )
        return Parts(request.folder, digest, found)
    part = new_folder(request.folder.with_name(f'.{request.folder.name}.part'))
    camera, camera_facts = _camera(request, part, report)
    radar, radar_facts = _radar(request, part, report)
    content = {
        _IDENTITY: digest,
        **encoder_entries(camera, radar),
        'encoders': {'camera': camera_facts, 'radar': radar_facts},
    }
    write_manifest(part, 'encoders', content)
    part.rename(request.folder)
    return Parts(request.folder, digest, _existing(request.folder) or content)


def _camera(
    request: PartsRequest, folder: Path, report: Progress
) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    from mmedge_ros.lab.training.grid_projection import LevelNetwork, fit_projections
    from mmedge_ros.lab.training.network_export import export_camera_level

    levels = {
        name: LevelNetwork(request.detectors[width].network, size)
        for name, (width, size) in CAMERA_LEVELS.items()
    }
    count = request.settings.projection_pictures
    kept: list[Picture] = []

    def shown() -> Iterator[Picture]:
        for number, picture in enumerate(_pictures(request, count)):
            if number % max(1, count // _CHECKED) == 0:
                kept.append(picture)
            report(0.4 * min(number / count, 1.0), 'fitting learned channels')
            yield picture

    fits = fit_projections(levels, _REFERENCE, shown())
    paths, facts = {}, {}
    for place, (name, level) in enumerate(levels.items()):
        report(0.4 + 0.03 * place, f'exporting {name}')
        paths[name], check = export_camera_level(
            level.network, fits[name].projection, level.size, folder, name, kept
        )
        facts[name] = {
            'learned_r2': round(fits[name].r2, 4),
            'export': {key: float(getattr(check, key)) for key in _EXPORT_FACTS},
        }
    return paths, facts


def _radar(
    request: PartsRequest, folder: Path, report: Progress
) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    from mmedge_ros.lab.training.radar_training import export_radar_level, radar_set, train_radar

    samples = list(
        radar_samples(
            request.flights,
            request.settings.radar_step,
            request.teacher,
            lambda share: report(0.5 + 0.1 * share, 'reading radar scans'),
        )
    )
    trained = train_radar(
        radar_set(samples),
        request.settings,
        lambda share, words: report(0.6 + 0.38 * share, words),
    )
    scans = [s.returns for s in samples[:: max(1, len(samples) // _CHECKED)]]
    paths, facts = {}, {}
    for name, (network, accuracy) in trained.items():
        paths[name], difference = export_radar_level(network, folder, name, scans)
        figures = {key: round(value, 4) for key, value in accuracy._asdict().items()}
        facts[name] = {**figures, 'largest_export_difference': round(difference, 5)}
    return paths, facts


def _pictures(request: PartsRequest, count: int) -> Iterator[Picture]:
    """Yield about so many pictures, as many of each flight; damaged ones are left out."""
    of_each = max(1, round(count / len(request.flights)))
    teacher = request.teacher or Teacher(Path())
    for flight in request.flights:
        with Recording(flight) as recording:
            units = list(teacher.pictures(recording))
            step = max(1, len(units) // of_each)
            for unit in units[step // 2 :: step][:of_each]:
                try:
                    yield decode_image(unit.payload)
                except SensingError:
                    continue


def _existing(folder: Path) -> dict[str, Any] | None:
    try:
        content = yaml.safe_load((folder / MANIFEST).read_bytes())
    except (OSError, yaml.YAMLError, ValueError):
        return None
    return content if isinstance(content, dict) else None

"""What a camera level detects in every picture of a flight, computed once and kept in a file.

Trackers can then be compared on the very same boxes, again and again, without a network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_under_test import flight_digest, software_digest
from mmedge_lab.judging.encoded_flight import EncodedFlight, load_flight
from mmedge_ros.data_types import (
    CAMERA,
    RADAR,
    Box,
    Detection,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.unit_encoder import RadarEncoder, UnitEncoder
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.recording import Recording
from mmedge_ros.report.report_files import (
    arrays_bytes,
    kept_content,
    read_arrays,
    write_files,
)
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.filter import RadarLimits

_COLUMNS = 7  # of a detection's numbers: box, score, distance, its deviation


@dataclass(frozen=True)
class DetectionLevel:
    """A level of a bundle's camera, and the folder in which its detections are kept."""

    bundle: Path
    level: str
    folder: Path

    def key(self, flight: Path) -> str:
        """Return what the detections of a flight depend on."""
        manifest = sha256_of(self.bundle / MANIFEST)
        return f'{manifest} {self.level} {software_digest()} {flight_digest(flight)}'


@dataclass(frozen=True)
class DetectedFlight:
    """A flight and its units with detections and returns, in the order of their stamps."""

    flight: EncodedFlight
    units: tuple[UnitFeatures, ...]


def detected_flight(
    folder: Path,
    level: DetectionLevel,
    camera: UnitEncoder,
    on_progress: Callable[[float], None] | None = None,
) -> DetectedFlight:
    """Read a flight with what the level detects in it; boxes kept before are not detected again.

    :param camera: encoder of the level's bundle
    :param on_progress: called with the share done, 0..1
    :raises EvaluationError: if the flight has no truth, or detections cannot be kept
    :raises ReplayError: if the flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    path, key = level.folder / f'{folder.name}.npz', level.key(folder)
    content = kept_content(path)
    kept = None if content is None else read_arrays(content, key)
    with Recording(folder) as recording:
        flight = load_flight(recording, PipelineParameters())
        if flight.truth is None or not flight.truth.scenes:
            raise EvaluationError(
                f'{folder}: ground truth is needed, and this recording has none; use flights '
                'made by `mmedge simulate`'
            )
        if kept is None:
            total = max(sum(isinstance(event, Unit) for event in flight.events), 1)
            pictures = _detected(recording, camera, level.level, total, on_progress)
            kept = _arrays(pictures)
            write_files(level.folder, {path.name: arrays_bytes(key, **kept)})
        radar = RadarEncoder(RadarLimits())
        scans = [
            features
            for unit in recording.units()
            if unit.modality == RADAR
            if (features := _encoded(radar, unit, '')) is not None
        ]
    pictures = list(_pictures(kept, flight))
    # A scan of the very stamp of a picture goes before it, as it does in the pipeline.
    units = sorted([*scans, *pictures], key=lambda u: (u.stamp_ns, u.modality == CAMERA))
    return DetectedFlight(flight, tuple(units))


def _detected(
    recording: Recording,
    camera: UnitEncoder,
    level: str,
    total: int,
    on_progress: Callable[[float], None] | None,
) -> list[UnitFeatures]:
    pictures = []
    for number, unit in enumerate(recording.units()):
        if unit.modality == CAMERA:
            features = _encoded(camera, unit, level)
            if features is not None:
                pictures.append(features)
        if on_progress:
            on_progress((number + 1) / total)
    return pictures


def _encoded(encoder: UnitEncoder, unit: Unit, level: str) -> UnitFeatures | None:
    """Return the features of a unit; None for one that cannot be decoded."""
    try:
        return encoder.encode(unit, ModalityConfiguration(unit.modality, 0.0, level), 0)
    except SensingError:
        return None
    except EncodingError as err:
        raise EvaluationError(f'level {level!r}: {err}') from err


def _arrays(pictures: list[UnitFeatures]) -> dict[str, NDArray[Any]]:
    found = [(p.sequence, d) for p in pictures for d in p.detections]
    numbers = [(*d.box, d.score, d.distance, d.distance_deviation) for _, d in found]
    return {
        'pictures': np.array([p.sequence for p in pictures], np.int64),
        'sizes': np.array([p.image_size for p in pictures], np.int64).reshape(-1, 2),
        'owners': np.array([sequence for sequence, _ in found], np.int64),
        'numbers': np.array(numbers, np.float64).reshape(-1, _COLUMNS),
        'labels': np.array([d.label for _, d in found], np.str_),
    }


def _pictures(kept: dict[str, NDArray[Any]], flight: EncodedFlight) -> Iterator[UnitFeatures]:
    """Yield the pictures that could be decoded, with their detections."""
    detections: dict[int, list[Detection]] = {int(n): [] for n in kept['pictures']}
    for owner, (*box, score, distance, deviation), label in zip(
        kept['owners'].tolist(), kept['numbers'].tolist(), kept['labels'].tolist(), strict=True
    ):
        detections[owner].append(Detection(Box(*box), score, label, distance, deviation))
    sizes = dict(zip(kept['pictures'].tolist(), kept['sizes'].tolist(), strict=True))
    for unit in flight.events:
        if isinstance(unit, Unit) and unit.modality == CAMERA and unit.sequence in sizes:
            width, height = sizes[unit.sequence]
            yield UnitFeatures(
                CAMERA,
                unit.sequence,
                unit.stamp_ns,
                unit.available_ns,
                unit.frame_id,
                (),
                detections=tuple(detections[unit.sequence]),
                image_size=(width, height),
            )

"""Everything a fusion is learned from that does not depend on how it is learned.

Encoders of all levels, what they make of every flight, and the joint embedding, in a folder that
trainings with other seeds or settings can share.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.lab.training.bundle_files import new_folder
from mmedge_ros.lab.training.detector_training import TrainedDetector
from mmedge_ros.lab.training.feature_cache import CachedFlight, read_flight
from mmedge_ros.lab.training.feature_parts import Parts, PartsRequest, prepare_parts
from mmedge_ros.lab.training.flight_encoders import CacheTask, run_tasks
from mmedge_ros.lab.training.fusion_settings import LEVELS, FusionSettings
from mmedge_ros.lab.training.picture_set import describe_flight
from mmedge_ros.lab.training.teacher import Teacher

# Shares of the progress shown.
_PARTS, _CACHED = 0.4, 0.9
CACHE, TRAIN = 'cache', 'train'
_FACTS = 'facts.json'
_DIGITS = 4

Progress = Callable[[float, str], None]


@dataclass(frozen=True)
class FeaturesRequest:
    """Detectors by width, flights by set (the one to learn from under ''), and the folder."""

    detectors: Mapping[str, TrainedDetector]
    sets: Mapping[str, Sequence[Path]]
    folder: Path
    settings: FusionSettings
    teacher: Teacher | None = None
    processes: int = 2


class Features(NamedTuple):
    """Encoders, cached flights by set, the embedding's networks by modality and its facts.

    ``digest`` tells what is learned from; ``described`` are the flights of the set ''.
    """

    parts: Parts
    sets: dict[str, tuple[CachedFlight, ...]]
    embeddings: dict[str, Path]
    embedding_facts: dict[str, Any]
    digest: str
    described: tuple[dict[str, Any], ...]


def prepare_features(request: FeaturesRequest, report: Progress) -> Features:
    """Make what is not there yet.

    :raises TrainingError: if a flight cannot be used, or the folder holds other features
    :raises ReplayError: if a flight cannot be read
    :raises OSError: if the disk is full; what is whole is kept
    """
    teacher, flights = request.teacher, request.sets['']
    key = teacher.key if teacher else ''
    request.folder.mkdir(parents=True, exist_ok=True)
    parts = prepare_parts(
        PartsRequest(
            request.detectors, flights, request.folder / 'parts', request.settings, teacher, key
        ),
        lambda share, words: report(_PARTS * share, words),
    )
    tasks = {
        name: [
            CacheTask(
                flight,
                request.folder / CACHE / (name or TRAIN) / flight.name,
                parts.folder,
                parts.digest,
                request.settings.stride_ns,
                () if name else _levels_of(place),
                teacher,
                key,
            )
            for place, flight in enumerate(of_set)
        ]
        for name, of_set in request.sets.items()
    }
    run_tasks(
        [task for of_set in tasks.values() for task in of_set],
        request.processes,
        lambda share: report(_PARTS + (_CACHED - _PARTS) * share, 'encoding flights'),
    )
    sets = {name: tuple(read_flight(t.folder) for t in of_set) for name, of_set in tasks.items()}
    digest = hashlib.sha256(json.dumps([f.key for f in sets['']]).encode()).hexdigest()
    embeddings, facts = _embedding(
        request,
        sets,
        digest,
        lambda share, words: report(_CACHED + (1.0 - _CACHED) * share, words),
    )
    described = tuple(describe_flight(flight) for flight in flights)
    return Features(parts, sets, embeddings, facts, digest, described)


def _levels_of(place: int) -> tuple[str, ...]:
    """Return the levels a flight is encoded with, by its place in the set to learn from.

    With all of them it would take half as much time and room again: every flight has the best
    one and another.
    """
    *others, best = LEVELS
    return others[place % len(others)], best


def _embedding(
    request: FeaturesRequest,
    sets: Mapping[str, tuple[CachedFlight, ...]],
    digest: str,
    report: Progress,
) -> tuple[dict[str, Path], dict[str, Any]]:
    from mmedge_ros.lab.training.embedding_training import judge_embedding, train_embedding

    folder = request.folder / 'embedding'
    paths = {kind: folder / f'embedding_{kind}.onnx' for kind in (CAMERA, RADAR)}
    identity = [digest, request.settings.embedding_steps]
    known = _facts(folder)
    if known.get('identity') == identity:
        return paths, known['facts']
    joint = train_embedding(sets[''], request.settings.embedding_steps, report)
    part = new_folder(folder.with_name(f'.{folder.name}.part'))
    for kind, network, shape in (
        (CAMERA, joint.camera, CAMERA_GRID),
        (RADAR, joint.radar, RADAR_GRID),
    ):
        _export(network, shape, part / paths[kind].name)
    figures = {
        name or TRAIN: judge_embedding(joint, flights)._asdict() for name, flights in sets.items()
    }
    facts = {
        name: {k: round(v, _DIGITS) for k, v in entry.items() if math.isfinite(v)}
        for name, entry in figures.items()
    }
    (part / _FACTS).write_text(json.dumps({'identity': identity, 'facts': facts}))
    new_folder(folder).rmdir()
    part.rename(folder)
    return paths, facts


def _export(network: Any, shape: tuple[int, int, int], path: Path) -> None:
    import torch

    from mmedge_ros.lab.training.network_export import write_graph

    write_graph(network, {'grid': torch.zeros(1, *shape)}, ['embedding'], path)


def _facts(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / _FACTS).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}

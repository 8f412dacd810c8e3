"""Writes trained networks as bundles: whole or not at all, with a manifest of what they are."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from mmedge_lab.judging.measured_accuracy import without_entry
from mmedge_lab.training import TrainingError
from mmedge_lab.training.fusion_settings import CAMERA_LEVELS, LEVELS
from mmedge_lab.training.network_export import ExportCheck
from mmedge_lab.training.picture_sources import CLASSES
from mmedge_ros import __version__
from mmedge_ros.encoding.bundle.manifest import MANIFEST
from mmedge_ros.encoding.bundle.model_bundle import BOTH, REAL, SIMULATED
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.feature_grid import GRID_FORMAT
from mmedge_ros.report.report_files import write_files

LICENCE = (
    'The weights were trained by this project, begun from random numbers, on the pictures that '
    '`training` and `attribution` name, and are given under Apache-2.0 as far as that is ours to '
    'say. The design of the network (YOLO26) and the program that trained and exported it are '
    'ultralytics, AGPL-3.0; it is not needed to run them. Its authors hold that networks trained '
    'with it fall under AGPL-3.0 as well: take advice before you ship them in a closed product.'
)
LARGEST_BUNDLE = 25_000_000
_DEFAULT_LEVEL = 'large'


def require_free(folder: Path) -> None:
    """Make sure that a bundle may be put there.

    :raises TrainingError: if something is there already, or the place cannot be written
    """
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise TrainingError(
            f'{folder} exists already and was left as it is; remove it, or name another folder '
            'with --out'
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(folder.parent, os.W_OK):
        raise TrainingError(f'nothing can be written to {folder.parent}; name another --out')


@contextmanager
def new_bundle(
    out: Path, copied: Path | None = None, largest: int = LARGEST_BUNDLE
) -> Iterator[Path]:
    """Give a hidden folder to write a bundle to; it becomes ``out`` when the block ends well.

    :param copied: a bundle that the folder begins as a copy of
    :param largest: bytes that a bundle that is no copy may have; the default fits into a
        repository
    :raises TrainingError: if it cannot be written, in the block as well, or is too large
    """
    part = out.with_name(f'.{out.name}.part')
    try:
        shutil.rmtree(part, ignore_errors=True)
        if copied is None:
            part.mkdir(parents=True)
        else:
            shutil.copytree(copied, part)
        yield part
        files = [path for path in part.rglob('*') if path.is_file()]
        total = sum(path.stat().st_size for path in files)
        if copied is None and total > largest:
            raise TrainingError(
                f'the bundle {out.name} has {total / 1e6:.1f} MB and may have '
                f'{largest / 1e6:.0f}; use narrower networks'
            )
        for path in files:
            with path.open('rb') as file:
                os.fsync(file.fileno())
        if out.is_dir():
            out.rmdir()  # an empty one, or nothing is written
        part.rename(out)
    except OSError as err:
        raise TrainingError(
            f'{out} cannot be written: {err.strerror or err}; make room there and run the same '
            'command again: what was trained or replayed is kept'
        ) from err
    finally:
        shutil.rmtree(part, ignore_errors=True)


def enter_section(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    """Enter a section into a bundle's manifest in place of an earlier one; the rest stays.

    :param content: plain values
    :raises ReportError: if it cannot be written; it is whole then as before
    """
    path = folder / MANIFEST
    text = without_entry(path.read_text(encoding='utf-8'), name)
    text += yaml.safe_dump({name: content}, sort_keys=False, width=96, default_flow_style=None)
    write_files(folder, {MANIFEST: text.encode()})


def file_entry(path: Path) -> dict[str, Any]:
    """Return the manifest entry of a weight file."""
    return {'weights': path.name, 'sha256': sha256_of(path), 'bytes': path.stat().st_size}


def encoder_entries(
    camera: Mapping[str, Sequence[Path]], radar: Mapping[str, Sequence[Path]]
) -> dict[str, Any]:
    """Return the manifest entries of the levels of both modalities."""
    levels: dict[str, dict[str, Any]] = {'camera': {}, 'radar': {}}
    for level in LEVELS:
        for modality, stages in (('camera', camera[level]), ('radar', radar[level])):
            levels[modality][level] = {'stages': [file_entry(path) for path in stages]}
        levels['camera'][level]['input_size'] = list(CAMERA_LEVELS[level].size)
    return {
        **{name: {'default': _DEFAULT_LEVEL, 'levels': of} for name, of in levels.items()},
        'grid': {'format': GRID_FORMAT},
        'labels': list(CLASSES),
    }


def write_manifest(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    """Write the manifest of a bundle; figures that are NaN are left out.

    :raises OSError: if it cannot be written
    """
    manifest = _plain({'name': name, **content})
    text = yaml.safe_dump(manifest, sort_keys=False, width=96, allow_unicode=True)
    (folder / MANIFEST).write_text(text, encoding='utf-8')


def data_facts(flights: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the manifest's description of the flights that a bundle was learned from.

    :param flights: see ``picture_set.describe_flight``
    """
    described = list(flights)
    pictures = [of for of in described if 'scenes' in of or 'pictures' in of]
    if len(pictures) == 1:
        # Drawn from the standard seeds, see `standard_sets.scene_set`.
        return dict(pictures[0])
    if pictures:
        return {'sets': [dict(of) for of in pictures]}
    scenarios = Counter(str(flight.get('scenario', flight['name'])) for flight in described)
    return {
        'flights': len(described),
        'scenarios': dict(sorted(scenarios.items())),
        'seeds': [flight['seed'] for flight in described if 'seed' in flight],
        'simulator': sorted({f['simulator'] for f in described if 'simulator' in f}),
    }


def domain_of(made_from: Sequence[Mapping[str, Any]]) -> str:
    """Return the domain of the pictures that were learned from."""
    simulated = {'simulator' in described for described in made_from}
    if len(simulated) > 1:
        return BOTH
    return SIMULATED if True in simulated else REAL


def export_facts(check: ExportCheck) -> dict[str, Any]:
    """Return how far an exported network is from the trained one."""
    return {
        'pictures': check.pictures,
        'cells': check.cells,
        'largest_box_difference_px': check.box_px,
        'largest_score_difference': check.score,
    }


def software_facts(device: str) -> dict[str, str]:
    """Return the versions of what trains and exports, and the kind of device it ran on."""
    import onnx
    import torch

    from mmedge_ros.encoding.ultralytics_network import ultralytics_version

    return {
        'mmedge_ros': __version__,
        'torch': str(torch.__version__),
        'ultralytics': ultralytics_version(),
        'onnx': str(onnx.__version__),
        'device': device,
    }


def identity_text(content: Mapping[str, Any]) -> str:
    """Return a text that is equal for equal content."""
    return json.dumps(_plain(content), sort_keys=True)


def _plain(value: Any) -> Any:
    """Return plain values without figures that are not known."""
    if isinstance(value, Mapping):
        kept = {str(k): _plain(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if not (isinstance(v, float) and math.isnan(v))}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value

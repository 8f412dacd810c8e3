"""Semantic centres in a file: numpy arrays, nothing that could run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.recurrence import RecurrenceError
from mmedge_ros.recurrence.semantic_memory import SemanticCentres, require_fitting

_MOST_LAYERS = 64
# A memory of 5 MB is large: 100 classes with 8 taps of 512 values take 3 MB.
LARGEST_BYTES = 64 << 20
_REMEDY = 'fit the semantic memory of this classifier again'
_OF_LAYER = ('centres', 'origin', 'whitening')
_OF_ALL = ('counts', 'thresholds', 'priors')


def centres_as_bytes(centres: SemanticCentres) -> bytes:
    """Return a file that `read_centres` reads; values are kept as float32."""
    arrays: dict[str, FloatArray] = {
        'counts': centres.counts,
        'thresholds': centres.thresholds,
        'priors': centres.priors,
    }
    for layer in range(len(centres.centres)):
        arrays[f'centres_{layer}'] = centres.centres[layer]
        arrays[f'origin_{layer}'] = centres.origins[layer]
        arrays[f'whitening_{layer}'] = centres.whitening[layer]
    file = io.BytesIO()
    kept: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    np.savez(file, **kept)
    return file.getvalue()


def read_centres(path: Path) -> SemanticCentres:
    """Read semantic centres.

    :raises RecurrenceError: if the file cannot be read, or its parts do not fit together
    """
    arrays = _arrays(path)
    layers = sum(name.startswith('centres_') for name in arrays)
    expected = {f'{part}_{layer}' for part in _OF_LAYER for layer in range(layers)} | {*_OF_ALL}
    if not 1 <= layers <= _MOST_LAYERS or set(arrays) != expected:
        names = ', '.join(sorted(arrays))[:200]
        raise RecurrenceError(f'{path} holds {names}, which is no semantic memory; {_REMEDY}')
    centres = SemanticCentres(
        tuple(arrays[f'centres_{layer}'] for layer in range(layers)),
        arrays['counts'],
        tuple(arrays[f'origin_{layer}'] for layer in range(layers)),
        tuple(arrays[f'whitening_{layer}'] for layer in range(layers)),
        arrays['thresholds'],
        arrays['priors'],
    )
    try:
        require_fitting(centres)
    except RecurrenceError as err:
        raise RecurrenceError(f'{path}: {err}') from err
    return centres


def _arrays(path: Path) -> Mapping[str, FloatArray]:
    try:
        size = path.stat().st_size
        if size > LARGEST_BYTES:
            raise RecurrenceError(f'{path} has {size} bytes, too many for a semantic memory')
        with np.load(path, allow_pickle=False) as file:
            return {name: np.asarray(file[name], float) for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, AttributeError, KeyError) as err:
        raise RecurrenceError(f'{path} cannot be read ({str(err)[:200]}); {_REMEDY}') from err

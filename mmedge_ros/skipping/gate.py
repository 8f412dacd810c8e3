"""The gate: a small network that says how much of the full decision an early one keeps.

Two layers in numpy: a graph runtime would take longer to call than this takes to compute. The
file holds numbers only, and the names of the fields it was trained for.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.skipping import SkippingError
from mmedge_ros.skipping.gate_features import FIELDS, GateFeatures

_LARGEST_FILE = 1 << 20
_MOST_HIDDEN = 1024
# Standardised inputs are cut here: what was never seen in training must not run away.
_CUT = 4.0
_LOWEST, _HIGHEST, _ZERO = np.array(-_CUT), np.array(_CUT), np.array(0.0)
_ARRAYS = ('mean', 'scale', 'weights1', 'bias1', 'weights2', 'bias2', 'fields')


class EarlyDecisionClassifier(Protocol):
    """What the gate and the rules it is compared with have in common."""

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        """Return how much of the full window's decision one made now would keep, 0..1.

        :param end_ns: end of the window
        """


@dataclass(frozen=True, eq=False)
class Gate:
    """Standardise, one hidden layer of rectified units, one logistic output.

    ``mean`` and ``scale`` (F,), ``weights1`` (F, H), ``bias1`` (H,), ``weights2`` (H,), ``bias2``.
    """

    mean: FloatArray
    scale: FloatArray
    weights1: FloatArray
    bias1: FloatArray
    weights2: FloatArray
    bias2: float

    def confidence(self, features: GateFeatures, end_ns: int = 0) -> float:  # noqa: ARG002  # any
        """Return the expected IoU of an early decision's boxes with those of the full window."""
        return _logistic(float(self.logits(features.vector())))

    def logits(self, vectors: FloatArray) -> FloatArray:
        """Return the logits (...) of features (..., F)."""
        # For a single row each call takes longer than its numbers: nothing new is made that
        # need not be, and `dot` and bounds that are arrays already take less than `@` and plain
        # numbers.
        inputs = vectors - self.mean
        inputs *= self.scale
        np.maximum(inputs, _LOWEST, out=inputs)
        np.minimum(inputs, _HIGHEST, out=inputs)
        hidden = inputs.dot(self.weights1)
        hidden += self.bias1
        np.maximum(hidden, _ZERO, out=hidden)
        logits: FloatArray = hidden.dot(self.weights2) + self.bias2
        return logits


def _logistic(logit: float) -> float:
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(max(logit, -700.0))
    return power / (1.0 + power)


def read_gate(path: Path) -> Gate:
    """Read a gate.

    :raises SkippingError: if it is none, or was made for other features
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SkippingError(f'{path} is larger than 1 MiB and is no gate')
        arrays = _arrays(path)
    except OSError as err:
        raise SkippingError(f'{path} cannot be read: {err.strerror or err}') from err
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as err:
        if isinstance(err, SkippingError):
            raise
        raise SkippingError(
            f'{path} is no gate ({" ".join(str(err).split())[:200]}); fetch the bundle again'
        ) from err
    return _checked(path, arrays)


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        # A few kilobytes may claim to unpack to anything.
        if sum(entry.file_size for entry in archive.infolist()) > _LARGEST_FILE:
            raise SkippingError(f'{path} unpacks to more than 1 MiB and is no gate')
    with np.load(path, allow_pickle=False) as file:
        missing = [name for name in _ARRAYS if name not in file.files]
        if missing:
            raise SkippingError(f'{path} is no gate: it has no {missing[0]!r}')
        return {name: file[name] for name in _ARRAYS}


def _checked(path: Path, arrays: Mapping[str, np.ndarray]) -> Gate:
    fields = tuple(str(name) for name in arrays['fields'].ravel().tolist())
    if fields != FIELDS:
        other = next((a for a in fields if a not in FIELDS), 'another order')
        raise SkippingError(
            f'{path} was trained for other features ({other[:80]!r}); train the gate again with '
            'this version'
        )
    hidden = arrays['bias1'].size
    shapes = {
        'mean': (len(FIELDS),),
        'scale': (len(FIELDS),),
        'weights1': (len(FIELDS), hidden),
        'bias1': (hidden,),
        'weights2': (hidden,),
        'bias2': (1,),
    }
    numbers: dict[str, FloatArray] = {}
    for name, shape in shapes.items():
        array = arrays[name]
        if array.dtype != np.float32 or array.shape != shape or hidden > _MOST_HIDDEN:
            raise SkippingError(
                f'{path} has {name} of {array.dtype} {list(array.shape)}, not of float32 '
                f'{list(shape)}; train the gate again'
            )
        numbers[name] = array.astype(np.float64)
        if not np.isfinite(numbers[name]).all():
            raise SkippingError(f'{path} has numbers in {name} that are not finite')
    bias2 = float(numbers.pop('bias2')[0])
    return Gate(**numbers, bias2=bias2)

"""The gate: a small network that says how much of the full decision an early one keeps.

Two layers in numpy: a graph runtime would take longer to call than this takes to compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.encoding.bundle.number_file import LARGEST_NUMBERS, number_bytes, read_numbers
from mmedge_ros.windows import SkippingError
from mmedge_ros.windows.gate_features import FIELDS, GateFeatures

# Standardised inputs are cut here: what was never seen in training must not run away.
_CUT = 4.0
_SHAPES: dict[str, tuple[int | str, ...]] = {
    'mean': (len(FIELDS),),
    'scale': (len(FIELDS),),
    'bias1': ('hidden',),
    'weights1': (len(FIELDS), 'hidden'),
    'weights2': ('hidden',),
    'bias2': (1,),
}
_NAMES = {'fields': FIELDS}
_REMEDY = 'train the gate again with this version'


class EarlyDecisionClassifier(Protocol):
    """What the gate and the rules it is compared with have in common."""

    def confidence(self, features: GateFeatures, end_ns: int) -> float:
        """Return how much of the full window's decision one made now would keep, 0..1.

        :param end_ns: end of the window
        """


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """Standardise, one hidden layer of rectified units, linear outputs.

    ``mean`` and ``scale`` (F,), ``weights1`` (F, H), ``bias1`` (H,), ``weights2`` (H, O),
    ``bias2`` (O,); for one output ``weights2`` may be (H,) and ``bias2`` a number.
    """

    mean: FloatArray
    scale: FloatArray
    weights1: FloatArray
    bias1: FloatArray
    weights2: FloatArray
    bias2: FloatArray | float

    def outputs(self, inputs: FloatArray) -> FloatArray:
        """Return the outputs (..., O) for inputs (..., F)."""
        hidden = np.maximum(self.standardised(inputs) @ self.weights1 + self.bias1, 0.0)
        outputs: FloatArray = hidden @ self.weights2 + self.bias2
        return outputs

    def standardised(self, inputs: FloatArray) -> FloatArray:
        """Return inputs (..., F) as the first layer takes them."""
        scaled: FloatArray = np.clip((inputs - self.mean) * self.scale, -_CUT, _CUT)
        return scaled


class Gate(DenseNetwork):
    """A network with one logistic output: ``weights2`` (H,) and ``bias2``, a number."""

    def confidence(self, features: GateFeatures, end_ns: int = 0) -> float:  # noqa: ARG002  # any
        """Return the expected IoU of an early decision's boxes with those of the full window."""
        return _logistic(float(self.outputs(features.vector())))


def _logistic(logit: float) -> float:
    if logit >= 0.0:
        return 1.0 / (1.0 + math.exp(-logit))
    power = math.exp(max(logit, -700.0))
    return power / (1.0 + power)


def gate_bytes(gate: Gate) -> bytes:
    """Return the file of a gate."""
    numbers = {name: np.atleast_1d(getattr(gate, name)) for name in _SHAPES}
    return number_bytes(numbers, _NAMES)


def read_gate(path: Path) -> Gate:
    """Read a gate.

    :raises SkippingError: if it is none, or was made for other features
    """
    content = read_bounded(path, LARGEST_NUMBERS, SkippingError, _REMEDY)
    try:
        numbers = read_numbers(content, _SHAPES, _NAMES)
    except ValueError as err:
        raise SkippingError(f'{path} is no gate ({err}); {_REMEDY}') from err
    bias2 = float(numbers.pop('bias2')[0])
    return Gate(**numbers, bias2=bias2)

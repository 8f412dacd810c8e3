"""The network of trained rivals: two layers in numpy, and its file.

A file holds numbers only, and the names of its input fields.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.bundle.number_file import number_bytes, read_numbers

# Standardised inputs are cut here: what was never seen in training must not run away.
CUT = 4.0
_ARRAYS = ('mean', 'scale', 'weights1', 'bias1', 'weights2', 'bias2')


@dataclass(frozen=True, eq=False)
class DenseNetwork:
    """Standardise, one hidden layer of rectified units, linear outputs.

    ``mean`` and ``scale`` (F,), ``weights1`` (F, H), ``bias1`` (H,), ``weights2`` (H, O),
    ``bias2`` (O,).
    """

    mean: FloatArray
    scale: FloatArray
    weights1: FloatArray
    bias1: FloatArray
    weights2: FloatArray
    bias2: FloatArray

    def outputs(self, inputs: FloatArray) -> FloatArray:
        """Return the outputs (..., O) for inputs (..., F)."""
        hidden = np.maximum(self.standardised(inputs) @ self.weights1 + self.bias1, 0.0)
        outputs: FloatArray = hidden @ self.weights2 + self.bias2
        return outputs

    def standardised(self, inputs: FloatArray) -> FloatArray:
        """Return inputs (..., F) as the first layer takes them."""
        scaled: FloatArray = np.clip((inputs - self.mean) * self.scale, -CUT, CUT)
        return scaled


def logistic(logits: FloatArray) -> FloatArray:
    """Return probabilities (...) for logits (...)."""
    probabilities: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(logits, -60.0, 60.0)))
    return probabilities


def network_bytes(network: DenseNetwork, fields: tuple[str, ...]) -> bytes:
    """Return the file of a network.

    :param fields: names of its inputs, in order
    """
    numbers = {name: getattr(network, name) for name in _ARRAYS}
    return number_bytes(numbers, {'fields': fields})


def network_from(
    content: bytes, fields: tuple[str, ...], outputs: int, where: str
) -> DenseNetwork:
    """Return the network in a file.

    :param fields: names of the inputs that it will be given
    :param where: what the file is called in messages
    :raises EvaluationError: if it is none, or one for other fields or outputs
    """
    count = len(fields)
    sides = ((count,), (count,), (count, 'H'), ('H',), ('H', outputs), (outputs,))
    try:
        shapes = dict(zip(_ARRAYS, sides, strict=True))
        return DenseNetwork(**read_numbers(content, shapes, {'fields': fields}))
    except ValueError as err:
        raise EvaluationError(f'{where} is no network ({err}); train the rivals again') from err

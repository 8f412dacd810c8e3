"""The network of trained rivals: two layers in numpy, and its file.

A file holds numbers only, and the names of its input fields.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_ros.core.data_types import FloatArray

# Standardised inputs are cut here: what was never seen in training must not run away.
CUT = 4.0
LARGEST_FILE = 1 << 20
_MOST_HIDDEN = 1024
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
    buffer = io.BytesIO()
    numbers = {name: getattr(network, name).astype(np.float32) for name in _ARRAYS}
    np.savez(buffer, fields=np.array(fields), **numbers)
    return buffer.getvalue()


def network_from(
    content: bytes, fields: tuple[str, ...], outputs: int, where: str
) -> DenseNetwork:
    """Return the network in a file.

    :param fields: names of the inputs that it will be given
    :param where: what the file is called in messages
    :raises EvaluationError: if it is none, or one for other fields or outputs
    """
    try:
        arrays = _arrays(content, where)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as e:
        raise EvaluationError(
            f'{where} is no network ({" ".join(str(e).split())[:200]}); train the rivals again'
        ) from e
    known = tuple(str(name) for name in arrays.pop('fields').ravel().tolist())
    if known != fields:
        other = next((name for name in known if name not in fields), 'another order')
        raise EvaluationError(
            f'{where} was trained for other inputs ({other[:80]!r}); train the rivals again with '
            'this version'
        )
    return _checked(arrays, len(fields), outputs, where)


def _arrays(content: bytes, where: str) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # A few kilobytes may claim to unpack to anything.
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST_FILE:
            raise ValueError(f'{where} unpacks to more than 1 MiB')
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in (*_ARRAYS, 'fields')}


def _checked(
    arrays: Mapping[str, np.ndarray], fields: int, outputs: int, where: str
) -> DenseNetwork:
    hidden = arrays['bias1'].size
    shapes = ((fields,), (fields,), (fields, hidden), (hidden,), (hidden, outputs), (outputs,))
    numbers: list[FloatArray] = []
    for name, shape in zip(_ARRAYS, shapes, strict=True):
        array = arrays[name]
        if array.dtype != np.float32 or array.shape != shape or hidden > _MOST_HIDDEN:
            raise EvaluationError(
                f'{where} has {name} of {array.dtype} {list(array.shape)}, not of float32 '
                f'{list(shape)}; train the rivals again'
            )
        if not np.isfinite(array).all():
            raise EvaluationError(
                f'{where} has numbers in {name} that are not finite; train the rivals again'
            )
        numbers.append(array.astype(np.float64))
    return DenseNetwork(*numbers)

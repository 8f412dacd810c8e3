"""How the pictures of a bundle's calibration flights look, second by second.

``usual_pictures.yaml`` beside the manifest, made by `mmedge lab train pictures`::

    distance: {limit: 0.51, alarm: 4.2}
    veil: {limit: 0.5, alarm: 3.9}
    flicker: {limit: 0.031, alarm: 6.0}
    veil_weights: |
      -12.31 0.8412 ...
    pictures: |
      0.4812 0.1361 0.1412
      ...

A line is a second: brightness, contrast and sharpness (`Appearance`), geometric means over its
pictures. ``limit`` is what a value usually stays below, and ``alarm`` the sum of excesses, each a
share of the limit, from which on it is not by chance. Without flights by day there are no
``veil`` and ``veil_weights``, see `Veil`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.data_types import OF_WHOLE_PICTURE, Appearance, FloatArray
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.veil import LEAST, WEIGHTS, Veil
from mmedge_ros.untrusted_files import PlainYamlError, load_plain_yaml, shown

PICTURES_FILE = 'usual_pictures.yaml'
DISTANCE, VEIL, FLICKER = 'distance', 'veil', 'flicker'
_WEIGHTS = 'veil_weights'
# What distances are measured in, and differences are named by.
_NAMES = Appearance._fields[:OF_WHOLE_PICTURE]
_LARGEST_FILE = 1 << 20
_FEWEST, _MOST = 20, 10_000
_LINES = 11
_LARGEST, _LARGEST_WEIGHT = 1e3, 1e6
# A single second of another flight is no company.
_NEIGHBOUR = 3
# Of so many in like light something is usual.
_IN_LIKE_LIGHT = 50


class Bounds(NamedTuple):
    """What a value usually stays below, and how much more is an alarm, in such limits."""

    limit: float
    alarm: float


class UsualPictures:
    """The seconds of calibration flights; measures how far from them another one is.

    :param seconds: (N, 3) brightness, contrast and sharpness
    :param bounds: of distance and flicker, and of the veil where it is known
    """

    def __init__(
        self, seconds: FloatArray, bounds: Mapping[str, Bounds], veil: Veil | None = None
    ) -> None:
        self.seconds = seconds
        self.bounds = bounds
        self.veil = veil
        logs = logs_of(seconds)
        self._scale = 1.0 / np.maximum(logs.std(axis=0), LEAST)
        self._points = logs * self._scale

    def distance(self, second: FloatArray) -> float:
        """Return how far a second (3 or more,) is from the third nearest of these.

        In standard deviations of the logarithms.
        """
        away: FloatArray = self._points - logs_of(second[: len(_NAMES)]) * self._scale
        squares: FloatArray = (away * away).sum(axis=1)
        return math.sqrt(float(np.partition(squares, _NEIGHBOUR - 1)[_NEIGHBOUR - 1]))

    def difference(self, second: FloatArray) -> str:
        """Say what of a second (3 or more,) is most unlike these, beside what is usual."""
        second = second[: len(_NAMES)]
        like = np.argsort(np.abs(self._points[:, 0] - logs_of(second)[0] * self._scale[0]))
        usual = np.exp(np.median(logs_of(self.seconds[like[:_IN_LIKE_LIGHT]]), axis=0))
        ratios = np.log(np.maximum(second, LEAST) / np.maximum(usual, LEAST))
        most = int(np.argmax(np.abs(ratios * self._scale)))
        words = f'{_NAMES[most]} is {math.exp(ratios[most]):.2g} of the usual'
        return words if most == 0 else f'{words} in such light'


def logs_of(seconds: FloatArray) -> FloatArray:
    """Return logarithms of values that may be zero."""
    return np.asarray(np.log(np.maximum(seconds, LEAST)), np.float64)


def read_usual_pictures(bundle: Path) -> UsualPictures | None:
    """Read what a bundle knows of the pictures of its calibration flights; None if nothing.

    :raises EncodingError: if the file is wrong
    """
    path = bundle / PICTURES_FILE
    if not path.exists():
        return None
    try:
        content: Any = load_plain_yaml(path, _LARGEST_FILE)
    except PlainYamlError as err:
        raise EncodingError(str(err)) from err
    veil = _veil(path, content[_WEIGHTS]) if _WEIGHTS in content else None
    values = (DISTANCE, FLICKER) if veil is None else (DISTANCE, VEIL, FLICKER)
    bounds = {name: _bounds(path, name, content.get(name)) for name in values}
    return UsualPictures(_seconds(path, content.get('pictures')), bounds, veil)


def usual_pictures_text(usual: UsualPictures, about: Sequence[str]) -> str:
    """Return what `read_usual_pictures` reads, with lines ``about`` it at the top."""
    lines = [f'# {line}' for line in about]
    for name, (limit, alarm) in usual.bounds.items():
        lines.append(f'{name}: {{limit: {limit:.4g}, alarm: {alarm:.4g}}}')
    if usual.veil is not None:
        lines.append(f'{_WEIGHTS}: |')
        rows = np.array_split(usual.veil.weights, _LINES)
        lines += ['  ' + ' '.join(f'{value:.6g}' for value in row) for row in rows]
    lines.append('pictures: |')
    lines += ['  ' + ' '.join(f'{value:.4f}' for value in row) for row in usual.seconds]
    return '\n'.join(lines) + '\n'


def _bounds(path: Path, name: str, entry: Any) -> Bounds:
    values = [entry.get(key) if isinstance(entry, Mapping) else None for key in Bounds._fields]
    if not all(_is_positive(value) for value in values):
        raise EncodingError(
            f'{path} has {name} {shown(entry)}; it must be {{limit: ..., alarm: ...}}, both above '
            f'0 and at most {_LARGEST:g}; make it again with `mmedge lab train pictures`'
        )
    return Bounds(*(float(value) for value in values if value is not None))


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0.0 < value <= _LARGEST


def _veil(path: Path, text: Any) -> Veil:
    weights = _numbers([text.split()] if isinstance(text, str) else []).ravel()
    if len(weights) != WEIGHTS or not (np.abs(weights) < _LARGEST_WEIGHT).all():
        raise EncodingError(
            f'{path} has {_WEIGHTS} {shown(text)}; it must be {WEIGHTS} numbers; make it again '
            'with `mmedge lab train pictures`'
        )
    return Veil(weights)


def _numbers(rows: Sequence[Sequence[str]]) -> FloatArray:
    """Return words as numbers; nothing where one is none, or rows have different lengths."""
    try:
        return np.array([[float(word) for word in row] for row in rows], np.float64)
    except ValueError:
        return np.zeros(0)


def _seconds(path: Path, text: Any) -> FloatArray:
    rows = _numbers([line.split() for line in text.splitlines()] if isinstance(text, str) else [])
    fits = rows.ndim == 2 and rows.shape[1] == len(_NAMES) and _FEWEST <= len(rows) <= _MOST
    if not fits or not (np.isfinite(rows).all() and (rows >= 0.0).all() and rows.max() < _LARGEST):
        raise EncodingError(
            f'{path} has pictures {shown(text)}; it must be {_FEWEST} to {_MOST} lines of '
            f'{len(_NAMES)} numbers; make it again with `mmedge lab train pictures`'
        )
    return np.asarray(rows)

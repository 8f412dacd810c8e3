"""Calibration files: the camera_info YAML of camera_calibration, and optional transforms.

::

    image_width: 640
    image_height: 480
    camera_matrix: {rows: 3, cols: 3, data: [...]}
    distortion_model: plumb_bob
    distortion_coefficients: {rows: 1, cols: 5, data: [...]}
    transforms:                       # our addition, optional
    - parent: radar_link
      child: camera_color_optical_frame
      translation: [0.0, -0.07, -0.05]      # m
      rotation: [-0.5, 0.5, -0.5, 0.5]      # quaternion x, y, z, w
    calibrated: 2026-11-29            # when, optional

Either part may be left out.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_ros.core.untrusted_files import PlainYamlError, load_plain_yaml, shown
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.transforms import StampedTransform, static_transform

# A calibration takes one kilobyte; a file this large is something else.
MAX_BYTES = 200_000
MAX_TRANSFORMS = 1000

_CAMERA_KEYS = ('image_width', 'image_height', 'camera_matrix')


class Calibration(NamedTuple):
    """What a calibration file holds."""

    camera: CameraModel | None
    transforms: list[StampedTransform]
    calibrated: date | None = None


def read_calibration(path: str | Path) -> Calibration:
    """Read a calibration file.

    :raises GeometryError: with file, key and remedy, if it cannot be used
    """
    try:
        content = load_plain_yaml(path, MAX_BYTES)
    except PlainYamlError as error:
        raise GeometryError(f'{error}; give a file in the format of camera_calibration') from error
    try:
        camera = _camera(content) if any(key in content for key in _CAMERA_KEYS) else None
        transforms = _transforms(content.get('transforms'))
        if camera is None and not transforms:
            raise GeometryError(
                f'neither a camera ({", ".join(_CAMERA_KEYS)}) nor transforms; '
                'give a file in the format of camera_calibration'
            )
        calibrated = content.get('calibrated')
        if isinstance(calibrated, datetime):
            calibrated = calibrated.date()
        if not isinstance(calibrated, date | None):
            raise GeometryError(f'calibrated is {shown(calibrated)}; expected a day: 2026-11-29')
    except GeometryError as error:
        raise GeometryError(f'{path}: {error}') from error
    return Calibration(camera, transforms, calibrated)


def _camera(content: dict[Any, Any]) -> CameraModel:
    matrix = _matrix(content, 'camera_matrix')
    if len(matrix) != 9:
        raise GeometryError(f'camera_matrix.data has {len(matrix)} numbers; expected 9')
    d = _matrix(content, 'distortion_coefficients') if 'distortion_coefficients' in content else []
    model = content.get('distortion_model', 'plumb_bob' if d else 'none')
    if not isinstance(model, str):
        raise GeometryError(f'distortion_model is {model!r}; expected a name such as plumb_bob')
    return CameraModel(
        _pixels(content, 'image_width'),
        _pixels(content, 'image_height'),
        np.reshape(matrix, (3, 3)),
        np.array(d, np.float64),
        model if d else 'none',
    )


def _pixels(content: dict[Any, Any], key: str) -> int:
    value = _present(content, key)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**31:
        raise GeometryError(f'{key} is {shown(value)}; expected a whole number of pixels')
    return value


def _matrix(content: dict[Any, Any], key: str) -> list[float]:
    part = _present(content, key)
    if not isinstance(part, dict):
        raise GeometryError(f'{key} is {shown(part)}; expected rows, cols and data')
    return _numbers(_present(part, 'data', f'{key}.'), f'{key}.data')


def _transforms(entries: Any) -> list[StampedTransform]:
    if entries is None:
        return []
    if not isinstance(entries, list) or len(entries) > MAX_TRANSFORMS:
        raise GeometryError(
            f'transforms is {shown(entries)}; expected a list of at most {MAX_TRANSFORMS} '
            'with parent, child, translation and rotation'
        )
    return [_transform(entry, f'transforms[{index}]') for index, entry in enumerate(entries)]


def _transform(entry: Any, place: str) -> StampedTransform:
    if not isinstance(entry, dict):
        raise GeometryError(f'{place} is {shown(entry)}; expected parent, child, translation, ...')
    names = [_present(entry, key, f'{place}.') for key in ('parent', 'child')]
    if not all(isinstance(name, str) for name in names):
        raise GeometryError(f'{place}: parent and child are {shown(names)}; expected frame names')
    translation, rotation = (
        _numbers(_present(entry, key, f'{place}.'), f'{place}.{key}')
        for key in ('translation', 'rotation')
    )
    try:
        return static_transform(names[0], names[1], translation, rotation)
    except GeometryError as error:
        raise GeometryError(f'{place}: {error}') from error


def _present(part: dict[Any, Any], key: str, prefix: str = '') -> Any:
    if key not in part:
        raise GeometryError(f'key {prefix}{key} is missing; add it')
    return part[key]


def _numbers(values: Any, place: str) -> list[float]:
    if not isinstance(values, list) or len(values) > 64:
        raise GeometryError(f'{place} is {shown(values)}; expected a list of numbers')
    return [_number(value, f'{place}[{index}]') for index, value in enumerate(values)]


def _number(value: Any, place: str) -> float:
    try:
        # YAML 1.1 takes 1e-5 (no dot) for a string, and numpy prints such numbers.
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise GeometryError(f'{place} is {shown(value)}; expected a finite number')
    return number

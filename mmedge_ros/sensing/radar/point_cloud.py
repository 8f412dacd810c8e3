"""Radar returns from sensor_msgs/PointCloud2.

Messages are duck-typed: an rclpy message and a rosbags object have the same attributes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import RETURN_FIELDS
from mmedge_ros.sensing import SensingError, byte_view

# Field names that drivers use, best first; compared without regard to case.
_ALIASES = {
    'x': ('x',),
    'y': ('y',),
    'z': ('z',),
    'velocity': (
        'velocity',
        'doppler',
        'radial_velocity',
        'v_doppler',
        'doppler_velocity',
        'radial_speed',
        'doppler_mps',
        'range_rate',
        'velocity_mps',
        'vel',
        'v_r',
        'v',
    ),
    'snr': ('snr', 'snr_db', 'snrdb', 'intensity', 'power', 'amplitude', 'rcs'),
}
_REQUIRED = ('x', 'y', 'z')

# sensor_msgs/PointField datatype constants.
_DATATYPES = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}

# Ten times the densest depth camera; a radar sends hundreds.
MAX_POINTS = 10_000_000


class _Field(NamedTuple):
    """What matters of a sensor_msgs/PointField."""

    name: str
    offset: int
    datatype: int
    values: int


def decode_points(message: Any) -> NDArray[np.float32]:
    """Return the points of a PointCloud2 as (N, 5) float32: x, y, z, velocity, snr.

    Metres, m/s (positive = receding) and dB in the sensor's frame. Velocity and snr are NaN
    where the cloud has no such field. Rows of an organised cloud follow each other. Values
    are not judged here (see `filter_returns`); a float64 beyond float32 becomes infinite.

    :raises SensingError: if x, y or z is missing or the sizes do not fit the data
    """
    data = byte_view(message.data, 'point cloud')
    rows = _rows(message, data)
    fields = tuple(
        _Field(str(f.name), int(f.offset), int(f.datatype), int(f.count)) for f in message.fields
    )
    layout = _layout(fields, int(message.point_step), bool(message.is_bigendian))
    points = np.full((rows.shape[0] * rows.shape[1], len(RETURN_FIELDS)), np.nan, np.float32)
    if len(points):
        records = np.ascontiguousarray(rows).view(layout).reshape(-1)
        with np.errstate(over='ignore', invalid='ignore'):
            for name in layout.names or ():
                points[:, RETURN_FIELDS.index(name)] = records[name]
    return points


def _rows(message: Any, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the points' bytes as (height, width, point_step), row padding left out."""
    width, height = int(message.width), int(message.height)
    point_step, row_step = int(message.point_step), int(message.row_step)
    if width < 0 or height < 0 or width * height > MAX_POINTS:
        raise SensingError(
            f'point cloud of {width} x {height} points; at most {MAX_POINTS} are accepted'
        )
    if width * height == 0:
        return np.zeros((0, 0, max(point_step, 0)), np.uint8)
    if point_step <= 0 or row_step < width * point_step or data.size != row_step * height:
        raise SensingError(
            f'point cloud of {width} x {height} points has {data.size} bytes with '
            f'point_step {point_step} and row_step {row_step}; expected row_step of at least '
            f'width x point_step and row_step x height bytes'
        )
    rows = data.reshape(height, row_step)[:, : width * point_step]
    return rows.reshape(height, width, point_step)


@lru_cache(maxsize=32)
def _layout(fields: tuple[_Field, ...], point_step: int, big_endian: bool) -> np.dtype[np.void]:
    """Return the structured dtype that picks our fields from one point of ``point_step``."""
    chosen = {name: _find(fields, name) for name in RETURN_FIELDS}
    present = {name: field for name, field in chosen.items() if field is not None}
    missing = [name for name in _REQUIRED if name not in present]
    if missing:
        known = ', '.join(field.name for field in fields) or 'none'
        raise SensingError(
            f'point cloud has no field {", ".join(missing)} (its fields: {known}); '
            'is this the radar topic?'
        )
    order = '>' if big_endian else '<'
    formats = [order + _format_of(field, point_step) for field in present.values()]
    return np.dtype(
        {
            'names': list(present),
            'formats': formats,
            'offsets': [field.offset for field in present.values()],
            'itemsize': point_step,
        }
    )


def _find(fields: tuple[_Field, ...], name: str) -> _Field | None:
    named = {field.name.lower(): field for field in reversed(fields)}
    return next((named[alias] for alias in _ALIASES[name] if alias in named), None)


def _format_of(field: _Field, point_step: int) -> str:
    code = _DATATYPES.get(field.datatype)
    if code is None:
        raise SensingError(
            f'point cloud field {field.name!r} has datatype {field.datatype}; '
            'the PointField constants go from 1 to 8'
        )
    # Some drivers leave count at 0 and mean 1.
    if field.values > 1:
        raise SensingError(f'point cloud field {field.name!r} holds {field.values} values, not 1')
    if field.offset < 0 or field.offset + int(code[1]) > point_step:
        raise SensingError(
            f'point cloud field {field.name!r} at offset {field.offset} lies outside '
            f'a point of {point_step} bytes'
        )
    return code

"""Radar returns out of PointCloud2 messages."""

from __future__ import annotations

import array
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.point_cloud import MAX_POINTS, decode_points

DATATYPES = {'i1': 1, 'u1': 2, 'i2': 3, 'u2': 4, 'i4': 5, 'u4': 6, 'f4': 7, 'f8': 8}
VALUES = np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10], [11, 12, 13, 14, 15]], float)


def field(name: str, offset: int, datatype: int = 7, count: int = 1) -> SimpleNamespace:
    return SimpleNamespace(name=name, offset=offset, datatype=datatype, count=count)


def cloud(
    names: tuple[str, ...] = ('x', 'y', 'z', 'velocity', 'snr'),
    columns: NDArray[Any] = VALUES,
    code: str = 'f4',
    big_endian: bool = False,
    gap: int = 0,
    **changes: Any,
) -> SimpleNamespace:
    """Build an unorganised cloud; ``gap`` bytes of rubbish follow each point."""
    order = '>' if big_endian else '<'
    rows = np.ascontiguousarray(columns.astype(order + code)).view(np.uint8)
    rows = np.pad(rows.reshape(len(columns), -1), ((0, 0), (0, gap)), constant_values=0xAB)
    size = np.dtype(code).itemsize
    fields = [field(name, size * at, DATATYPES[code]) for at, name in enumerate(names)]
    message = SimpleNamespace(
        width=len(columns),
        height=1,
        fields=fields,
        is_bigendian=big_endian,
        point_step=rows.shape[1],
        row_step=rows.size,
        data=rows.tobytes(),
    )
    vars(message).update(changes)
    return message


@pytest.mark.parametrize('code', DATATYPES)
@pytest.mark.parametrize('big_endian', [False, True])
@pytest.mark.parametrize('gap', [0, 3])
def test_every_datatype_is_read_in_both_byte_orders(code: str, big_endian: bool, gap: int) -> None:
    points = decode_points(cloud(code=code, big_endian=big_endian, gap=gap))
    np.testing.assert_array_equal(points, VALUES)
    assert points.dtype == np.float32


def test_fields_are_found_by_name_not_by_place() -> None:
    names = ('snr', 'z', 'noise', 'velocity', 'x', 'y')
    columns = np.column_stack([VALUES[:, 4], VALUES[:, 2], [0, 0, 0], VALUES[:, [3, 0, 1]]])
    np.testing.assert_array_equal(decode_points(cloud(names, columns)), VALUES)


@pytest.mark.parametrize('velocity', ['doppler', 'radial_velocity', 'Doppler_MPS', 'v_doppler'])
@pytest.mark.parametrize('snr', ['intensity', 'SNR_dB', 'power', 'rcs'])
def test_the_names_of_other_drivers_are_known(velocity: str, snr: str) -> None:
    names = ('x', 'y', 'z', velocity, snr)
    np.testing.assert_array_equal(decode_points(cloud(names)), VALUES)


def test_the_best_name_wins_where_a_cloud_has_several() -> None:
    names = ('x', 'y', 'z', 'velocity', 'snr', 'intensity')
    columns = np.column_stack([VALUES, [0, 0, 0]])
    np.testing.assert_array_equal(decode_points(cloud(names, columns)), VALUES)


def test_missing_velocity_and_snr_are_nan() -> None:
    points = decode_points(cloud(('x', 'y', 'z'), VALUES[:, :3]))
    np.testing.assert_array_equal(points[:, :3], VALUES[:, :3])
    assert np.isnan(points[:, 3:]).all()


@pytest.mark.parametrize('missing', ['x', 'y', 'z'])
def test_a_missing_coordinate_is_an_error_that_lists_the_fields(missing: str) -> None:
    names = tuple('q' if name == missing else name for name in ('x', 'y', 'z', 'velocity'))
    with pytest.raises(SensingError, match=rf'no field {missing} \(its fields: .*velocity'):
        decode_points(cloud(names, VALUES[:, :4]))


def test_an_organised_cloud_is_read_row_by_row_without_its_padding() -> None:
    points = np.arange(30, dtype='<f4').reshape(2, 3, 5)
    rows = np.pad(points.reshape(2, 15).view(np.uint8), ((0, 0), (0, 8)), constant_values=0xFF)
    message = cloud(
        width=3,
        height=2,
        point_step=20,
        row_step=rows.shape[1],
        data=array.array('B', rows.tobytes()),
    )
    np.testing.assert_array_equal(decode_points(message), points.reshape(6, 5))


@pytest.mark.parametrize('changes', [{'width': 0}, {'height': 0}, {'width': 0, 'point_step': 0}])
def test_an_empty_cloud_has_no_returns(changes: dict[str, int]) -> None:
    message = cloud(data=b'', row_step=0, **{'point_step': 20, **changes})
    if message.point_step:
        assert decode_points(message).shape == (0, 5)
    else:
        with pytest.raises(SensingError):
            decode_points(message)


@pytest.mark.parametrize(
    'changes',
    [
        {'data': bytes(59)},
        {'data': bytes(61)},
        {'width': 4},
        {'height': 2},
        {'row_step': 59},
        {'row_step': 0},
        {'point_step': 0},
        {'point_step': 21},
    ],
)
def test_sizes_that_do_not_fit_the_data_are_an_error(changes: dict[str, Any]) -> None:
    with pytest.raises(SensingError, match=r'points has \d+ bytes with point_step'):
        decode_points(cloud(**changes))


@pytest.mark.parametrize(
    ('width', 'height'), [(2**32 - 1, 1), (2**31, 2**31), (MAX_POINTS + 1, 1)]
)
def test_absurd_counts_are_refused(width: int, height: int) -> None:
    with pytest.raises(SensingError, match=f'at most {MAX_POINTS}'):
        decode_points(cloud(width=width, height=height))


@pytest.mark.parametrize(
    ('bad', 'reason'),
    [
        (field('x', 17), 'outside'),
        (field('x', -4), 'outside'),
        (field('x', 2**31), 'outside'),
        (field('x', 0, datatype=0), 'datatype 0'),
        (field('x', 0, datatype=9), 'datatype 9'),
        (field('x', 0, count=3), 'holds 3 values'),
    ],
)
def test_a_field_that_cannot_be_is_an_error_that_names_it(
    bad: SimpleNamespace, reason: str
) -> None:
    message = cloud()
    message.fields[0] = bad
    with pytest.raises(SensingError, match=rf"'x'.*{reason}"):
        decode_points(message)


def test_a_strange_field_that_is_not_ours_does_no_harm() -> None:
    message = cloud()
    message.fields.append(field('histogram', 900, datatype=77, count=33))
    np.testing.assert_array_equal(decode_points(message), VALUES)


@pytest.mark.filterwarnings('error')
def test_doubles_beyond_a_float_become_infinite_without_a_warning() -> None:
    columns = np.full((1, 5), 1e300)
    assert np.isinf(decode_points(cloud(columns=columns, code='f8'))).all()


@given(
    data=st.binary(max_size=120),
    width=st.integers(0, 2**32 - 1) | st.integers(0, 4),
    height=st.integers(0, 2**32 - 1) | st.integers(0, 3),
    point_step=st.integers(0, 2**32 - 1) | st.integers(12, 20),
    row_step=st.integers(0, 2**32 - 1) | st.integers(12, 60),
    offsets=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 16), min_size=3, max_size=3),
    datatype=st.integers(0, 255) | st.integers(1, 8),
)
def test_any_cloud_gives_returns_or_the_error(
    data: bytes,
    width: int,
    height: int,
    point_step: int,
    row_step: int,
    offsets: list[int],
    datatype: int,
) -> None:
    message = cloud(width=width, height=height, point_step=point_step, row_step=row_step)
    message.data = data
    message.fields = [
        field(name, at, datatype) for name, at in zip(('x', 'y', 'z'), offsets, strict=True)
    ]
    try:
        points = decode_points(message)
    except SensingError:
        return
    assert points.shape == (width * height, 5)

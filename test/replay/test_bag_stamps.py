"""Stamps in serialised messages, against the deserialiser of rosbags."""

from __future__ import annotations

import bag_fixtures as flight
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.replay.bag_stamps import header_stamp_ns, with_stamp
from mmedge_ros.replay.bag_storage import BagError

EARLIEST_NS = -(2**31) * 10**9
LATEST_NS = 2**31 * 10**9 - 1
BUILDERS = {
    'image': flight.image,
    'compressed': flight.compressed_image,
    'points': flight.point_cloud,
    'camera_info': lambda number, at: flight.camera_info(at),
}


def raw_of(kind: str, stamp_ns: int, little: bool) -> tuple[bytes, str]:
    message = BUILDERS[kind](0, stamp_ns)
    name = message.__msgtype__
    return bytes(flight.STORE.serialize_cdr(message, name, little_endian=little)), name


@pytest.mark.parametrize('kind', BUILDERS)
@given(stamp_ns=st.integers(EARLIEST_NS, LATEST_NS), little=st.booleans())
def test_the_stamp_is_read_as_the_deserialiser_reads_it(
    kind: str, stamp_ns: int, little: bool
) -> None:
    raw, _ = raw_of(kind, stamp_ns, little)
    assert header_stamp_ns(raw) == stamp_ns
    assert header_stamp_ns(memoryview(raw)) == stamp_ns


@pytest.mark.parametrize('kind', BUILDERS)
@pytest.mark.parametrize('little', [True, False])
@pytest.mark.parametrize('new_ns', [0, 1, 1_700_000_000_123_456_789, LATEST_NS, EARLIEST_NS])
def test_a_new_stamp_changes_nothing_else(kind: str, little: bool, new_ns: int) -> None:
    raw, name = raw_of(kind, 5_000_000_007, little)
    before = flight.STORE.deserialize_cdr(raw, name)
    after = flight.STORE.deserialize_cdr(with_stamp(raw, new_ns), name)
    stamp = after.header.stamp
    assert stamp.sec * 10**9 + stamp.nanosec == new_ns
    after.header.stamp = before.header.stamp
    for field in before.__dataclass_fields__:
        one, other = getattr(before, field), getattr(after, field)
        assert np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


@pytest.mark.parametrize(
    'raw', [b'', b'\x00', b'\x00\x01\x00\x00', b'\x00\x01' + bytes(9), b'\x07\x01' + bytes(40)]
)
def test_bytes_without_a_header_are_an_error(raw: bytes) -> None:
    with pytest.raises(BagError, match='no CDR message'):
        header_stamp_ns(raw)
    with pytest.raises(BagError, match='no CDR message'):
        with_stamp(raw, 1)


def test_a_stamp_with_too_many_nanoseconds_is_an_error() -> None:
    with pytest.raises(BagError, match='4294967295 ns within a second'):
        header_stamp_ns(b'\x00\x01\x00\x00' + bytes(4) + b'\xff' * 4)


@pytest.mark.parametrize('stamp_ns', [EARLIEST_NS - 1, LATEST_NS + 1])
def test_a_stamp_that_does_not_fit_is_an_error(stamp_ns: int) -> None:
    raw, _ = raw_of('points', 0, True)
    with pytest.raises(BagError, match='does not fit'):
        with_stamp(raw, stamp_ns)

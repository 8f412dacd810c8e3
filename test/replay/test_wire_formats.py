"""Stamps in serialised messages, against the deserialiser of rosbags."""

from __future__ import annotations

from contextlib import suppress

import bag_fixtures as flight
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rosbags.typesys import Stores, get_typestore

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.ego_motion import ego_state
from mmedge_ros.replay import BagError
from mmedge_ros.replay.wire_formats import (
    ego_report_from_bytes,
    header_stamp_ns,
    with_moved_transforms,
    with_stamp,
)

TF_MESSAGE = 'tf2_msgs/msg/TFMessage'
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


STORE = get_typestore(Stores.ROS2_KILTED)
KIND = 'nav_msgs/msg/Odometry'


def message(frame_id: str, base_frame: str, numbers: list[float], sec: int, nanosec: int):  # type: ignore[no-untyped-def]
    kinds = STORE.types
    vector, point = kinds['geometry_msgs/msg/Vector3'], kinds['geometry_msgs/msg/Point']
    quaternion = kinds['geometry_msgs/msg/Quaternion']
    covariance = np.arange(36, dtype=np.float64)
    stamp = kinds['builtin_interfaces/msg/Time'](sec, nanosec)
    pose = kinds['geometry_msgs/msg/Pose'](point(*numbers[:3]), quaternion(*numbers[3:7]))
    twist = kinds['geometry_msgs/msg/Twist'](vector(*numbers[7:10]), vector(*numbers[10:13]))
    return kinds[KIND](
        kinds['std_msgs/msg/Header'](stamp, frame_id),
        base_frame,
        kinds['geometry_msgs/msg/PoseWithCovariance'](pose, covariance),
        kinds['geometry_msgs/msg/TwistWithCovariance'](twist, -covariance),
    )


NAMES = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=20)
NUMBERS = st.lists(st.floats(-100.0, 100.0), min_size=13, max_size=13)


@given(
    NAMES, NAMES, NUMBERS, st.integers(0, 2**31 - 1), st.integers(0, 999_999_999), st.booleans()
)
def test_bytes_are_read_as_their_message_is(
    frame_id: str, base_frame: str, numbers: list[float], sec: int, nanosec: int, little: bool
) -> None:
    numbers[3] = 1.0 + abs(numbers[3])  # some orientation
    sent = message(frame_id, base_frame, numbers, sec, nanosec)
    raw = bytes(STORE.serialize_cdr(sent, KIND, little_endian=little))
    report = ego_report_from_bytes(raw, 7)
    names = frame_id.lstrip('/'), base_frame.lstrip('/')
    assert (report.available_ns, report.frame_id, report.base_frame) == (7, *names)
    stamp_ns = sec * NS_PER_S + nanosec
    expected = ego_state(stamp_ns, numbers[:3], numbers[3:7], numbers[7:10], numbers[10:])
    assert report.state.stamp_ns == expected.stamp_ns
    np.testing.assert_array_equal(report.state.pose.translation, expected.pose.translation)
    np.testing.assert_array_equal(report.state.pose.rotation, expected.pose.rotation)
    np.testing.assert_array_equal(report.state.velocity, expected.velocity)
    np.testing.assert_array_equal(report.state.angular_velocity, expected.angular_velocity)


def serialized() -> bytes:
    numbers = [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0, *[0.5] * 6]
    return bytes(STORE.serialize_cdr(message('odom', 'base_link', numbers, 1, 2), KIND))


@pytest.mark.parametrize('raw', [b'', b'\0', b'\0\2' + 900 * b'\0', b'\0\7', b'\1\1\0\0'])
def test_another_serialization_is_refused(raw: bytes) -> None:
    with pytest.raises(BagError, match='plain CDR'):
        ego_report_from_bytes(raw, 0)


# The covariance of the twist, at the end, is not read.
@given(st.integers(4, len(serialized()) - 36 * 8 - 1))
def test_what_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(BagError):
        ego_report_from_bytes(serialized()[:length], 0)


@given(st.binary(max_size=800), st.sampled_from([b'\0\0\0\0', b'\0\1\0\0']))
def test_any_bytes_are_read_or_refused(raw: bytes, head: bytes) -> None:
    try:
        report = ego_report_from_bytes(head + raw, 0)
    except (BagError, GeometryError):
        return
    assert np.isfinite(report.state.pose.translation).all()


def edges(*names: tuple[str, str], little: bool = True) -> bytes:
    made = []
    for parent, child in names:
        (edge,) = flight.static_transforms(flight.BEGIN_NS).transforms
        edge.header.frame_id, edge.child_frame_id = parent, child
        made.append(edge)
    message = flight.TYPES[TF_MESSAGE](transforms=made)
    return bytes(flight.STORE.serialize_cdr(message, TF_MESSAGE, little_endian=little))


@given(
    names=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=4),
    little=st.booleans(),
)
def test_transforms_keep_everything_but_their_stamps(
    names: list[tuple[str, str]], little: bool
) -> None:
    names = [(a.replace('\0', ''), b.replace('\0', '')) for a, b in names]
    raw = edges(*names, little=little)
    before = flight.STORE.deserialize_cdr(raw, TF_MESSAGE)
    after = flight.STORE.deserialize_cdr(with_moved_transforms(raw, 7 * NS_PER_S + 1), TF_MESSAGE)
    assert len(after.transforms) == len(names)
    for old, new in zip(before.transforms, after.transforms, strict=True):
        assert new.header.stamp.sec == old.header.stamp.sec + 7
        assert new.header.stamp.nanosec == old.header.stamp.nanosec + 1
        assert (new.header.frame_id, new.child_frame_id, new.transform) == (
            old.header.frame_id,
            old.child_frame_id,
            old.transform,
        )


@given(cut=st.integers(0, 200), at=st.integers(0, 30), byte=st.integers(0, 255))
def test_damaged_transforms_are_refused_or_keep_their_length(cut: int, at: int, byte: int) -> None:
    raw = bytearray(edges(('odom', 'base_link'), ('base_link', 'radar_link')))
    raw[at] = byte
    whole = bytes(raw[: len(raw) - cut])
    with suppress(BagError):
        assert len(with_moved_transforms(whole, NS_PER_S)) == len(whole)


def test_transforms_that_end_too_soon_are_refused() -> None:
    raw = edges(('odom', 'base_link'))
    for length in range(len(raw)):
        with pytest.raises(BagError, match='are no transforms'):
            with_moved_transforms(raw[:length], 0)

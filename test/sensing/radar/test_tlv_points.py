"""Points come out as they were measured, or not at all."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.tlv_packet import SIDE_INFORMATION, TlvPacket
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import PointLimits, detected_points
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, assemble, write_packet

FLOATS = BoardIdentity()
INTEGERS = BoardIdentity(version=0x02010004, platform=0xA1642, velocity_step=0.25)
LIMITS = PointLimits(20.0, 5.0, 256, 0.25)


def parsed(*packets: bytes) -> list[TlvPacket]:
    parser = TlvParser()
    found = parser.feed(b''.join(packets)) + parser.finish()
    assert len(found) == len(packets)
    return found


def rows(*points: tuple[float, ...]) -> np.ndarray:
    return np.array(points, np.float32).reshape(-1, 6)


def test_float_points_keep_every_bit() -> None:
    sent = rows((0.1, 2.0, -0.3, 1.7, 12.3, 65.4), (3.0, 4.0, 5.0, -0.2, 20.0, 70.1))
    found = detected_points(parsed(write_packet(FLOATS, 1, sent)))
    np.testing.assert_array_equal(found.position, sent[:, :3])
    np.testing.assert_array_equal(found.velocity, sent[:, 3])
    np.testing.assert_allclose(found.snr, sent[:, 4], atol=0.01)
    np.testing.assert_allclose(found.noise, sent[:, 5], atol=0.01)


def test_integer_points_are_scaled_by_their_binary_point_and_the_doppler_step() -> None:
    sent = rows((0.5, 2.25, -0.125, -1.5, 0, 0))
    packets = parsed(write_packet(INTEGERS, 1, sent))
    found = detected_points(packets, LIMITS)
    np.testing.assert_array_equal(found.position, sent[:, :3])
    assert found.doppler_index.tolist() == [-6]
    assert found.velocity.tolist() == [-1.5]
    assert np.isnan(found.snr).all()
    assert np.isnan(found.noise).all()
    unknown = detected_points(packets)
    assert unknown.doppler_index.tolist() == [-6]
    assert np.isnan(unknown.velocity).all()


def test_doppler_bins_that_are_counted_from_zero_become_signed() -> None:
    sent = rows(*((0.0, 1.0, 0.0, 0.25 * index, 0, 0) for index in (7, 8, 15)))
    packets = parsed(write_packet(INTEGERS, 1, sent))
    found = detected_points(packets, LIMITS._replace(wrapped_bins=16))
    assert found.doppler_index.tolist() == [7, -8, -1]
    assert found.velocity.tolist() == [1.75, -2.0, -0.25]


def test_points_know_their_packet_and_their_number_there() -> None:
    one, two = rows((0, 1, 0, 0, 1, 1)), rows((0, 2, 0, 0, 1, 1), (0, 3, 0, 0, 1, 1))
    none = rows()
    packets = parsed(
        write_packet(FLOATS, 1, two),
        write_packet(INTEGERS, 2, one),
        write_packet(FLOATS, 3, none),
        write_packet(INTEGERS, 4, two),
        write_packet(FLOATS, 5, one),
    )
    found = detected_points(packets)
    assert found.packet.tolist() == [0, 0, 1, 3, 3, 4]
    assert found.number.tolist() == [0, 1, 0, 0, 1, 0]
    assert found.position[:, 1].tolist() == [2, 3, 1, 2, 3, 1]
    assert len(detected_points([])) == 0


@pytest.mark.parametrize(
    'point',
    [
        (15.0, 15.0, 0.0, 0.0),
        (0.0, 21.0, 0.0, 0.0),
        (0.0, 1.0, 0.0, 5.5),
        (0.0, 1.0, 0.0, -5.5),
        (math.nan, 1.0, 0.0, 0.0),
        (0.0, math.inf, 0.0, 0.0),
        (0.0, 1.0, 3e38, 0.0),
        (0.0, 1.0, 0.0, math.nan),
        (0.0, 1.0, 0.0, 1.7e38),
    ],
)
def test_what_the_radar_cannot_measure_is_rejected_and_counted(point: tuple[float, ...]) -> None:
    good = (1.0, 2.0, 0.0, 1.0, 10.0, 10.0)
    sent = rows(good, (*point, 10.0, 10.0), good)
    found = detected_points(parsed(write_packet(FLOATS, 1, sent)), LIMITS)
    assert found.number.tolist() == [0, 2]
    assert found.rejected == 1


def test_integer_points_beyond_the_range_spectrum_are_rejected() -> None:
    sent = rows((0.0, 3.0, 0.0, 0.0, 0, 0), (0.0, 1.0, 0.0, 0.0, 0, 0))
    packets = parsed(write_packet(INTEGERS, 1, sent))
    # Their indices are 60 and 20 at 5 cm a bin.
    found = detected_points(packets, LIMITS._replace(range_bins=60))
    assert (found.number.tolist(), found.rejected) == ([1], 1)


def test_nothing_finite_is_rejected_without_a_configuration_that_any_radar_measures() -> None:
    sent = rows((0, 250, 0, 80, 1, 1))
    assert len(detected_points(parsed(write_packet(FLOATS, 1, sent)))) == 1


def test_side_information_that_does_not_tell_of_all_points_is_unknown() -> None:
    points = rows((0, 1, 0, 0, 1, 1), (0, 2, 0, 0, 1, 1))[:, :4].tobytes()
    packets = parsed(assemble(FLOATS, 1, 2, [(1, points), (SIDE_INFORMATION, bytes(7))]))
    found = detected_points(packets)
    assert len(found) == 2
    assert np.isnan(found.snr).all()


@given(st.binary(max_size=200), st.sampled_from([FLOATS, INTEGERS]))
def test_any_bytes_give_points_within_the_limits(value: bytes, board: BoardIdentity) -> None:
    parser = TlvParser()
    packets = parser.feed(assemble(board, 1, 3, [(1, value), (7, value)])) + parser.finish()
    found = detected_points(packets, LIMITS)
    assert (np.linalg.norm(found.position.astype(float), axis=1) <= LIMITS.max_range).all()
    assert (np.abs(found.velocity) <= LIMITS.max_speed).all()


def test_the_writer_refuses_points_of_another_shape() -> None:
    with pytest.raises(SensingError, match=r'shape \(2, 3\)'):
        write_packet(FLOATS, 1, np.zeros((2, 3), np.float32))

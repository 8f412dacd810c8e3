"""Scans are in the robot's axes and stamped with the middle of their chirps."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing.radar.chirp_configuration import configurations_folder, read_configuration
from mmedge_ros.sensing.radar.scan import ScanMaker
from mmedge_ros.sensing.radar.tlv_packet import TlvPacket
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, write_packet

CHIRPS = read_configuration(configurations_folder() / 'iwr6843_sdk3_20hz.cfg')
OLD_CHIRPS = read_configuration(configurations_folder() / 'iwr1443_sdk2_20hz.cfg')
NOW = 1_700_000_000 * NS_PER_S
POINT = (1.0, 5.0, -0.5, -1.5, 14.0, 60.0)


def packet(
    number: int = 1,
    statistics: tuple[int, ...] | None = None,
    points: tuple[tuple[float, ...], ...] = (POINT,),
    board: BoardIdentity = BoardIdentity(),  # noqa: B008
) -> TlvPacket:
    rows = np.array(points, np.float32).reshape(-1, 6)
    parser = TlvParser()
    (found,) = parser.feed(write_packet(board, number, rows, statistics)) + parser.finish()
    return found


def test_axes_are_forward_left_and_up() -> None:
    scan = ScanMaker(CHIRPS).make(packet(), NOW)
    assert scan is not None
    np.testing.assert_allclose(scan.points, [[5.0, -1.0, -0.5, -1.5, 14.0, 60.0]], rtol=1e-6)


def test_velocities_of_old_boards_come_from_the_chirps() -> None:
    board = BoardIdentity(0x02010004, 0xA1443, velocity_step=1.0)
    scan = ScanMaker(OLD_CHIRPS).make(packet(points=((0, 3, 0, -4, 0, 0),), board=board), NOW)
    assert scan is not None
    assert scan.points[0, 3] == pytest.approx(-4 * OLD_CHIRPS.velocity_step)
    assert np.isnan(scan.points[0, 4:]).all()


def test_stamps_are_dated_back_by_chirps_work_and_transmission() -> None:
    maker = ScanMaker(CHIRPS)
    plain, worked = packet(), packet(2, (4000, 0, 0, 0, 0, 0))
    chirping = 0.5 * CHIRPS.active_time
    assert maker.delay(plain) == pytest.approx(chirping + len(plain.data) / 92160)
    assert maker.delay(worked) == pytest.approx(chirping + len(worked.data) / 92160 + 0.004)
    scan = maker.make(plain, NOW)
    assert scan is not None
    assert NOW - scan.stamp_ns == pytest.approx(maker.delay(plain) * NS_PER_S, abs=1)
    assert scan.available_ns == NOW


def test_work_that_takes_longer_than_any_is_not_believed() -> None:
    maker = ScanMaker(CHIRPS)
    absurd = packet(1, (4_000_000_000, 0, 0, 0, 0, 0))
    assert maker.delay(absurd) < 0.02


def test_frames_and_points_are_counted() -> None:
    maker = ScanMaker(CHIRPS)
    far = (0.0, 90.0, 0.0, 0.0, 1.0, 1.0)
    for number, points in ((1, (POINT, far)), (2, ()), (2, (POINT,)), (6, (POINT,))):
        maker.make(packet(number, None, points), NOW + number * NS_PER_S // 20)
    counts = maker.counts
    assert (counts.frames, counts.repeated, counts.lost) == (3, 1, 3)
    assert (counts.points, counts.points_rejected) == (2, 1)


def test_a_scan_without_returns_is_a_scan() -> None:
    scan = ScanMaker(CHIRPS).make(packet(points=()), NOW)
    assert scan is not None
    assert scan.points.shape == (0, 6)


def test_a_new_configuration_starts_a_new_grid() -> None:
    maker = ScanMaker(CHIRPS)
    maker.make(packet(500), NOW)
    maker.reconfigure(CHIRPS.with_period(0.2))
    scan = maker.make(packet(1), NOW + 1000)
    assert scan is not None
    assert (maker.counts.restarts, maker.counts.lost, maker.counts.frames) == (0, 0, 2)

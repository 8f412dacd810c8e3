"""From packets of a radar to scans in the robot's axes, stamped with the time of measurement."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.sensing.radar.chirp_configuration import UART_BYTES_PER_S, ChirpConfiguration
from mmedge_ros.sensing.radar.stamps import FrameStamps
from mmedge_ros.sensing.radar.tlv_packet import TlvPacket
from mmedge_ros.sensing.radar.tlv_points import DetectedPoints, detected_points

SCAN_FIELDS = ('x', 'y', 'z', 'velocity', 'snr', 'noise')
# Longer than any board works on a frame; more is a damaged value.
_LONGEST_WORK = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class RadarScan:
    """One frame of a radar.

    ``points`` is (N, 6) float32: x forward, y left, z up (m), velocity (m/s, positive =
    receding), snr and noise (dB, NaN where the board sends none). ``stamp_ns`` is the middle
    of the frame's chirps, ``available_ns`` when its last byte was received.
    """

    frame_number: int
    stamp_ns: int
    available_ns: int
    points: NDArray[np.float32]


@dataclass
class ScanCounts:
    """What became of a radar's frames and points since the driver began.

    ``repeated`` frames had the number of the one before; ``lost`` are missing between numbers.
    """

    frames: int = 0
    lost: int = 0
    repeated: int = 0
    restarts: int = 0
    points: int = 0
    points_rejected: int = 0


@dataclass
class ScanMaker:
    """Makes scans of packets that follow each other.

    :param bytes_per_s: speed of the data port, from which the time of transmission follows
    """

    configuration: ChirpConfiguration
    bytes_per_s: float = UART_BYTES_PER_S
    counts: ScanCounts = field(default_factory=ScanCounts)

    def __post_init__(self) -> None:
        self._stamps = FrameStamps(self.configuration.period)

    def reconfigure(self, configuration: ChirpConfiguration) -> None:
        """Go on with packets of another configuration, or of a radar that was started anew."""
        self.configuration = configuration
        self._stamps.reset(configuration.period)

    def make(self, packet: TlvPacket, available_ns: int) -> RadarScan | None:
        """Return the scan of a packet; None for one that was there already."""
        measured_ns = available_ns - round(self.delay(packet) * NS_PER_S)
        stamp_ns = self._stamps.stamp(packet.frame_number, measured_ns)
        self.counts.lost = self._stamps.lost
        self.counts.restarts = self._stamps.restarts
        if stamp_ns is None:
            self.counts.repeated += 1
            return None
        points = detected_points([packet], self.configuration.limits)
        self.counts.frames += 1
        self.counts.points += len(points)
        self.counts.points_rejected += points.rejected
        return RadarScan(packet.frame_number, stamp_ns, available_ns, scan_points(points))

    def delay(self, packet: TlvPacket) -> float:
        """Seconds from the middle of a frame's chirps to the last byte of its packet."""
        statistics = packet.statistics()
        work = statistics.processing if statistics else 0.0
        if not work < _LONGEST_WORK:
            work = 0.0
        return 0.5 * self.configuration.active_time + work + len(packet.data) / self.bytes_per_s


def scan_points(points: DetectedPoints) -> NDArray[np.float32]:
    """Turn TI's axes (x right, y forward) into those of REP-103 (x forward, y left)."""
    scan = np.empty((len(points), len(SCAN_FIELDS)), np.float32)
    scan[:, 0] = points.position[:, 1]
    scan[:, 1] = -points.position[:, 0]
    scan[:, 2] = points.position[:, 2]
    scan[:, 3] = points.velocity
    scan[:, 4] = points.snr
    scan[:, 5] = points.noise
    return scan

"""What a simulated radar sends: recorded packets over and over, or a person who walks about."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.untrusted_files import read_bounded
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.capture_file import no_packet, parser_for
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, write_packet

_FRAME_NUMBER_OFFSET = 20
_MAX_CAPTURE_BYTES = 1 << 28
# Processing and transmission in us, margins in us, loads in percent.
_STATISTICS = (4000, 7500, 30000, 400, 10, 20)
# Static returns, x to the right and y forward in m: a wall, a post, the ground.
_SCENE = ((-3.0, 9.0, 0.4), (-1.0, 9.2, 0.5), (1.0, 9.1, 0.3), (3.0, 8.9, 0.6), (2.4, 5.0, -0.2))
_PERSON_POINTS = 6
# That of the configurations that ship for IWR1443, m/s.
_VELOCITY_STEP = 0.318


class BoardFrames(Protocol):
    """Gives a simulated board its identity and its packets."""

    @property
    def identity(self) -> BoardIdentity:
        """What the board says of itself."""

    def packet(self, number: int, elapsed: float) -> bytes:
        """Return the packet of frame ``number``, ``elapsed`` s after the sensor started."""


class RecordedFrames:
    """Plays the packets of a capture over and over, numbered anew.

    :raises SensingError: if the file cannot be read or holds no packet
    """

    def __init__(self, path: str | Path) -> None:
        data = read_bounded(path, _MAX_CAPTURE_BYTES, SensingError)
        parser = parser_for(data)
        packets = parser.feed(data) + parser.finish()
        if not packets:
            raise SensingError(no_packet(path, len(data)))
        self.identity = BoardIdentity(packets[0].version, packets[0].platform)
        self._packets = [packet.data for packet in packets]

    def packet(self, number: int, elapsed: float) -> bytes:  # noqa: ARG002  # only its turn counts
        packet = bytearray(self._packets[number % len(self._packets)])
        struct.pack_into('<I', packet, _FRAME_NUMBER_OFFSET, number & 0xFFFFFFFF)
        return bytes(packet)


class WalkingPerson:
    """A person who walks to and fro before a wall, as (noisy) points."""

    def __init__(self, identity: BoardIdentity | None = None) -> None:
        self.identity = identity or BoardIdentity()

    def packet(self, number: int, elapsed: float) -> bytes:
        points = walking_person(elapsed, np.random.default_rng(number))
        return write_packet(self.identity, number, points, _STATISTICS)


def board_frames(capture: str | Path | None, sdk: int = 3) -> BoardFrames:
    """Return the frames of a recording, or those of a walking person seen by a board of an SDK.

    :raises SensingError: if the recording cannot be played
    """
    if capture is not None:
        return RecordedFrames(capture)
    if sdk >= 3:
        return WalkingPerson()
    return WalkingPerson(
        BoardIdentity(version=0x02010004, platform=0xA1443, velocity_step=_VELOCITY_STEP)
    )


def walking_person(elapsed: float, random: np.random.Generator) -> NDArray[np.float32]:
    """Return (N, 6) points of the scene: x, y, z (TI axes, m), velocity (m/s), snr, noise (dB)."""
    sway = 0.5 * elapsed
    place = np.array([2.0 * np.sin(sway), 5.0 + np.cos(0.6 * sway), -0.1])
    motion = np.array([np.cos(sway), -0.3 * np.sin(0.6 * sway), 0.0])
    body = place + random.normal(0.0, (0.12, 0.08, 0.3), (_PERSON_POINTS, 3))
    receding = body @ motion / np.linalg.norm(body, axis=1)
    rows = np.zeros((_PERSON_POINTS + len(_SCENE), 6))
    rows[:_PERSON_POINTS, :3] = body
    rows[:_PERSON_POINTS, 3] = receding + random.normal(0.0, 0.08, _PERSON_POINTS)
    rows[_PERSON_POINTS:, :3] = np.array(_SCENE) + random.normal(0.0, 0.03, (len(_SCENE), 3))
    rows[:, 4] = random.uniform(12.0, 25.0, len(rows))
    rows[:, 5] = random.uniform(60.0, 70.0, len(rows))
    return rows.astype(np.float32)

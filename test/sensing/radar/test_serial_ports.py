"""Boards are found by their USB ids; what is found instead is named."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.serial_ports import RadarPorts, find_radar_ports


@dataclass
class Listed:
    device: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None
    location: str | None = None


def boost(first: int, serial_number: str = 'R001') -> list[Listed]:
    return [
        Listed(f'/dev/ttyACM{first + n}', 0x0451, 0xBEF3, serial_number, f'1-2:1.{interface}')
        for n, interface in enumerate((0, 3))
    ]


ISK = [Listed(f'/dev/ttyUSB{n}', 0x10C4, 0xEA70, '00E1', f'1-4:1.{n}') for n in (1, 0)]
OTHERS = [Listed('/dev/ttyS0'), Listed('/dev/ttyACM9', 0x2341, 0x0043, 'X', '1-1:1.0')]


def test_both_kinds_of_boards_are_found_among_other_ports() -> None:
    assert find_radar_ports([*OTHERS, *boost(3)]) == RadarPorts('/dev/ttyACM3', '/dev/ttyACM4')
    assert find_radar_ports([*ISK, *OTHERS]) == RadarPorts('/dev/ttyUSB0', '/dev/ttyUSB1')


def test_one_of_several_boards_is_chosen_by_its_serial_number() -> None:
    listed = [*boost(0, 'A'), *boost(2, 'B')]
    assert find_radar_ports(listed, 'B') == RadarPorts('/dev/ttyACM2', '/dev/ttyACM3')
    with pytest.raises(SensingError, match=r'2 radar boards .* \(serial numbers A, B\)'):
        find_radar_ports(listed)


def test_without_a_board_the_ports_that_are_there_are_named() -> None:
    with pytest.raises(SensingError, match=r'among the serial ports \(/dev/ttyACM9, /dev/ttyS0\)'):
        find_radar_ports(OTHERS)
    with pytest.raises(
        SensingError, match=r"with serial number 'C' among the serial ports \(none"
    ):
        find_radar_ports([], 'C')


def test_half_a_board_is_none() -> None:
    half = [boost(0)[0], Listed('/dev/ttyACM1', 0x0451, 0xBEF3, 'R001', None)]
    with pytest.raises(SensingError, match='no radar board'):
        find_radar_ports(half)

"""The simulated board looks, from the ports, like a real one with a real one's faults."""

from __future__ import annotations

import os
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmedge_ros.core.clock import SystemClock
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_configuration import (
    configuration_for,
    configurations_folder,
    read_configuration,
)
from mmedge_ros.sensing.radar.handshake import CommandLine, start_board
from mmedge_ros.sensing.radar.serial_ports import SerialPort
from mmedge_ros.sensing.radar.tlv_parser import TlvParser
from mmedge_ros.sensing.radar.tlv_points import detected_points
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity
from mmedge_ros.sensing.simulated_board.board import BOOT_NOISE, SimulatedBoard
from mmedge_ros.sensing.simulated_board.frames import RecordedFrames, WalkingPerson, board_frames
from mmedge_ros.sensing.simulated_board.shell import PROMPT, BoardShell

CHIRPS = read_configuration(configurations_folder() / 'iwr6843_sdk3_20hz.cfg')


@pytest.fixture
def board(tmp_path: Path) -> Iterator[SimulatedBoard]:
    with SimulatedBoard(WalkingPerson(), tmp_path / 'ports') as made:
        yield made


def read_until(port: SerialPort, words: bytes) -> bytes:
    heard = b''
    for _ in range(200):
        heard += port.read()
        if words in heard:
            return heard
    raise AssertionError(f'{words!r} did not come, but {heard!r}')


def test_it_is_configured_and_sends_packets_no_faster_than_the_wire(
    board: SimulatedBoard,
) -> None:
    command, data = (SerialPort(str(p), 115200) for p in (board.command_path, board.data_path))
    clock = SystemClock()
    start_board(CommandLine(command, clock), lambda _: CHIRPS)
    parser, packets, begin_ns = TlvParser(live=True), [], clock.monotonic_ns()
    while len(packets) < 6:
        packets += parser.feed(data.read())
    seconds = (clock.monotonic_ns() - begin_ns) / 1e9
    # On a busy machine one read brings several.
    assert [packet.frame_number for packet in packets] == list(range(1, len(packets) + 1))
    assert seconds > (len(packets) - 1) * CHIRPS.period
    assert parser.bytes_thrown_away == 0
    assert len(detected_points(packets)) == len(packets) * 11
    command.close()
    data.close()


def test_a_pulled_cable_is_an_error_and_its_links_are_gone(board: SimulatedBoard) -> None:
    port = SerialPort(str(board.data_path), 921600)
    board.unplug()
    board.unplug()
    with pytest.raises(SensingError, match=r'data is gone \(.*\); is the cable plugged in'):
        b''.join(port.read() for _ in range(5))
    with pytest.raises(SensingError, match='there is no such port; is the board plugged in'):
        SerialPort(str(board.data_path), 921600)
    with pytest.raises(SensingError, match='is gone'):
        port.write(b'anybody?')
    port.close()


def test_a_port_that_vanishes_while_it_is_opened_is_an_error(
    board: SimulatedBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(*_: object) -> None:
        raise termios.error(5, 'Input/output error')

    monkeypatch.setattr(termios, 'tcflush', vanished)
    with pytest.raises(SensingError, match=r'data cannot be opened: Input/output error$'):
        SerialPort(str(board.data_path), 921600)


def test_a_board_that_was_plugged_in_speaks_into_the_first_words(board: SimulatedBoard) -> None:
    board.unplug()
    board.plug_in(BOOT_NOISE)
    board.plug_in()
    port = SerialPort(str(board.command_path), 115200)
    port.write(b'sens')
    heard = read_until(port, PROMPT.encode())
    assert BOOT_NOISE.replace(b'\n', b'\r\n')[:9] in heard
    assert b'xWR68xx MMW Demo 03.06.00.00' in heard
    port.close()


def test_one_port_has_one_user(board: SimulatedBoard) -> None:
    port = SerialPort(str(board.command_path), 115200)
    with pytest.raises(SensingError, match='another program uses it'):
        SerialPort(str(board.command_path), 115200)
    port.close()


def test_orders_are_obeyed_and_unknown_ones_are_named(board: SimulatedBoard) -> None:
    assert board.misbehave('mute\n') == 'done: mute'
    assert board.answer(b'version') == b''
    board.misbehave('unmute')
    assert b'xWR68xx' in board.answer(b'version')
    board.misbehave('refuse flushCfg')
    assert b'Invalid usage' in board.answer(b'flushCfg')
    board.misbehave('forgive')
    assert b'Done' in board.answer(b'flushCfg')
    board.shell.started = True
    board.misbehave('reset')
    assert not board.shell.started
    board.misbehave('unplug')
    assert not os.path.lexists(board.data_path)
    board.misbehave('noise')
    assert os.path.lexists(board.data_path)
    assert board.misbehave('explode') == (
        "no order 'explode'; there are unplug, plug, noise, reset, mute, unmute, refuse, forgive"
    )


def test_ports_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    file = tmp_path / 'file'
    file.write_text('')
    with pytest.raises(SensingError, match=r'cannot make the port .*file/command'):
        SimulatedBoard(WalkingPerson(), file).plug_in()


def test_the_shell_answers_like_its_sdk() -> None:
    new, old = (BoardShell(board_frames(None, sdk).identity) for sdk in (3, 2))
    assert new.answer('sensorStop') == f'Ignored: Sensor is already stopped\nDone\n\n{PROMPT}'
    assert 'is missing, issue the full configuration\nError -1' in new.answer('sensorStart')
    assert 'Done' in new.answer('cfarCfg -1 0 2 8 4 3 0 15 1')
    assert 'Invalid usage' in old.answer('cfarCfg -1 0 2 8 4 3 0 15 1')
    assert 'Invalid usage' in new.answer('cfarCfg a b c d e f g h i')
    assert "'aoaFovCfg' is not recognized" in old.answer('aoaFovCfg -1 -90 90 -90 90')
    assert 'mmWave SDK Version      : 02.01.00.04' in old.answer('version')
    old.knows_version = False
    assert "'version' is not recognized" in old.answer('version')
    assert old.answer('') == PROMPT
    assert 'Skipped' in old.answer('% a comment')
    for command in CHIRPS.sent:
        assert 'Done' in new.answer(command.text)
    assert 'Done' in new.answer('sensorStart')
    assert 'already started' in new.answer('sensorStart')
    new.answer('sensorStop')
    new.answer('flushCfg')
    assert 'Error -1' in new.answer('sensorStart')


def test_recordings_are_played_over_and_over_with_new_numbers(
    data_folder: Path, tmp_path: Path
) -> None:
    frames = board_frames(data_folder / 'ti_tlv/xwr1443_sdk2.1.0_hasnain_ball1.dat')
    assert isinstance(frames, RecordedFrames)
    assert frames.identity.platform == 0xA1443
    parser = TlvParser(live=True)
    packets = parser.feed(b''.join(frames.packet(n, 0.1 * n) for n in range(1, 100)))
    assert [packet.frame_number for packet in packets] == list(range(1, 100))
    counts = [len(detected_points([packet])) for packet in packets]
    assert counts[:40] == counts[40:80]
    noise = tmp_path / 'noise.dat'
    noise.write_bytes(bytes(500))
    with pytest.raises(SensingError, match='500 bytes without a packet'):
        RecordedFrames(noise)
    with pytest.raises(SensingError, match='No such file'):
        RecordedFrames(tmp_path / 'none.dat')


@pytest.mark.parametrize('sdk', [2, 3])
def test_a_person_walks_before_a_wall(sdk: int) -> None:
    frames = board_frames(None, sdk)
    packets = TlvParser(live=True).feed(b''.join(frames.packet(n, 0.05 * n) for n in range(200)))
    points = detected_points(packets, CHIRPS.limits)
    assert points.rejected == 0
    assert len(points) == 200 * 11
    moving = points.number < 6
    assert points.position[moving, 0].std() > 0.8
    assert points.position[~moving].std(axis=0)[2] < 0.5
    again = WalkingPerson(frames.identity).packet(7, 0.35)
    assert again == frames.packet(7, 0.35)
    assert isinstance(frames.identity, BoardIdentity)


def test_every_recording_is_played_by_a_board_that_takes_a_shipped_configuration(
    data_folder: Path, tmp_path: Path
) -> None:
    for path in sorted((data_folder / 'ti_tlv').glob('*.dat')):
        with SimulatedBoard(board_frames(path), tmp_path / path.stem) as board:
            port = SerialPort(str(board.command_path), 115200)
            start_board(CommandLine(port, SystemClock()), configuration_for)
            port.close()
            assert board.shell.started

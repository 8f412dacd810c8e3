"""A board is brought to sending frames, or the sentence says which command it refused."""

from __future__ import annotations

import pytest
from board_in_memory import BEGIN_NS, BoardInMemory
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_commands import BoardVersion
from mmedge_ros.sensing.radar.chirp_configuration import (
    ChirpConfiguration,
    configuration_for,
    configurations_folder,
    read_configuration,
)
from mmedge_ros.sensing.radar.handshake import CommandLine, check_version, start_board
from mmedge_ros.sensing.simulated_board.board import BOOT_NOISE
from mmedge_ros.sensing.simulated_board.frames import board_frames

SDK_2 = read_configuration(configurations_folder() / 'iwr1443_sdk2_20hz.cfg')
SDK_3 = read_configuration(configurations_folder() / 'iwr6843_sdk3_20hz.cfg')


def start(
    board: BoardInMemory, configuration: ChirpConfiguration = SDK_3
) -> tuple[BoardVersion, ChirpConfiguration]:
    line = CommandLine(board.command, board.clock, 1.0)
    return start_board(line, lambda _: configuration)


def refusal(board: BoardInMemory, configuration: ChirpConfiguration = SDK_3) -> str:
    with pytest.raises(SensingError) as caught:
        start(board, configuration)
    return str(caught.value)


def test_a_board_is_stopped_configured_and_started() -> None:
    board = BoardInMemory()
    version, configuration = start(board)
    assert version == BoardVersion((3, 6, 0, 0), 'xWR68xx')
    assert configuration is SDK_3
    assert board.shell.started
    assert board.shell.period == pytest.approx(0.05)
    asked = board.command.asked
    assert asked[:4] == ['', 'sensorStop', 'version', 'flushCfg']
    assert asked[4:-1] == [command.text for command in SDK_3.sent]
    assert asked[-1] == 'sensorStart'


def test_a_running_board_is_configured_anew() -> None:
    board = BoardInMemory()
    start(board)
    start(board, SDK_3.with_period(0.1))
    assert board.shell.started
    assert board.shell.period == pytest.approx(0.1)


def test_noise_of_a_boot_is_flushed_and_stopping_is_tried_again() -> None:
    board = BoardInMemory()
    board.command._inbox = BOOT_NOISE + board.shell.banner.encode()
    # What the board heard before the first command makes it misunderstand that one.
    board.noise = b'\xff\xfe'
    line = CommandLine(board.command, board.clock)
    line.settle()
    board.noise = b'\xff\xfe'
    start_board(line, lambda _: SDK_3)
    assert board.shell.started


def test_a_first_stop_that_is_garbled_is_repeated() -> None:
    board = BoardInMemory()
    refused = iter(["'sen\xf8op' is not recognized as a CLI command\n"])
    answer = board.shell.answer
    board.shell.answer = lambda line: (  # type: ignore[method-assign]
        next(refused, None) or answer(line) if line == 'sensorStop' else answer(line)
    )
    start(board)
    assert board.command.asked.count('sensorStop') == 2


def test_a_silent_board_is_named_with_its_port() -> None:
    board = BoardInMemory()
    board.mute = True
    assert refusal(board) == (
        "/dev/command: no answer to 'sensorStop' (tried 3 times) within 1 s; is it the command "
        'port, and does the board run the mmWave demo?'
    )
    waited = board.clock.now_ns() - BEGIN_NS
    assert 3e9 < waited < 5e9


def test_a_configuration_for_another_sdk_is_refused_before_it_is_sent() -> None:
    board = BoardInMemory(board_frames(None, 2))
    message = refusal(board, SDK_3)
    assert message.startswith('/dev/command: the board runs SDK 2.1.0.4 on xWR14xx, but ')
    assert 'is written for SDK 3; choose' in message
    assert 'flushCfg' not in board.command.asked


def test_a_board_that_does_not_tell_its_version_names_the_command_it_refuses() -> None:
    board = BoardInMemory(board_frames(None, 2))
    board.shell.knows_version = False
    message = refusal(board, SDK_3)
    line = next(c.line for c in SDK_3.commands if c.name == 'adcbufCfg')
    assert f"answers 'adcbufCfg -1 0 1 1 1' ({SDK_3.source} line {line}) with: " in message
    assert message.endswith('Error: Invalid usage of the CLI command; Error -1')


def test_what_the_board_answers_is_told_word_by_word() -> None:
    board = BoardInMemory()
    board.shell.refused['sensorStart'] = 'Error: RF calibration failed\nError -3114\n'
    assert refusal(board) == (
        "/dev/command: the board answers 'sensorStart' with: Error: RF calibration failed; "
        'Error -3114'
    )


def test_half_an_answer_is_told() -> None:
    board = BoardInMemory()
    board.shell.refused['flushCfg'] = 'thinking\n'
    assert "no answer to 'flushCfg' within 1 s; it said thinking;" in refusal(board)


def test_shipped_configurations_are_chosen_by_board() -> None:
    assert configuration_for(BoardVersion((2, 1, 0, 4), 'xWR14xx')).source == SDK_2.source
    assert configuration_for(BoardVersion((3, 5), 'xWR68xx')).source == SDK_3.source
    for sdk, platform in ((2, 'xWR16xx'), (3, 'xWR16xx'), (3, 'xWR18xx')):
        version = BoardVersion((sdk, 1), platform)
        chosen = configuration_for(version)
        assert (chosen.sdk, chosen.platform) == (('02.01', '03.06')[sdk - 2], platform)
        check_version('port', version, chosen)
    for version in (BoardVersion(), BoardVersion((3, 5), 'xWR14xx')):
        with pytest.raises(SensingError, match='no configuration ships for SDK'):
            configuration_for(version)


@given(st.binary(max_size=200))
def test_any_answer_is_success_or_one_sentence(noise: bytes) -> None:
    board = BoardInMemory()
    line = CommandLine(board.command, board.clock, 0.2)
    board.command._inbox = noise
    board.mute = True
    reply = line.send('sensorStop')
    assert '\n' not in reply.text
    assert reply.complete or not reply.done

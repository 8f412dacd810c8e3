"""A radar's driver hands out scans, says what is wrong, and comes back by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from board_in_memory import BEGIN_NS, BoardInMemory

from mmedge_ros.core.data_types import (
    NS_PER_S,
    RADAR,
    Configuration,
    ModalityConfiguration,
    SkipDecision,
)
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.chirp_configuration import configurations_folder
from mmedge_ros.sensing.radar.scan import RadarScan
from mmedge_ros.sensing.radar.source import RESTART, RadarParameters, RadarSource
from mmedge_ros.sensing.simulated_board.frames import board_frames

PATIENCE = 20.0
# Long enough that a test takes what it wants before anything is dropped.
DEFAULTS = RadarParameters(queue=100)


class Running:
    """A source at work on a board in memory."""

    def __init__(self, board: BoardInMemory, p: RadarParameters) -> None:
        self.board = board
        self.said: list[str] = []
        self.spoke = threading.Condition()
        self.source = RadarSource(p, board.clock, board.connect, self._say)

    def _say(self, text: str) -> None:
        with self.spoke:
            self.said.append(text)
            self.spoke.notify_all()

    def wait_to_hear(self, words: str) -> str:
        with self.spoke:
            found = self.spoke.wait_for(
                lambda: next((text for text in self.said if words in text), ''), PATIENCE
            )
        assert found, f'{words!r} was not said, but {self.said}'
        return found

    def take(self, count: int) -> list[RadarScan]:
        scans = []
        for _ in range(count):
            scan = self.source.take(PATIENCE)
            assert scan is not None, self.said
            scans.append(scan)
        return scans

    def take_until(self, condition: Callable[[], bool]) -> None:
        """Take scans, of which some may be old, until something holds."""
        for _ in range(5000):
            if condition():
                return
            self.take(1)
        raise AssertionError(f'not within 5000 scans; {self.said}')


@contextmanager
def running(
    board: BoardInMemory | None = None,
    p: RadarParameters = DEFAULTS,
    prepare: Callable[[RadarSource], None] = lambda _: None,
) -> Iterator[Running]:
    made = Running(board or BoardInMemory(), p)
    prepare(made.source)
    made.source.start()
    try:
        yield made
    finally:
        made.source.stop()


def rate_of(rate: float, effective_from_ns: int = 0) -> Configuration:
    return Configuration(1, effective_from_ns, (ModalityConfiguration(RADAR, rate),))


def test_scans_come_in_order_with_even_stamps() -> None:
    with running() as radar:
        scans = radar.take(20)
        assert radar.source.missing() == []
        assert not radar.source.is_failing()
    assert [scan.frame_number for scan in scans] == list(range(1, 21))
    steps = {b.stamp_ns - a.stamp_ns for a, b in pairwise(scans[1:])}
    assert max(steps) - min(steps) < NS_PER_S // 1000
    assert all(scan.points.shape == (11, 6) for scan in scans)
    assert all(10 < (s.available_ns - s.stamp_ns) / 1e6 < 20 for s in scans[1:])
    assert 'SDK 3.6.0.0 on xWR68xx' in radar.wait_to_hear('the radar sends frames')
    figures = radar.source.figures()
    assert figures['connections'] == 1
    assert figures['lost'] == 0
    # The sensor is left standing still.
    assert not radar.board.shell.started
    assert radar.board.data.closed == 1


def test_before_anything_is_connected_that_is_told() -> None:
    source = RadarSource(DEFAULTS, BoardInMemory().clock, BoardInMemory().connect)
    assert source.missing() == ['the radar is not connected yet']
    assert source.is_failing()
    source.stop()


def test_old_bytes_of_a_running_sensor_are_thrown_away() -> None:
    board = BoardInMemory()
    board.data.left_over = board.frames.packet(900, 1.0)
    with running(board) as radar:
        assert radar.take(1)[0].frame_number == 1


def test_a_cable_that_is_pulled_is_told_and_found_again() -> None:
    with running() as radar:
        radar.take(3)
        radar.board.gone = True
        words = radar.wait_to_hear('gone')
        assert words == '/dev/radar is gone; is the cable plugged in? (trying again)'
        assert radar.source.missing() == ['/dev/radar is gone; is the cable plugged in?']
        radar.board.shell.reset()
        radar.board.data.sent = 0
        radar.board.gone = False
        radar.take_until(lambda: not radar.source.missing())
        assert radar.board.opened == 2
    assert len([text for text in radar.said if 'sends frames' in text]) == 2
    assert len([text for text in radar.said if 'gone' in text]) == 1


def test_a_board_that_lost_power_is_configured_again() -> None:
    with running() as radar:
        radar.take(3)
        radar.board.shell.reset()
        words = radar.wait_to_hear('fallen silent')
        assert words == (
            '/dev/data: the radar has fallen silent; has it lost power? (trying again)'
        )
        radar.take_until(lambda: not radar.source.missing())
        assert radar.board.command.asked.count('sensorStart') == 2


def test_bytes_that_are_no_packets_are_told() -> None:
    class Babble:
        identity = board_frames(None).identity

        def packet(self, number: int, elapsed: float) -> bytes:
            return bytes(100)

    with running(BoardInMemory(Babble())) as radar:
        words = radar.wait_to_hear('no packet')
    assert words.startswith('/dev/data: 4')
    assert 'is it the data port, and does its speed agree with the board?' in words


def test_a_board_that_does_not_follow_is_told_until_it_does() -> None:
    board = BoardInMemory()
    board.mute = True
    with running(board) as radar:
        assert "no answer to 'sensorStop'" in radar.wait_to_hear('/dev/command')
        board.mute = False
        assert radar.take(1)[0].frame_number == 1


def test_the_named_configuration_is_sent_or_refused(tmp_path: Path) -> None:
    path = configurations_folder() / 'iwr1443_sdk2_10hz.cfg'
    p = replace(DEFAULTS, configuration=str(path))
    with running(BoardInMemory(board_frames(None, 2)), p) as radar:
        radar.take(1)
        assert radar.board.shell.period == pytest.approx(0.1)
    with running(BoardInMemory(board_frames(None, 3)), p) as radar:
        radar.wait_to_hear('choose a configuration made for this board')
    broken = tmp_path / 'broken.cfg'
    broken.write_text('sensorStart')
    with pytest.raises(SensingError, match=r'broken\.cfg: dfeDataOutputMode is missing'):
        RadarSource(replace(p, configuration=str(broken)), radar.board.clock, radar.board.connect)


def test_a_lower_rate_leaves_out_frames() -> None:
    with running(prepare=lambda source: source.configure(rate_of(5.0))) as radar:
        scans = radar.take(12)
    # At first the radar's own rate is not known yet; then the grid of 5 Hz is met.
    stamps = [scan.stamp_ns for scan in scans[6:]]
    assert {round((b - a) / 1e6) for a, b in pairwise(stamps)} == {200}
    assert radar.source.thinned >= 15


def test_a_skip_lease_leaves_out_scans_for_a_while() -> None:
    begin_ns = BEGIN_NS + NS_PER_S
    lease = SkipDecision(RADAR, begin_ns, begin_ns + NS_PER_S // 4, begin_ns)
    with running(prepare=lambda source: source.lease(lease)) as radar:
        stamps = [scan.stamp_ns - begin_ns for scan in radar.take(40)]
        assert radar.source.skipped == 5
        assert radar.source.figures()['skipped'] == 5
    assert not [stamp for stamp in stamps if 0 <= stamp < NS_PER_S // 4]
    assert min(stamps) < 0
    assert max(stamps) > NS_PER_S // 4


def test_only_when_asked_the_sensor_is_restarted_with_another_period() -> None:
    with running(p=replace(DEFAULTS, rate_by=RESTART)) as radar:
        radar.take(2)
        radar.source.configure(rate_of(8.0))
        words = radar.wait_to_hear('restarting')
        assert words == (
            '/dev/command: restarting the sensor with a frame period of 125 ms instead of 50; '
            'scans pause for a moment'
        )
        radar.take_until(lambda: radar.board.shell.period == pytest.approx(0.125))
        radar.source.configure(rate_of(0.0))
        radar.wait_to_hear('frame period of 50 ms instead of 125')
        # A rate above the configuration's own needs no restart.
        radar.source.configure(rate_of(100.0))
        radar.take(300)
        assert len([text for text in radar.said if 'restarting' in text]) == 2


def test_a_period_that_the_sensor_cannot_have_is_reached_by_leaving_out_frames() -> None:
    with running(p=replace(DEFAULTS, rate_by=RESTART)) as radar:
        radar.take(2)
        radar.source.configure(rate_of(0.5))
        radar.wait_to_hear('a frame period of 2000 ms is not within 0.3 to 1400; leaving out')
        radar.take(2)
    assert len(radar.said) == 2


def test_scans_that_nobody_takes_are_dropped_and_counted() -> None:
    with running(p=replace(DEFAULTS, queue=2)) as radar:
        first = radar.take(1)[0]
        wanted, ended = radar.source.scans.dropped + 10, threading.Event()
        while radar.source.scans.dropped < wanted and not ended.wait(0.001):
            continue
        assert radar.take(1)[0].frame_number > first.frame_number + 2

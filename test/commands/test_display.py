"""What is said to people in a terminal."""

from __future__ import annotations

import contextlib
import io
import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rich.console import Console

from mmedge_ros.commands import stopping
from mmedge_ros.commands.display import StatusLine, one_line
from mmedge_ros.core.data_types import Decision

DECISION = Decision(
    2_000_000_000, 2_000_000_000, 'odom', (), {'camera': 1_960_000_000}, published_ns=2_012_000_000
)
SEEN = '0 tracks, latency 12 ms, camera age 52 ms'
SEEN_AT_TEN = '0 tracks, 10.0 decisions/s, latency 12 ms, camera age 52 ms'


@dataclass
class Clock:
    """Takes the place of the module time."""

    now: float = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def _signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(stopping, 'received', [])
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    stopping.catch_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures('_signals')
def test_an_interrupt_that_a_library_swallowed_stops_a_command_that_goes_on() -> None:
    line = StatusLine('up')
    line.advance(None)
    with contextlib.suppress(BaseException):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(SystemExit) as stopped:
        line.advance(None)
    assert stopped.value.code == 128 + signal.SIGINT


def test_a_foreign_text_cannot_command_the_terminal() -> None:
    assert one_line('a\x1b[2Jb\x07c\u202ed') == 'a\ufffd[2Jb\ufffdc\ufffdd'


def test_lines_are_joined_and_other_letters_kept() -> None:
    assert one_line('first\r\n  second\n\n') == 'first second'
    assert one_line('Größe 3 µm, 人') == 'Größe 3 µm, 人'


@pytest.mark.parametrize(
    ('share', 'rate', 'words'),
    [(0.5, None, f'50 %  {SEEN}'), (None, 10.0, f'1:02:03  {SEEN_AT_TEN}')],
    ids=['with an end', 'without an end'],
)
def test_how_far_it_is_is_a_share_or_the_time_where_there_is_no_end(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    share: float | None,
    rate: float | None,
    words: str,
) -> None:
    clock = Clock()
    monkeypatch.setattr('mmedge_ros.commands.display.time', clock)
    with StatusLine('up') as line:
        clock.now += 3723.4
        line.show(share, DECISION, rate)
    assert capsys.readouterr().err.splitlines() == ['up: starting', f'up: {words}']


@pytest.mark.parametrize(('share', 'shows_share'), [(0.42, True), (None, False)])
def test_a_terminal_shows_no_share_of_what_has_no_end(
    monkeypatch: pytest.MonkeyPatch, share: float | None, shows_share: bool
) -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=120)
    monkeypatch.setattr('mmedge_ros.commands.display.console', console)
    with StatusLine('up') as line:
        line.show(share, DECISION, 10.0)
    assert SEEN_AT_TEN in terminal.getvalue()
    assert ('42 %' in terminal.getvalue(), '%' in terminal.getvalue()) == (shows_share,) * 2

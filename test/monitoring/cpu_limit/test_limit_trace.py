from __future__ import annotations

import threading
import time
from pathlib import Path
from queue import Queue

import pytest

from mmedge_ros.monitoring import MonitoringError
from mmedge_ros.monitoring.cpu_limit.limit_trace import StreamedShare, constant_share, read_trace


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / 'trace.csv'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_share_holds_until_the_next_and_the_last_for_ever(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, 'seconds,percent\n0,100\n2.5, 50 # busy\n\n7,30\n'))
    shares = [trace.share_at(t) for t in (-1.0, 0.0, 2.4, 2.5, 6.9, 7.0, 1e9)]
    assert shares == [1.0, 1.0, 1.0, 0.5, 0.5, 0.3, 0.3]


def test_one_share_may_hold_all_the_time() -> None:
    assert constant_share(64).share_at(123.0) == 0.64


@pytest.mark.parametrize('percent', [0.0, -5.0, 101.0, float('nan')])
def test_an_impossible_share_is_refused(percent: float) -> None:
    with pytest.raises(MonitoringError, match='1 to 100 %'):
        constant_share(percent)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'holds no line'),
        ('0,50\nsoon,30\n', "line 2: 'soon,30' is not seconds,percent"),
        ('1,50\n1,30\n', 'line 2: 1 s is not later'),
        ('-1,50\n', 'line 1: -1 s'),
        ('nan,50\n', 'line 1: nan s'),
        ('0,120\n', 'line 1: 120 %'),
        (b'\xff\xfe\x00', 'is not a text'),
    ],
)
def test_a_trace_that_is_none_is_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    with pytest.raises(MonitoringError, match=words):
        read_trace(written(tmp_path, text))


def test_a_missing_trace_is_named(tmp_path: Path) -> None:
    with pytest.raises(MonitoringError, match='No such file'):
        read_trace(tmp_path / 'none.csv')
    with pytest.raises(MonitoringError, match='give a text of seconds,percent'):
        read_trace(Path('a\0b'))


def test_a_share_is_dictated_line_by_line_and_the_last_one_holds_on() -> None:
    lines: Queue[str] = Queue()
    share = StreamedShare(iter(lines.get, ''))
    assert share.share_at(0.0) == 1.0

    def becomes(wanted: float) -> bool:
        deadline = time.monotonic() + 10.0
        while share.share_at(5.0) != wanted and time.monotonic() < deadline:
            threading.Event().wait(0.005)
        return share.share_at(5.0) == wanted

    lines.put('50\n')
    assert becomes(0.5)
    for nonsense in ('fast', 'nan', '-3', '1000'):
        lines.put(f'{nonsense}\n')
    lines.put('30\n')
    assert becomes(0.3)
    lines.put('')
    assert becomes(0.3)

"""A process that hangs is told from one that loads, works or waits for its turn."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest

from mmedge_ros.core import heartbeat
from mmedge_ros.ros.graph.hang_watch import BUSY, STILL, Activity, HangWatch

STEP = 0.1


class Process:
    """A process that beats over a real pipe, and whose activity is set by hand."""

    def __init__(self) -> None:
        source, self.pipe = os.pipe()
        self.activity: Activity | None = Activity(0, psutil.STATUS_SLEEPING)
        self.is_woken = False
        self.watch = HangWatch(source, self._read)
        self._now = 100.0

    def _read(self) -> Activity:
        if self.activity is None:
            raise psutil.NoSuchProcess(1)
        if self.is_woken:
            self.activity = self.activity._replace(switches=self.activity.switches + 1)
        return self.activity

    def pass_time(self, seconds: float, step: float = STEP) -> tuple[str, float]:
        """Look again and again; return the first words, and after how many seconds they came."""
        for number in range(1, round(seconds / step) + 1):
            self._now += step
            words = self.watch.look(self._now)
            if words:
                return words, number * step
        return '', seconds


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    made = Process()
    monkeypatch.setenv(heartbeat.VARIABLE, str(made.pipe))
    yield made
    os.close(made.pipe)
    made.watch.close()


def test_a_process_that_beats_is_well(process: Process) -> None:
    for _ in range(30):
        heartbeat.beat()
        assert process.pass_time(heartbeat.PERIOD)[0] == ''


@pytest.mark.parametrize(
    ('state', 'words'),
    [(psutil.STATUS_STOPPED, 'is stopped'), (psutil.STATUS_SLEEPING, 'hangs for 2 s')],
)
def test_one_that_does_nothing_hangs_after_two_seconds(
    process: Process, state: str, words: str
) -> None:
    heartbeat.beat()
    process.pass_time(STEP)
    process.activity = Activity(7, state)
    said, after = process.pass_time(10.0)
    assert said == words
    assert after == pytest.approx(STILL, abs=0.15)


@pytest.mark.parametrize('state', [psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP])
def test_one_that_waits_for_its_turn_has_half_a_minute(process: Process, state: str) -> None:
    heartbeat.beat()
    process.pass_time(STEP)
    process.activity = Activity(7, state)
    said, after = process.pass_time(60.0)
    assert said == 'hangs for 30 s'
    assert after == pytest.approx(BUSY, abs=0.15)


def test_one_that_is_woken_in_its_sleep_has_half_a_minute(process: Process) -> None:
    heartbeat.beat()
    process.pass_time(STEP)
    process.is_woken = True
    assert process.pass_time(60.0)[1] == pytest.approx(BUSY, abs=0.15)


def test_the_first_loading_has_all_the_time_in_the_world(process: Process) -> None:
    assert process.pass_time(600.0)[0] == ''


def test_one_that_a_debugger_holds_is_left_alone(process: Process) -> None:
    heartbeat.beat()
    process.activity = Activity(7, psutil.STATUS_TRACING_STOP)
    assert process.pass_time(600.0)[0] == ''


def test_time_in_which_nobody_looked_does_not_count(process: Process) -> None:
    heartbeat.beat()
    process.pass_time(STEP)
    # The watching process itself was stopped, or the machine slept.
    assert process.pass_time(90.0, step=30.0)[0] == ''


def test_a_process_without_a_pipe_or_with_a_full_one_goes_on(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.set_blocking(process.pipe, False)
    for _ in range(70_000):  # a pipe holds 65536
        heartbeat.beat()
    monkeypatch.delenv(heartbeat.VARIABLE)
    heartbeat.beat()

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
    ('state', 'is_woken', 'words', 'patience'),
    [
        (psutil.STATUS_STOPPED, False, 'is stopped', STILL),
        (psutil.STATUS_SLEEPING, False, 'hangs for 2 s', STILL),
        (psutil.STATUS_SLEEPING, True, 'hangs for 30 s', BUSY),
        (psutil.STATUS_RUNNING, False, 'hangs for 30 s', BUSY),
        (psutil.STATUS_DISK_SLEEP, False, 'hangs for 30 s', BUSY),
    ],
)
def test_one_that_does_nothing_has_two_seconds_and_one_that_waits_for_its_turn_half_a_minute(
    process: Process, state: str, is_woken: bool, words: str, patience: float
) -> None:
    heartbeat.beat()
    process.pass_time(STEP)
    process.activity, process.is_woken = Activity(7, state), is_woken
    said, after = process.pass_time(60.0)
    assert said == words
    assert after == pytest.approx(patience, abs=0.15)


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

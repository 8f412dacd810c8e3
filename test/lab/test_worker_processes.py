"""Processes of several: told to stop once, twice or at their very end, they go without a word."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from hand_made_workers import stopped_at_its_end, stopped_twice

from mmedge_ros.lab.worker_processes import start_process


def ended(process: BaseProcess, capfd: pytest.CaptureFixture[str]) -> int | None:
    """Run a process to its end, which must be silent; return its exit code."""
    start_process(process)
    process.join(60)
    code = process.exitcode
    process.kill()
    assert capfd.readouterr() == ('', '')
    return code


def test_a_second_signal_does_not_disturb_the_clearing_up(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cleaned = tmp_path / 'cleaned'
    process = multiprocessing.get_context('spawn').Process(target=stopped_twice, args=(cleaned,))
    assert ended(process, capfd) == 128 + signal.SIGTERM
    assert cleaned.exists()


def test_a_signal_after_the_work_is_done_changes_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    process = multiprocessing.get_context('spawn').Process(target=stopped_at_its_end)
    assert ended(process, capfd) == 0

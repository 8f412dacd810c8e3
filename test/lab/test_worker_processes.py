"""Processes at once: values come in order, none too early, and every one ends in order."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from hand_made_streams import endless, numbers, own_process, until_it_cannot, until_it_is_killed
from hand_made_workers import stopped_at_its_end, stopped_twice

from mmedge_lab.worker_processes import WorkError, start_process, worker_streams


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


ROOT = Path(__file__).resolve().parents[2]


def test_each_stream_gives_what_its_source_gives() -> None:
    sources = {'low': partial(numbers, 0, 40), 'high': partial(numbers, 40, 50)}
    with worker_streams(sources, ()) as (low, high):
        assert list(high) == list(range(40, 50))
        assert list(low) == list(range(40))


def test_each_source_has_a_process_of_its_own() -> None:
    with worker_streams({'a': own_process, 'b': own_process}, ()) as streams:
        found = [next(stream) for stream in streams]
    assert len({process for process, _ in found}) == 2
    assert {parent for _, parent in found} == {os.getpid()}


def test_what_a_source_cannot_give_is_said_after_what_it_could() -> None:
    with worker_streams({'one': partial(until_it_cannot, 'no ink')}, (ValueError,)) as (stream,):
        assert next(stream) == 1
        with pytest.raises(WorkError, match=r'^no ink$') as caught:
            next(stream)
    assert caught.value.name == 'one'


def test_a_killed_process_is_told_of() -> None:
    with worker_streams({'one': until_it_is_killed}, ()) as (stream,):
        assert next(stream) == 1
        with pytest.raises(WorkError, match='code -9'):
            next(stream)


def test_nobody_makes_much_more_than_is_taken_and_the_block_ends_it(tmp_path: Path) -> None:
    file = tmp_path / 'made'
    with worker_streams({'one': partial(endless, file)}, ()) as (stream,):
        for _ in range(3):
            next(stream)
        (process,) = multiprocessing.active_children()
    assert not process.is_alive()
    # What was taken, what fits into the pipe, and one that waits.
    assert file.stat().st_size <= 3 + 10 + 1


PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from hand_made_streams import endless
from mmedge_lab.worker_processes import worker_streams

if __name__ == '__main__':
    with worker_streams({'one': partial(endless, Path(sys.argv[1]))}, ()) as (stream,):
        next(stream)
        print('begun', flush=True)
        sys.stdin.read()
"""


def test_processes_end_by_themselves_when_their_parent_is_killed(tmp_path: Path) -> None:
    program = tmp_path / 'program.py'
    program.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path / 'made')],
        env={**os.environ, 'PYTHONPATH': f'{ROOT}{os.pathsep}{ROOT / "test/support"}'},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == 'begun\n'
    process.kill()
    # The output ends when the last process has: each holds its other end.
    _, messages = process.communicate(timeout=60)
    assert 'Traceback' not in messages

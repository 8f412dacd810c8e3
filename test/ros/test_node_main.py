"""How nodes begin and end, seen from outside their process."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_graph import is_alive, python_environment, wait_until

from mmedge_ros.ros.node_main import BROKE_DOWN, NOT_MADE, PARENT_VARIABLE

PROGRAM = """
import sys, threading
from rclpy.node import Node
from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.ros.node_main import run_nodes

class Subject(Node):
    def __init__(self):
        super().__init__('subject')
        getattr(self, sys.argv[1])()
        self.timer = self.create_timer(0.001, self.begin)

    def begin(self):
        print('at work', flush=True)
        self.timer.cancel()

    def works(self):
        pass

    def was_told_something_wrong(self):
        raise ParameterError("unknown parameter 'x'")

    def cannot_be_made(self):
        raise ZeroDivisionError('by nature')

    def fails_at_work(self):
        self.create_timer(0.1, lambda: 1 / 0)

    def loses_its_thread(self):
        threading.Timer(0.2, lambda: 1 / 0).start()

    def hangs_in_a_thread(self):
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    def stop(self):
        print('stopped', flush=True)

run_nodes([Subject])
"""

Start = Callable[..., 'subprocess.Popen[str]']


@pytest.fixture
def start(tmp_path: Path) -> Start:
    script = tmp_path / 'subject.py'
    script.write_text(PROGRAM)

    def begin(what: str, before: Callable[[], object] | None = None) -> object:
        return subprocess.Popen(
            [sys.executable, str(script), what],
            env=python_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509
        )

    return begin  # type: ignore[return-value]


def _ignore_interrupts() -> None:
    """As a shell does for what is started with & from a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, errors = process.communicate(timeout=60)
    return process.returncode, output, errors


def at_work(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert process.stdout is not None
    assert process.stdout.readline() == 'at work\n'
    return process


def test_what_a_user_can_put_right_is_one_line_and_no_use_to_repeat(start: Start) -> None:
    assert ended(start('was_told_something_wrong')) == (
        NOT_MADE,
        '',
        "subject: unknown parameter 'x'\n",
    )


@pytest.mark.parametrize(
    ('what', 'code'),
    [
        ('cannot_be_made', NOT_MADE),
        ('fails_at_work', BROKE_DOWN),
        ('loses_its_thread', BROKE_DOWN),
    ],
)
def test_a_defect_is_told_in_full_and_ends_the_whole_node(
    start: Start, what: str, code: int
) -> None:
    found, output, errors = ended(start(what))
    assert found == code
    assert 'ZeroDivisionError' in errors
    assert 'Traceback' in errors
    assert output.endswith('stopped\n' if code == BROKE_DOWN else '')


@pytest.mark.parametrize(
    ('what', 'number', 'before'),
    [
        ('works', signal.SIGINT, _ignore_interrupts),
        ('works', signal.SIGTERM, None),
        ('hangs_in_a_thread', signal.SIGINT, None),
    ],
    ids=['from a script that ignores interrupts', 'at work', 'with a thread that hangs'],
)
def test_a_node_that_is_told_to_stop_cleans_up_and_says_nothing(
    start: Start, what: str, number: signal.Signals, before: Callable[[], object] | None
) -> None:
    process = at_work(start(what, before=before))
    process.send_signal(number)
    assert ended(process) == (0, 'stopped\n', '')


def test_a_node_is_not_interrupted_before_it_is_ready(start: Start) -> None:
    def block() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    process = start('works', before=block)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (0, '', '')


@pytest.mark.parametrize('between', [[], ['sh', '-c', '"$0" "$@"; exit']], ids=['none', 'a shell'])
def test_a_node_ends_with_the_process_that_started_it(
    start: Start, tmp_path: Path, between: list[str]
) -> None:
    script = tmp_path / 'parent.py'
    script.write_text(
        'import os, subprocess, sys\n'
        f'os.environ[{PARENT_VARIABLE!r}] = str(os.getpid())\n'
        f'child = subprocess.Popen([*{between}, sys.executable, *sys.argv[1:]])\n'
        'print(child.pid, flush=True)\n'
        'child.wait()\n'
    )
    parent = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / 'subject.py'), 'works'],
        env=python_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == 'at work\n'
    parent.kill()
    assert parent.stdout.read() == 'stopped\n'
    parent.wait()
    wait_until(None, lambda: not is_alive(child))

"""No socket of a command is open to other machines, and however it is ended, nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from live_graph import (
    Bystander,
    abandoned,
    children_of,
    is_alive,
    new_environment,
    open_addresses,
    wait_until,
)

from mmedge_ros.ros.graph.middleware_files import segments_of

# A machine without time for anything ends nothing in time either: this only tells an end from
# none at all.
ALL_GONE_WITHIN = 20.0
NODES = 5


class Command:
    """A command of the package at work, and what it has started."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'mmedge_ros.commands.main', *arguments],
            env=new_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children: list[int] = []
        self.segments: set[Path] = set()
        self._ours = segments_of(os.getpid())

    def notice(self) -> int:
        """Note what the command has started by now, and return how many processes."""
        pids = children_of(self.process.pid)
        self.children = pids or self.children
        for pid in (*pids, self.process.pid):
            segments = segments_of(pid) - self._ours
            self.segments |= {segment for segment in segments if 'port' not in segment.name}
        return len(pids)

    def end(self, number: signal.Signals) -> tuple[str, str]:
        """Send a signal, check that everything goes, and return what was said."""
        self.notice()
        self.process.send_signal(number)
        said = self.process.communicate(timeout=ALL_GONE_WITHIN)
        wait_until(None, lambda: not any(map(is_alive, self.children)), ALL_GONE_WITHIN)
        return said


@pytest.fixture
def run() -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(*arguments: str) -> Command:
        started.append(Command(*arguments))
        return started[-1]

    yield start
    for command in started:
        if command.process.poll() is None:
            command.process.terminate()
            command.process.communicate(timeout=30)


def _at_work(command: Command, bystander: Bystander, decisions: int = 3) -> None:
    def working() -> bool:
        assert command.process.poll() is None, command.process.communicate()
        return len(bystander.decisions) >= decisions

    bystander.wait_until(working)


@pytest.mark.parametrize(
    ('arguments', 'number', 'code', 'processes'),
    [
        (['up', '--loop', '--bag'], signal.SIGINT, 130, NODES),
        (['up', '--loop', '--single-process', '--bag'], signal.SIGINT, 130, 1),
        (['replay', '--live'], signal.SIGTERM, 143, NODES),
    ],
    ids=['Ctrl-C in up', 'Ctrl-C in a single process', 'SIGTERM in a live replay'],
)
def test_a_command_at_work_is_open_to_no_other_machine_and_leaves_nothing_when_it_is_stopped(
    run: Callable[..., Command],
    bystander: Bystander,
    little_bag: Path,
    detector: Path,
    tmp_path: Path,
    arguments: list[str],
    number: signal.Signals,
    code: int,
    processes: int,
) -> None:
    place = ['--out', str(tmp_path)] if 'replay' in arguments else ['--logs', str(tmp_path)]
    command = run(*arguments, str(little_bag), '--detector', str(detector), *place)
    _at_work(command, bystander)
    assert command.notice() == processes
    for pid in (command.process.pid, *command.children):
        assert open_addresses(pid) == []
    output, messages = command.end(number)
    assert (command.process.returncode, output) == (code, '')
    assert messages.splitlines()[-1] == 'stopped'
    assert 'Traceback' not in messages
    assert command.segments
    assert not abandoned(command.segments)


def test_an_interrupt_while_the_nodes_are_starting_leaves_nothing(
    run: Callable[..., Command], little_bag: Path, detector: Path, tmp_path: Path
) -> None:
    command = run(
        *('up', '--bag', str(little_bag), '--detector', str(detector), '--logs', str(tmp_path))
    )
    wait_until(None, command.notice)
    output, messages = command.end(signal.SIGINT)
    assert (command.process.returncode, output) == (130, '')
    assert messages.splitlines()[-1] == 'stopped'
    assert not abandoned(command.segments)

"""What `mmedge limit` does."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.options import argument, option

if TYPE_CHECKING:
    from mmedge_ros.monitoring.cpu_limit.limit_trace import LimitTrace

# As a trace: shares come from standard input.
STREAMED = '-'

_PR_SET_CHILD_SUBREAPER = 36
# For this process alone, not for the guardian it starts.
_REAL_TIME = os.SCHED_RR | os.SCHED_RESET_ON_FORK
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


def limit(
    arguments: Annotated[
        list[str],
        argument('PERCENT -- COMMAND...', 'with --trace only the command, after --'),
    ],
    trace: Annotated[
        str,
        option(
            '--trace',
            'FILE',
            'lines of seconds,percent instead; -: percentages from standard input',
        ),
    ] = '',
) -> None:
    """Run a command with at most a share of the machine: 50 is half of all processors.

    Children are included. Ends with the command's exit code. Whatever happens to the limiter,
    no process stays stopped.
    """
    # Nothing large is imported before the command runs, which would add to its measured time.
    from mmedge_ros.monitoring import MonitoringError

    try:
        share, command = _share_and_command(arguments, trace)
        code = _run(share, command, subprocess.DEVNULL if trace == STREAMED else None)
    except MonitoringError as err:
        from mmedge_ros.commands.errors import stop

        stop(str(err))
    raise typer.Exit(code if code >= 0 else 128 - code)


def _share_and_command(arguments: list[str], trace: str) -> tuple[LimitTrace, list[str]]:
    from mmedge_ros.monitoring.cpu_limit.limit_trace import (
        StreamedShare,
        constant_share,
        read_trace,
    )

    if trace == STREAMED:
        return StreamedShare(sys.stdin), _without_dashes(arguments)
    if trace:
        return read_trace(Path(trace)), _without_dashes(arguments)
    percent, *command = arguments
    command = _without_dashes(command)
    if not command:
        raise typer.BadParameter('say what to run: PERCENT -- COMMAND ...')
    try:
        return constant_share(float(percent)), command
    except ValueError as err:
        if 'could not convert' not in str(err):
            raise
        raise typer.BadParameter(f'{percent!r} is not a percentage') from err


def _without_dashes(command: list[str]) -> list[str]:
    return command[1:] if command[:1] == ['--'] else command


def _run(share: LimitTrace, command: list[str], stdin: int | None = None) -> int:
    import psutil

    from mmedge_ros.monitoring.cpu_limit.limiter import CpuLimiter

    try:
        process = subprocess.Popen(command, start_new_session=True, stdin=stdin)
    except FileNotFoundError:
        _say(f'{command[0]}: no such command')
        return _NOT_FOUND
    except (OSError, ValueError) as err:
        _say(f'{command[0]}: {getattr(err, "strerror", None) or err}')
        return _NOT_EXECUTABLE
    # Orphans among the descendants become children of this process instead of leaving.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # What holds back others must not be held up by them; without the right to, it works too.
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, _REAL_TIME, os.sched_param(1))
    with _forwarding_to(process):
        try:
            with CpuLimiter(process, share, psutil.Process()) as limiter:
                code = limiter.run()
                used = limiter.used
            _say(f'{100 * used:.1f} % of the machine used')
        finally:
            _end(process)
    return code


def _say(sentence: str) -> None:
    from mmedge_ros.commands.display import say

    say(f'mmedge limit: {sentence}')


@contextlib.contextmanager
def _forwarding_to(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hand signals on, as if the command had been started without a limit."""

    def forward(number: int, _: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            if process.returncode is None:
                os.killpg(process.pid, number)

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave no unlimited command behind, should the limiter have failed."""
    if process.poll() is None:
        process.terminate()
        process.send_signal(signal.SIGCONT)
        try:
            process.wait(5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

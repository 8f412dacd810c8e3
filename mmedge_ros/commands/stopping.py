"""How a signal ends a command: the stack is unwound, so that nothing is left running."""

from __future__ import annotations

import signal
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

received: list[int] = []


class Stopped(SystemExit):
    """Unwinds the stack, and ends with a shell's exit code."""


def catch_signals() -> None:
    """Let signals stop the command; also Ctrl-C, which Python ignores if started with &."""
    for number in _SIGNALS:
        signal.signal(number, _stop)


def ignore_signals() -> None:
    """Let no further signal break into the end of the interpreter, which would show it."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def check() -> None:
    """Stop if a signal came and its exception was caught: some libraries catch every one."""
    if received:
        raise Stopped(128 + received[0])


def _stop(number: int, _: object) -> NoReturn:
    received.append(number)
    raise Stopped(128 + number)

"""What a check finds, and how checks are run so that none of them can hold up the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mmedge_ros.core.untrusted_files import brief


class State(Enum):
    """How something is; what is wrong keeps people from being tracked, or makes results wrong."""

    OK = 'ok'
    NOTE = 'note'
    WRONG = 'wrong'


class Finding(NamedTuple):
    """State of one subject in words, and what to do where it is not ok."""

    subject: str
    state: State
    words: str
    remedy: str = ''


Check = Callable[[], Sequence[Finding]]


def ok(subject: str, words: str) -> Finding:
    """Find nothing to complain about."""
    return Finding(subject, State.OK, words)


def note(subject: str, words: str, remedy: str = '') -> Finding:
    """Find something a person should know; a flight is possible."""
    return Finding(subject, State.NOTE, words, remedy)


def wrong(subject: str, words: str, remedy: str) -> Finding:
    """Find something that has to be put right before a flight."""
    return Finding(subject, State.WRONG, words, remedy)


def examine(checks: Mapping[str, Check], patience: float) -> dict[str, list[Finding]]:
    """Run all checks at once, each in a thread, and return their findings by section.

    A check that does not come back (a driver that hangs) or breaks down becomes a finding.

    :param patience: s, for all of them together
    """
    findings: dict[str, list[Finding]] = {}

    def run(section: str, check: Check) -> None:
        try:
            findings[section] = list(check())
        except Exception as error:  # noqa: BLE001  # the other sections are still of use
            words = f'could not be examined: {type(error).__name__}: {brief(error)}'
            findings[section] = [note(section, words, 'report this as a defect of mmedge')]

    threads = {
        section: threading.Thread(target=run, args=(section, check), daemon=True)
        for section, check in checks.items()
    }
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + patience
    for thread in threads.values():
        thread.join(max(deadline - time.monotonic(), 0.0))
    done = dict(findings)
    return {s: done[s] if s in done else _hung(s, patience) for s in checks}


def _hung(section: str, patience: float) -> list[Finding]:
    words = f'no answer within {patience:.0f} s: a device, a driver or a disk hangs'
    return [wrong(section, words, 'see `dmesg`; unplug USB devices one by one and try again')]

"""A process with all its descendants: what they are, what they use, and signals to all."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TypeVar

import psutil

Value = TypeVar('Value')


class ProcessTree:
    """Descendants stay members when their parent ends, and `refresh` adds new ones.

    Where the first process leads a process group of its own, the whole group is signalled at
    once, so that a child born a moment ago is met as well.

    :param root: a process that the caller has started
    :param adopter: a process whose other children, orphans it has adopted, belong too
    """

    def __init__(self, root: psutil.Process, adopter: psutil.Process | None = None) -> None:
        self._root = root
        self._adopter = adopter
        self._not_adopted: set[psutil.Process] = set()
        self._members: set[psutil.Process] = {root}
        self._group = root.pid if _group_of(root.pid) == root.pid else None
        self._own: dict[int, float] = {}
        self._ended = 0.0
        self._counted = 0.0
        self._total = 0.0

    @property
    def members(self) -> frozenset[psutil.Process]:
        """The processes known to belong."""
        return frozenset(self._members)

    @property
    def session(self) -> int | None:
        """The session the first process leads, if it does."""
        with contextlib.suppress(OSError):
            if self._group is not None and os.getsid(self._group) == self._group:
                return self._group
        return None

    def leave_out(self, process: psutil.Process) -> None:
        """Never count a child of the adopter, such as a helper of its own, as a member."""
        self._not_adopted.add(process)

    def refresh(self) -> None:
        """Look for new members and forget the ended; takes about a millisecond."""
        members = {m for m in self._members if _or_ended(m.is_running, False)}
        for member in tuple(members):
            # The descendants of a parent that is a member are listed anyway.
            if member == self._root or _or_ended(member.parent, None) not in members:
                members |= set(_children(member))
        if self._adopter is not None:
            for child in _children(self._adopter, recursive=False):
                if child not in self._not_adopted:
                    members |= {child, *_children(child)}
        self._members = members
        self._recount()

    def consumed(self) -> float:
        """Return the processor time all members have used since the first call, s.

        That of children that came and went is added at the next `refresh`.
        """
        for member in self._members:
            used = _clock(member.pid)
            if used is not None:
                self._own[member.pid] = used
        now = sum(self._own.values()) + self._ended
        self._total += max(now - self._counted, 0.0)
        self._counted = now
        return self._total

    def signal(self, number: int) -> None:
        """Send a signal to every member that is still there and may be signalled."""
        others = {m for m in self._members if _group_of(m.pid) != self._group}
        # A group without a member may have become that of other processes.
        if self._group is not None and len(others) < len(self._members):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
        for member in others:
            # psutil makes sure that the number has not gone to another process.
            with contextlib.suppress(psutil.Error):
                member.send_signal(number)

    def _recount(self) -> None:
        """Take the time of ended children from what their parents were credited with."""
        self.consumed()
        own, ended = {}, 0.0
        for member in self._members:
            try:
                times = member.cpu_times()
            except psutil.Error:
                continue
            used = _clock(member.pid)
            own[member.pid] = times.user + times.system if used is None else used
            ended += times.children_user + times.children_system
        before = self._counted
        self._own, self._ended = own, ended
        self._counted = sum(own.values()) + ended
        self._total += max(self._counted - before, 0.0)


def _clock(pid: int) -> float | None:
    """Return the processor time of a process with nanoseconds, which /proc lacks."""
    # The clock id that clock_getcpuclockid(3) makes of a process id.
    return _or_ended(lambda: time.clock_gettime((~pid << 3) | 2), None)


def _group_of(pid: int) -> int | None:
    return _or_ended(lambda: os.getpgid(pid), None)


def _children(process: psutil.Process, recursive: bool = True) -> list[psutil.Process]:
    return _or_ended(lambda: process.children(recursive=recursive), [])


def _or_ended(look: Callable[[], Value], ended: Value) -> Value:
    """Return what a look at a process gives, ``ended`` where there is none to look at."""
    try:
        return look()
    except (psutil.Error, OSError):
        return ended

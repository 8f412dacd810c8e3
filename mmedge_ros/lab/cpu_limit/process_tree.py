"""A process with all its descendants: who they are, what they use, and signals to all."""

from __future__ import annotations

import contextlib
import os
import time

import psutil


class ProcessTree:
    """Descendants stay members when their parent ends, and new ones are found by `refresh`.

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
        """Everybody known to belong."""
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
        found = {member for member in self._members if _alive(member)}
        for member in tuple(found):
            if member == self._root or not _alive_parent(member, found):
                found |= set(_children(member))
        if self._adopter is not None:
            for child in _children(self._adopter, recursive=False):
                if child not in self._not_adopted:
                    found |= {child, *_children(child)}
        self._members = found
        self._recount()

    def consumed(self) -> float:
        """Return the processor time all members have used since the first call, s.

        That of children who came and went is added at the next `refresh`.
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
        # A group without a member of ours may have become somebody else's.
        if self._group is not None and len(others) < len(self._members):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
        for member in others:
            # psutil makes sure that the number has not gone to somebody else.
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
    try:
        # The clock id that clock_getcpuclockid(3) makes of a process id.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return None


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running()
    except psutil.Error:
        return False


def _alive_parent(process: psutil.Process, members: set[psutil.Process]) -> bool:
    """Whether a member's parent is a member too, whose descendants are listed anyway."""
    try:
        parent = process.parent()
    except psutil.Error:
        return False
    return parent in members


def _children(process: psutil.Process, recursive: bool = True) -> list[psutil.Process]:
    try:
        return process.children(recursive=recursive)
    except psutil.Error:
        return []

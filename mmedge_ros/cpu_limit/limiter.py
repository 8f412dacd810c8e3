"""Caps a process and all its descendants to a share of the machine.

By the kernel where a cgroup can be made (v2, delegated), else by stopping and continuing the
processes with a period of at most 10 ms. Both mean the same: together they use at most that
share of all processors; processes that use less are left alone.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import psutil

from mmedge_ros.cpu_limit.cgroup_limit import CgroupLimit, find_cgroup_limit
from mmedge_ros.cpu_limit.cpu_budget import CpuBudget
from mmedge_ros.cpu_limit.guardian import LimitGuardian
from mmedge_ros.cpu_limit.limit_trace import LimitTrace, constant_share
from mmedge_ros.cpu_limit.process_tree import ProcessTree

# What processes are stopped and continued with stays below 10 ms, delays included.
PERIOD = 0.008
_REFRESH = 0.1
_METHODS = ('auto', 'cgroup', 'signals')


class Limited(Protocol):
    """A process, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int:
        """Return its number."""

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""


class CpuLimiter(AbstractContextManager['CpuLimiter']):
    """Limits a process that the caller has started; a context manager.

    Call `run` to limit until the process ends, or `step` again and again. Whatever happens to
    this process afterwards, a guardian process makes sure that no process stays stopped.

    :param process: started by the caller, best in a session of its own
    :param share: in percent of all processors, or a trace of shares over time
    :param method: ``cgroup``, ``signals``, or ``auto`` for the first that works
    :param adopter: process that adopts the orphans among the descendants, if one does
    :raises MonitoringError: for a share outside 1 to 100 %
    """

    def __init__(
        self,
        process: Limited,
        share: float | LimitTrace,
        method: str = 'auto',
        adopter: psutil.Process | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._trace = share if isinstance(share, LimitTrace) else constant_share(share)
        self._process = process
        self._clock = clock
        self._cpus = psutil.cpu_count() or 1
        self._budget = CpuBudget(self._cpus, PERIOD)
        self._begun = clock()
        self._refreshed = -_REFRESH
        self._stopped = False
        self._cgroup: CgroupLimit | None = None
        if method not in _METHODS:
            raise ValueError(f'{method!r} is none of {", ".join(_METHODS)}')
        if method != 'signals':
            self._cgroup = find_cgroup_limit(process.pid)
        self.guardian = LimitGuardian()
        self._tree = ProcessTree(psutil.Process(process.pid), adopter)

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def method(self) -> str:
        """How the limit is kept: ``cgroup`` or ``signals``."""
        return 'signals' if self._cgroup is None else 'cgroup'

    @property
    def used(self) -> float:
        """Share of all processors that was used since the beginning, 0..1."""
        elapsed = max(self._clock() - self._begun, 1e-9)
        return self._tree.consumed() / elapsed / self._cpus

    def run(self) -> int:
        """Limit until the process ends; return its exit code as `subprocess` does."""
        while True:
            code = self._process.poll()
            if code is not None:
                return code
            time.sleep(self.step())

    def step(self) -> float:
        """Stop or continue the processes; return after how many seconds to call again."""
        now = self._clock() - self._begun
        share = self._trace.share_at(now)
        if now - self._refreshed >= _REFRESH:
            self._refresh(now)
        if self._cgroup is not None:
            # Set anew each time: the guardian lifts it when this process is held up.
            self._cgroup.set_share(share, self._cpus)
            return _REFRESH
        verdict = self._budget.update(now, self._tree.consumed(), share)
        if verdict.run == self._stopped:
            self._tree.signal(signal.SIGCONT if verdict.run else signal.SIGSTOP)
            self._stopped = not verdict.run
        return verdict.wait

    def close(self) -> None:
        """Lift the limit: all processes run again."""
        self._tree.refresh()
        self._tree.signal(signal.SIGCONT)
        self._stopped = False
        if self._cgroup is not None:
            self._cgroup.close()
        self.guardian.stop()

    def _refresh(self, now: float) -> None:
        self._refreshed = now
        known = self._tree.members
        self._tree.leave_out(self.guardian.process)
        self._tree.refresh()
        restore = [] if self._cgroup is None else [(self._cgroup.limit_file, 'max')]
        self.guardian.update(self._tree.members, self._tree.session, restore)
        # Do to a new member what has been done to all others.
        for process in self._tree.members - known:
            if self._cgroup is not None:
                with contextlib.suppress(ValueError):
                    self._cgroup.add(process.pid)
            elif self._stopped:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGSTOP)

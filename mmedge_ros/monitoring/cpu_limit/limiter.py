"""Caps a process and all its descendants to a share of the machine.

The processes are stopped and continued with a period of at most 10 ms, so that together they use
at most that share of all processors; processes that use less are left alone.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import psutil

from mmedge_ros.monitoring.cpu_limit.cpu_budget import CpuBudget
from mmedge_ros.monitoring.cpu_limit.guardian import LimitGuardian
from mmedge_ros.monitoring.cpu_limit.limit_trace import LimitTrace, constant_share
from mmedge_ros.monitoring.cpu_limit.process_tree import ProcessTree

# What processes are stopped and continued with stays below 10 ms, delays included.
PERIOD = 0.008
_REFRESH = 0.1


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
    :param adopter: process that adopts the orphans among the descendants, if one does
    :raises MonitoringError: for a share outside 1 to 100 %
    """

    def __init__(
        self,
        process: Limited,
        share: float | LimitTrace,
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
        self.guardian = LimitGuardian()
        self._tree = ProcessTree(psutil.Process(process.pid), adopter)

    def __exit__(self, *_: object) -> None:
        self.close()

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
        turn = self._budget.update(now, self._tree.consumed(), share)
        if turn.run == self._stopped:
            self._tree.signal(signal.SIGCONT if turn.run else signal.SIGSTOP)
            self._stopped = not turn.run
        return turn.wait

    def close(self) -> None:
        """Lift the limit: all processes run again."""
        self._tree.refresh()
        self._tree.signal(signal.SIGCONT)
        self._stopped = False
        self.guardian.stop()

    def _refresh(self, now: float) -> None:
        self._refreshed = now
        known = self._tree.members
        self._tree.leave_out(self.guardian.process)
        self._tree.refresh()
        self.guardian.update(self._tree.members, self._tree.session)
        # Do to a new member what has been done to all others.
        for process in self._tree.members - known if self._stopped else ():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGSTOP)

"""A processor limit by the kernel itself (cgroup v2), where one may be set."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from mmedge_ros.monitoring import MonitoringError

_PERIOD_US = 10_000
# The kernel refuses less.
_SMALLEST_QUOTA_US = 1000
_MOUNT = Path('/sys/fs/cgroup')
_OWN = Path('/proc/self/cgroup')


class CgroupLimit:
    """A group of its own below one that this process may write to.

    :raises MonitoringError: if it cannot be made or has no processor limit
    """

    def __init__(self, parent: Path, name: str) -> None:
        self._parent = parent
        self._folder = parent / name
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as err:
            raise MonitoringError(f'{self._folder}: {err.strerror or err}') from err
        self.limit_file = self._folder / 'cpu.max'
        if not os.access(self.limit_file, os.W_OK):
            self.close()
            raise MonitoringError(f'{self._folder}: the processor controller is not enabled')

    def set_share(self, share: float, cpus: int) -> None:
        """Limit the group to a share of all processors; 1 or more lifts the limit.

        :raises MonitoringError: if the kernel refuses
        """
        quota = max(round(share * cpus * _PERIOD_US), _SMALLEST_QUOTA_US)
        self._write(
            self.limit_file, f'max {_PERIOD_US}' if share >= 1.0 else f'{quota} {_PERIOD_US}'
        )

    def add(self, pid: int) -> None:
        """Move a process, and with it all children it will have, into the group.

        :raises MonitoringError: if the kernel refuses
        """
        self._write(self._folder / 'cgroup.procs', str(pid))

    def close(self) -> None:
        """Lift the limit, move all processes out and remove the group."""
        members = self._folder / 'cgroup.procs'
        with contextlib.suppress(MonitoringError):
            self._write(self._folder / 'cpu.max', f'max {_PERIOD_US}')
        with contextlib.suppress(OSError, MonitoringError):
            for pid in members.read_text().split():
                self._write(self._parent / 'cgroup.procs', pid)
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def _write(self, path: Path, content: str) -> None:
        try:
            # Never makes a file: what the kernel does not offer is not there.
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, content.encode())
            finally:
                os.close(descriptor)
        except OSError as err:
            raise MonitoringError(f'{path}: {err.strerror or err}') from err


def find_cgroup_limit(pid: int, mount: Path = _MOUNT, own: Path = _OWN) -> CgroupLimit | None:
    """Return a group for process ``pid``, moved into it, or None where that is not possible."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return None
    inside = next((line[3:] for line in lines if line.startswith('0::')), None)
    if inside is None or not (mount / 'cgroup.controllers').exists():
        return None
    place = mount / inside.strip('/')
    for parent in (place, place.parent, mount):
        with contextlib.suppress(MonitoringError):
            limit = CgroupLimit(parent, f'mmedge_limit_{pid}')
            try:
                limit.add(pid)
            except MonitoringError:
                limit.close()
                raise
            return limit
    return None

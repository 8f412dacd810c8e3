"""Work spread over a Ray cluster that exists; Ray is an optional extra, imported only here."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

from mmedge_lab.worker_processes import Expected, WorkError
from mmedge_ros import MmedgeError

LOCAL = 'local'
_PATIENCE_S = 5.0
# A work whose worker or machine is lost is done again on another, so many times.
_RETRIES = 3

Files: TypeAlias = dict[str, bytes]
FolderWork: TypeAlias = Callable[[Path], object]


class ClusterError(MmedgeError):
    """Ray is not installed, or no cluster can be used."""


class _Failure(NamedTuple):
    reason: str


def do_works_on_ray(
    address: str,
    works: Mapping[str, FolderWork],
    expected: Expected,
    keep: Callable[[str, Files], None],
) -> None:
    """Do works, given by name, on a cluster: one task each, done again where a worker is lost.

    What works read must have the same path on every machine, and this package must be
    installed there, the same as here. What they write comes back.

    :param address: of the cluster; ``local`` starts one on this machine for the time being
    :param works: each is called with an empty folder for what it writes
    :param expected: what a work raises where it cannot be done
    :param keep: called with a work's name and its files by relative path, in the order in which
        they were written
    :raises ClusterError: without Ray, or if the cluster cannot be used
    :raises WorkError: if a work cannot be done
    """
    if not works:
        return
    ray = _ray()
    _connect(ray, address)
    try:
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_files_of)
        waiting = {
            remote.remote(work, expected, _software()): name for name, work in works.items()
        }
        while waiting:
            ready = ray.wait(list(waiting), num_returns=1)[0][0]
            name = waiting.pop(ready)
            keep(name, _fetched(ray, ready, name))
            del ready  # what is kept needs no room in the cluster
    finally:
        ray.shutdown()


def _files_of(work: FolderWork, expected: Expected, software: str) -> Files | _Failure:
    """Do a work on a machine of the cluster; return what it wrote, or why it could not."""
    if software != _software():
        return _Failure(
            'mmedge_ros on a machine of the cluster differs from the one here; install the same'
        )
    with TemporaryDirectory() as folder:
        try:
            work(Path(folder))
        except expected as err:
            return _Failure(str(err))
        paths = [path for path in Path(folder).rglob('*') if path.is_file()]
        paths.sort(key=lambda path: path.stat().st_mtime_ns)
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _fetched(ray: Any, ready: Any, name: str) -> Files:
    try:
        files: Files | _Failure = ray.get(ready)
    except ray.exceptions.RayError as err:
        raise WorkError(
            name,
            f'its Ray task failed ({_first_line(err)}); run the same command again, what is '
            'whole is kept',
        ) from err
    if isinstance(files, _Failure):
        raise WorkError(name, files.reason)
    return files


def _connect(ray: Any, address: str) -> None:
    try:
        _require_listener(address)
        ray.init(
            address=address,
            configure_logging=False,
            log_to_driver=False,
            **({'include_dashboard': False} if address == LOCAL else {}),
        )
    except (OverflowError, ValueError, RuntimeError, OSError) as err:
        raise ClusterError(
            f'--ray {address}: no cluster answers there ({_first_line(err)}); start one with '
            '`ray start --head`, or leave the option out'
        ) from err
    if ray.cluster_resources().get('CPU', 0) < 1:
        ray.shutdown()
        raise ClusterError(f'--ray {address}: the cluster has no processor; add a machine to it')


def _require_listener(address: str) -> None:
    """Make sure that a process listens there: Ray itself would try for minutes."""
    place = address.rpartition('//')[2]
    host, colon, port = place.rpartition(':')
    if colon and port.isdecimal():
        with socket.create_connection((host.strip('[]'), int(port)), _PATIENCE_S):
            pass


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError as err:
        raise ClusterError(
            '--ray needs the package ray, which is not installed; run '
            "`pip install 'mmedge_ros[ray]'`, or leave the option out"
        ) from err
    return ray


@cache
def _software() -> str:
    """Return a digest of this package's modules."""
    folder = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob('*.py')):
        digest.update(path.relative_to(folder).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _first_line(err: BaseException) -> str:
    return next((line for line in str(err).splitlines() if line.strip()), type(err).__name__)

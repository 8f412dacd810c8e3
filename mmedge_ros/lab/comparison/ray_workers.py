"""Flights spread over a Ray cluster that exists; Ray is an optional extra, imported only here."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mmedge_ros import MmedgeError
from mmedge_ros.lab.comparison.plan import ComparisonCase
from mmedge_ros.lab.comparison.task import ComparisonTask, compare_flight
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.evaluation.flight_workers import OnProgress

LOCAL = 'local'
_PATIENCE_S = 5.0


def compare_on_ray(
    address: str, tasks: Sequence[ComparisonTask], on_progress: OnProgress | None = None
) -> None:
    """Compare flights on a cluster, one task each; outcomes come back here and are kept here.

    Bundle and flights must have the same paths on every machine of the cluster, and
    this package must be installed there. A flight is kept as a whole: one cut short begins anew.

    :param address: of the cluster; ``local`` starts one on this machine for the time being
    :raises EvaluationError: without Ray, if the cluster cannot be reached, or a flight fails
    """
    ray = _ray()
    todo = [task for task in tasks if task.pending()]
    whole = len(tasks) - len(todo)
    if on_progress and tasks:
        on_progress(whole / len(tasks), whole)
    if not todo:
        return
    _connect(ray, address)
    try:
        remote = ray.remote(num_cpus=1, max_retries=1)(_outcomes)
        waiting = {remote.remote(_shipped(task)): task for task in todo}
        while waiting:
            ready = ray.wait(list(waiting), num_returns=1)[0][0]
            task = waiting.pop(ready)
            for case, content in _fetched(ray, ready, task):
                task.keep(case, content)
            whole += 1
            if on_progress:
                on_progress(whole / len(tasks), whole)
    finally:
        ray.shutdown()


def _outcomes(task: ComparisonTask) -> list[tuple[ComparisonCase, bytes]] | str:
    """Return pending outcomes, on the machine that has the flight; a sentence where that fails."""
    outcomes: list[tuple[ComparisonCase, bytes]] = []
    with TemporaryDirectory() as folder:
        try:
            compare_flight(
                replace(task, folder=Path(folder)), keep=lambda *outcome: outcomes.append(outcome)
            )
        except MmedgeError as err:
            return str(err)
    return outcomes


def _shipped(task: ComparisonTask) -> ComparisonTask:
    """Return a task for another machine: only what is pending, under paths that hold there."""
    bundle = replace(task.bundle, folder=task.bundle.folder.resolve())
    return replace(task, flight=task.flight.resolve(), bundle=bundle, cases=task.pending())


def _fetched(ray: Any, ready: Any, task: ComparisonTask) -> list[tuple[ComparisonCase, bytes]]:
    try:
        outcomes: list[tuple[ComparisonCase, bytes]] | str = ray.get(ready)
    except ray.exceptions.RayError as err:
        raise EvaluationError(
            f'flight {task.name}: its Ray task failed ({_first_line(err)}); what is done is kept, '
            'run the same command again'
        ) from err
    if isinstance(outcomes, str):
        named = outcomes if task.name in outcomes else f'flight {task.name}: {outcomes}'
        raise EvaluationError(named)
    return outcomes


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
        raise EvaluationError(
            f'--ray {address}: no cluster answers there ({_first_line(err)}); start one with '
            '`ray start --head`, or leave the option out'
        ) from err


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
        raise EvaluationError(
            '--ray needs the package ray, which is not installed; run '
            "`pip install 'mmedge_ros[ray]'`, or leave the option out"
        ) from err
    return ray


def _first_line(err: BaseException) -> str:
    return next((line for line in str(err).splitlines() if line.strip()), type(err).__name__)

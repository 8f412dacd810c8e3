"""How soon a killed node of fusion decides again, under `mmedge up`.

    .venv/bin/python benchmarks/kills.py RECORDING --kills 10

Plays the recording over and over and kills the node when it has been at work for 6 to 9 s. Prints
for each kill the seconds until the new process was there and until its first decision was
published, and the processor time that it took until then.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil

from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.status_listener import StatusListener

GOAL = 3.0
PATIENCE = 60.0
# s after the kill: a decision published before was on its way already.
ON_ITS_WAY = 0.1


class Restart(NamedTuple):
    """Seconds from the kill, and of processor time."""

    there: float
    decided: float
    processor: float


def fusion_of(up: int) -> psutil.Process | None:
    """Return the process of fusion, None while there is none."""
    for process in psutil.Process(up).children(recursive=True):
        try:
            if '__node:=fusion' in process.cmdline():
                return process
        except psutil.Error:
            continue
    return None


def killed(up: int, listener: StatusListener, spin: Callable[[], None], lasting: float) -> Restart:
    """Kill fusion after so many seconds, and wait for the next decision."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f'nothing within {PATIENCE:g} s')
            spin()

    wait(lambda: fusion_of(up) is not None)
    begun = time.monotonic()
    wait(lambda: listener.decided_at > begun and time.monotonic() - begun > lasting)
    old = fusion_of(up)
    assert old is not None
    old.kill()
    at, at_ns = time.monotonic(), time.time_ns()
    wait(lambda: (new := fusion_of(up)) is not None and new.pid != old.pid)
    there, new = time.monotonic() - at, fusion_of(up)

    def published() -> float:
        return 0.0 if listener.decision is None else (listener.decision.published_ns - at_ns) / 1e9

    wait(lambda: published() > ON_ITS_WAY)
    times = new.cpu_times() if new is not None else None
    return Restart(there, published(), times.user + times.system if times else 0.0)


def main() -> None:
    """Kill it again and again, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('recording')
    parser.add_argument('--kills', type=int, default=10)
    parser.add_argument('--out', type=Path, default=Path('out/kills'))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    set_profile()
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'up', '--bag', given.recording]
    command += ['--loop', '--logs', str(given.out / 'logs')]
    draw, restarts = random.Random(0), []
    with (given.out / 'up.log').open('w') as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        with spinning(StatusListener) as (listener, spin):
            for _ in range(given.kills):
                restarts.append(killed(up.pid, listener, spin, draw.uniform(6.0, 9.0)))
                last = restarts[-1]
                print(
                    f'there after {last.there:.2f} s, decided after {last.decided:.2f} s with '
                    f'{last.processor:.2f} s of processor time; load {os.getloadavg()[0]:.1f}',
                    flush=True,
                )
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(30.0)
    seconds = sorted(restart.decided for restart in restarts)
    within = sum(second <= GOAL for second in seconds)
    print(
        f'{within} of {len(seconds)} within {GOAL:g} s, median {seconds[len(seconds) // 2]:.2f} s'
    )
    print(f'at most {seconds[-1]:.2f} s')


if __name__ == '__main__':
    main()

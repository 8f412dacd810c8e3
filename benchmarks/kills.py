"""How soon a killed node of fusion decides again, under `mmedge up`.

    .venv/bin/python benchmarks/kills.py RECORDING --kills 10

Plays the recording over and over and kills the node when it has been at work for 6 to 9 s. Prints
the seconds from each kill until the first decision of the new process was published.
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

import psutil

from mmedge_ros.ros.graph.middleware_profile import set_profile
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.status_listener import StatusListener

PATIENCE = 60.0
# s after the kill: a decision published before was on its way already.
ON_ITS_WAY = 0.1


def fusion_of(up: int) -> psutil.Process | None:
    """Return the process of fusion, None while there is none."""
    for process in psutil.Process(up).children(recursive=True):
        try:
            if '__node:=fusion' in process.cmdline():
                return process
        except psutil.Error:
            continue
    return None


def until_decided(
    up: int, listener: StatusListener, spin: Callable[[], None], lasting: float
) -> float:
    """Kill fusion after so many seconds of work; return the seconds until the next decision."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f'nothing within {PATIENCE:g} s')
            spin()

    def published() -> float:
        return 0.0 if listener.decision is None else (listener.decision.published_ns - at_ns) / 1e9

    wait(lambda: fusion_of(up) is not None)
    begun = time.monotonic()
    wait(lambda: listener.decided_at > begun and time.monotonic() - begun > lasting)
    old = fusion_of(up)
    assert old is not None
    old.kill()
    at_ns = time.time_ns()
    wait(lambda: published() > ON_ITS_WAY)
    return published()


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
    draw, seconds = random.Random(0), []
    with (given.out / 'up.log').open('w') as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        with spinning(StatusListener) as (listener, spin):
            for _ in range(given.kills):
                seconds.append(until_decided(up.pid, listener, spin, draw.uniform(6.0, 9.0)))
                print(f'{seconds[-1]:.2f} s; load {os.getloadavg()[0]:.1f}', flush=True)
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(30.0)
    seconds.sort()
    print(f'median {seconds[len(seconds) // 2]:.2f} s, at most {seconds[-1]:.2f} s')


if __name__ == '__main__':
    main()

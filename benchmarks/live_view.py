"""What the live page costs: its processor time, and the latency of decisions beside it.

    PYTHONPATH=. .venv/bin/python benchmarks/live_view.py out/demo/flight --pairs 6

Plays a recording through the live graph with a page, again and again, by turns with and without a
process that reads states and pictures as a browser does (--browser starts a headless Chromium
instead, which draws the page on the same processor). Prints the share of a core that the page's
node takes, and the ratio of the 95 % quantiles of the latency, with an interval from drawing pairs
anew.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException

import numpy as np
import psutil

from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.ros.sessions.live_session import LiveOptions, replay_live
from mmedge_ros.viewing.live_page import HOST, free_port

PATIENCE = 30.0
NODE = 'mmedge_ros.ros.nodes.viewer'
# The share of the recording over which the processor is measured: begin and end.
BEGIN, END = 0.25, 0.95
DRAWS = 4000


def read_states(port: int) -> None:
    """Read the stream of states for ever."""
    connection = connected(port)
    connection.request('GET', '/states')
    answer = connection.getresponse()
    while answer.read(4096):
        pass


def read_pictures(port: int) -> None:
    """Request one picture after another."""
    connection, after = connected(port), '0'
    with suppress(OSError, HTTPException):  # until the page is gone
        while True:
            connection.request('GET', f'/picture?after={after}')
            answer = connection.getresponse()
            after = answer.headers['Picture-Number'] or after
            answer.read()


def connected(port: int) -> HTTPConnection:
    """Connect once the page is there."""
    begun = time.monotonic()
    while True:
        connection = HTTPConnection(HOST, port, timeout=PATIENCE)
        try:
            connection.connect()
        except OSError:
            if time.monotonic() - begun > PATIENCE:
                raise
            time.sleep(0.2)
        else:
            return connection


def look(port: int) -> None:
    """Read what a browser reads until the page is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, HTTPException):
        threading.Thread(target=read_pictures, args=(port,), daemon=True).start()
        read_states(port)


@contextmanager
def looking(port: int, browser: str) -> Iterator[None]:
    """Look at the page, in a process of its own or a browser."""
    if not browser:
        process = multiprocessing.get_context('spawn').Process(target=look, args=(port,))
        process.start()
        try:
            yield
        finally:
            process.kill()
            process.join()
        return
    with tempfile.TemporaryDirectory() as folder:
        # Opened by its own program; one that is not there yet is tried again by the page.
        connected(port).close()
        chromium = subprocess.Popen(
            [browser, '--headless', '--no-sandbox', '--disable-gpu', f'--user-data-dir={folder}',
             '--remote-debugging-port=0', f'http://{HOST}:{port}'],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            yield
        finally:
            chromium.kill()
            chromium.wait()
            time.sleep(0.5)


class Processor:
    """Measures the page's node between two shares of a recording."""

    def __init__(self) -> None:
        self._begin: tuple[float, float] | None = None
        self._end: tuple[float, float] | None = None

    def look(self, share: float, _: LiveRecord) -> None:
        """Called with how much of the recording was played."""
        if share >= BEGIN and self._begin is None:
            self._begin = self._now()
        elif BEGIN < share <= END:
            self._end = self._now()

    def percent(self) -> float:
        """Percent of one core."""
        if self._begin is None or self._end is None:
            return float('nan')
        spent, wall = (e - b for b, e in zip(self._begin, self._end, strict=True))
        return 100.0 * spent / wall

    @staticmethod
    def _now() -> tuple[float, float]:
        for child in psutil.Process().children():
            if NODE in child.cmdline():
                times = child.cpu_times()
                return times.user + times.system, time.monotonic()
        raise SystemExit('the node of the live page is not running')


def fly(bag: str, browser: str, looker: bool) -> tuple[float, float]:
    """Play once; return p95 of the latency in ms and the percent of a core."""
    port, processor = free_port(), Processor()
    opened = threading.Event()

    def watch() -> None:
        with looking(port, browser):
            opened.wait()

    thread = threading.Thread(target=watch)
    if looker:
        thread.start()
    try:
        record = replay_live(LiveOptions(bag, view=port), processor.look)
    finally:
        opened.set()
        if looker:
            thread.join()
    latencies = [1e3 * decision.latency for decision in record.decisions[record.warmup :]]
    return float(np.quantile(latencies, 0.95)), processor.percent()


def main() -> None:
    """Measure pairs and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('bag')
    parser.add_argument('--pairs', type=int, default=6)
    parser.add_argument('--browser', action='store_true')
    given = parser.parse_args()
    browser = ''
    if given.browser:
        browser = shutil.which('chromium') or shutil.which('google-chrome') or ''
        if not browser:
            raise SystemExit('no chromium here; leave out --browser')
    p95: dict[bool, list[float]] = {False: [], True: []}
    percent: dict[bool, list[float]] = {False: [], True: []}
    for number in range(given.pairs):
        for looker in (False, True) if number % 2 == 0 else (True, False):
            latency, share = fly(given.bag, browser, looker)
            p95[looker].append(latency)
            percent[looker].append(share)
            words = 'one looks' if looker else 'nobody   '
            print(f'{number + 1}  {words}  p95 {latency:6.2f} ms  page {share:5.1f} %', flush=True)
    ratios = np.array(p95[True]) / np.array(p95[False])
    draws = np.random.default_rng(0).choice(ratios, (DRAWS, len(ratios)))
    low, high = np.quantile(np.exp(np.log(draws).mean(axis=1)), [0.025, 0.975])
    print(f'page, nobody looks: {np.mean(percent[False]):5.2f} % of a core')
    print(f'page, one looks:    {np.mean(percent[True]):5.2f} % of a core')
    mean = np.exp(np.log(ratios).mean())
    print(f'p95 of decisions with one that looks: x {mean:.3f} ({low:.3f} to {high:.3f})')


if __name__ == '__main__':
    main()

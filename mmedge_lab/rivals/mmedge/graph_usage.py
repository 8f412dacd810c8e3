"""What the nodes of a graph use of the machine while it plays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import psutil

_LOOK = 0.2


class NodeUsage(NamedTuple):
    """Processor seconds per second while a node was watched, and the most memory, MB."""

    cpu_share: float
    memory_mb: float


class GraphUsage:
    """Watches processes from when a graph plays; a context manager with a thread of its own.

    :param pids: called for the processes by name
    :param plays: tells whether the graph has begun to play
    """

    def __init__(self, pids: Callable[[], Mapping[str, int]], plays: Callable[[], bool]) -> None:
        self._pids = pids
        self._plays = plays
        # By process: its name, when and with how many seconds it was seen first and last.
        self._seen: dict[int, tuple[str, tuple[float, float], tuple[float, float]]] = {}
        self._memory: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> GraphUsage:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def by_node(self) -> dict[str, NodeUsage]:
        """What each node used; a node without two looks at it is left out."""
        shares: dict[str, float] = {}
        for name, (begun, before), (ended, after) in self._seen.values():
            if ended > begun:
                shares[name] = (after - before) / (ended - begun)
        return {name: NodeUsage(share, self._memory[name]) for name, share in shares.items()}

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK):
            if self._plays():
                self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Look at every process."""
        for name, pid in self._pids().items():
            try:
                process = psutil.Process(pid)
                times, memory = process.cpu_times(), process.memory_info().rss / 1e6
            except psutil.Error:
                continue
            used = (now, times.user + times.system)
            _, first, _ = self._seen.get(pid, (name, used, used))
            self._seen[pid] = (name, first, used)
            self._memory[name] = max(memory, self._memory.get(name, 0.0))

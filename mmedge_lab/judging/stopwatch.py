"""Timing of short computations on a machine that others use too."""

from __future__ import annotations

import time

import numpy as np


class Stopwatch:
    """Collects how long computations took, by the clock and in processor time of the thread.

    The two differ when the machine is busy with something else; what a computation costs is
    its processor time.
    """

    def __init__(self) -> None:
        self._wall: list[float] = []
        self._processor: list[float] = []
        self._begun = (0.0, 0.0)

    @property
    def is_used(self) -> bool:
        """Whether it has timed anything."""
        return bool(self._wall)

    def start(self) -> None:
        """Begin a computation."""
        self._begun = (time.perf_counter(), time.thread_time())

    def stop(self) -> None:
        """End the computation begun last."""
        self._wall.append(time.perf_counter() - self._begun[0])
        self._processor.append(time.thread_time() - self._begun[1])

    def microseconds(self) -> dict[str, float]:
        """Return quantiles of all computations."""
        wall, processor = 1e6 * np.array(self._wall), 1e6 * np.array(self._processor)
        return {
            'p50': round(float(np.quantile(wall, 0.5)), 1),
            'p95': round(float(np.quantile(wall, 0.95)), 1),
            'processor_p50': round(float(np.quantile(processor, 0.5)), 1),
            'processor_p95': round(float(np.quantile(processor, 0.95)), 1),
        }

"""Times work by the processor's clock and prints it beside a reference of the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np


def median_ms(work: Callable[[], object], rounds: int, prepare: int = 3) -> float:
    """Return the median milliseconds of processor time; ``prepare`` rounds before do not count."""
    times = []
    for number in range(prepare + rounds):
        begun = time.process_time()
        work()
        if number >= prepare:
            times.append(time.process_time() - begun)
    return 1e3 * float(np.median(times))


def print_ratios(times: Mapping[str, float], unit: str = 'ms') -> None:
    """Print each time and its ratio to the first one."""
    reference = next(iter(times.values()))
    for name, value in times.items():
        print(f'{name:44} {value:10.3f} {unit} {value / reference:8.2f}')

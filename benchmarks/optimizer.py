"""How long a decision takes from a measured unit to a configuration, for 81 to 2401 of them.

    .venv/bin/python benchmarks/optimizer.py

Prints the median microseconds of the calibration by one unit, of the latency quantiles and exact
search after it, and of the search alone, each with its ratio to the fewest configurations. All
answers are compared with exhaustive search.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

from bench_timing import print_ratios

from mmedge_lab.rivals.mmedge.optimizer_bench import decision_times

if __name__ == '__main__':
    measured = {side**4: decision_times(side, rounds=500) for side in (3, 4, 5, 6, 7)}
    assert all(times['equal_to_exhaustive'] for times in measured.values())
    for step in ('unit', 'fresh', 'search'):
        print_ratios(
            {f'{step}, {n} ways': times[step]['p50'] for n, times in measured.items()}, 'us'
        )

"""How long a decision takes from a measured unit to a configuration, for 81 to 2401 of them.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/optimizer.py

Prints microseconds, the median by the clock and the 95 % quantile of processor time, of: the
calibration by one unit; the latency quantiles and the exact search after it; the search alone.
All answers are compared with exhaustive search.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

from mmedge_ros.lab.bench.optimizer_bench import decision_times

if __name__ == '__main__':
    for side in (3, 4, 5, 6, 7):
        times = decision_times(side, rounds=500)
        parts = [
            f'{name} {times[name]["p50"]:.1f} ({times[name]["processor_p95"]:.1f})'
            for name in ('unit', 'fresh', 'search')
        ]
        verdict = 'as exhaustive' if times['equal_to_exhaustive'] else 'NOT AS EXHAUSTIVE SEARCH'
        print(f'{side**4:5d} configurations: {", ".join(parts)}; {verdict}')

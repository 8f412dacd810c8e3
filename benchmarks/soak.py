"""Whether a graph that runs for long keeps its memory, files and threads: `mmedge up`, watched.

    .venv/bin/python benchmarks/soak.py RECORDING --minutes 30 --out soak.json

Plays the recording over and over with the optimiser on, beside whatever else the machine does, and
looks at each process every ten seconds. Prints for each process the median slope of its own memory
after the first five minutes (a step, as of another level, is none) and in the last ten, by which
what fills up to a bound is full; the threads, open files and shared memory that became more; and
what `mmedge up` said.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from scipy.stats import theilslopes

from mmedge_ros.ros.graph.middleware_files import segments_of

SETTLING = 300.0
LATE = 600.0
PERIOD = 10.0


def sample(process: psutil.Process) -> dict[str, float]:
    """Look at one process: MB that are its own, and counts."""
    status = Path(f'/proc/{process.pid}/status').read_text()
    own = re.search(r'RssAnon:\s+(\d+)', status)
    return {
        'own_mb': int(own.group(1)) / 1e3 if own else 0.0,
        'rss_mb': process.memory_info().rss / 1e6,
        'threads': process.num_threads(),
        'files': process.num_fds(),
        'segments': len(segments_of(process.pid)),
    }


def name_of(process: psutil.Process) -> str:
    """Return the node's name, or 'up' for the command."""
    found = re.search(r'__node:=(\w+)', ' '.join(process.cmdline()))
    return found.group(1) if found else 'up'


def look(parent: psutil.Process) -> dict[str, dict[str, float]]:
    """Look at all processes of the graph."""
    seen = {}
    for process in [parent, *parent.children(recursive=True)]:
        try:
            seen[f'{name_of(process)} {process.pid}'] = sample(process)
        except (psutil.Error, OSError):
            continue
    return seen


def slope(points: list[tuple[float, dict[str, float]]]) -> float:
    """Return the median slope of the memory of a process, MB per hour."""
    hours = [seconds / 3600.0 for seconds, _ in points]
    return float(theilslopes([looked['own_mb'] for _, looked in points], hours)[0])


def summary(samples: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return MB per hour after the settling, and what became more since, by process."""
    settled = [s for s in samples if s['seconds'] >= SETTLING] or samples
    rows = {}
    for name in {name for s in settled for name in s['processes']}:
        points = [(s['seconds'], s['processes'][name]) for s in settled if name in s['processes']]
        if len(points) < 3:
            continue
        hours = [seconds / 3600.0 for seconds, _ in points]
        late = [point for point in points if point[0] >= points[-1][0] - LATE]
        first, last = points[0][1], points[-1][1]
        rows[name] = {
            'mb_per_hour': slope(points),
            'late_mb_per_hour': slope(late) if len(late) > 2 else 0.0,
            'own_mb': last['own_mb'],
            'minutes': float(hours[-1] - hours[0]) * 60.0,
            **{f'more_{k}': last[k] - first[k] for k in ('threads', 'files', 'segments')},
        }
    return rows


def main() -> None:
    """Run the graph for so long, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('recording')
    parser.add_argument('--minutes', type=float, default=30.0)
    parser.add_argument('--out', type=Path, default=Path('out/soak/soak.json'))
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'up', '--bag', given.recording]
    command += ['--loop', '--optimise', '--logs', str(given.out.parent / 'logs')]
    samples: list[dict[str, Any]] = []
    with given.out.with_suffix('.log').open('w') as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        parent, begun = psutil.Process(up.pid), time.monotonic()
        try:
            while up.poll() is None and time.monotonic() - begun < given.minutes * 60.0:
                samples.append(
                    {
                        'seconds': time.monotonic() - begun,
                        'load': os.getloadavg()[0],
                        'processes': look(parent),
                    }
                )
                rows = summary(samples)
                given.out.write_text(json.dumps({'rows': rows, 'samples': samples}))
                time.sleep(PERIOD)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(30.0)
    for name, row in sorted(rows.items()):
        print(name, ' '.join(f'{key} {value:.2f}' for key, value in row.items()))
    loads = [s['load'] for s in samples]
    print(f'load average {min(loads):.1f} to {max(loads):.1f}')
    print(given.out.with_suffix('.log').read_text())


if __name__ == '__main__':
    main()

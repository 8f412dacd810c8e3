"""Whether a graph that runs for long keeps its memory, files and threads: `mmedge up`, watched.

    .venv/bin/python benchmarks/soak.py RECORDING --minutes 30

Plays the recording over and over with the optimiser on, beside whatever else the machine does, and
looks at each process every ten seconds. Prints for each process the median slope of its own memory
after the first five minutes (a step, as of another level, is none), and the threads, open files
and shared memory that became more.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from scipy.stats import theilslopes

from mmedge_ros.ros.graph.middleware_files import segments_of

SETTLING = 300.0
PERIOD = 10.0
# Seconds, own memory in MB, threads, open files, segments of shared memory.
Look = tuple[float, float, int, int, int]


def look(process: psutil.Process, seconds: float) -> tuple[str, Look]:
    """Look at one process: the name of its node, or 'up', and what it holds."""
    node = re.search(r'__node:=(\w+)', ' '.join(process.cmdline()))
    own = re.search(r'RssAnon:\s+(\d+)', Path(f'/proc/{process.pid}/status').read_text())
    counts = (process.num_threads(), process.num_fds(), len(segments_of(process.pid)))
    name = f'{node.group(1) if node else "up"} {process.pid}'
    return name, (seconds, int(own.group(1)) / 1e3 if own else 0.0, *counts)


def main() -> None:
    """Run the graph for so long, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('recording')
    parser.add_argument('--minutes', type=float, default=30.0)
    parser.add_argument('--out', type=Path, default=Path('out/soak'))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'up', '--bag', given.recording]
    command += ['--loop', '--optimise', '--logs', str(given.out / 'logs')]
    looks: dict[str, list[Look]] = {}
    with (given.out / 'up.log').open('w') as log:
        up = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        parent, begun = psutil.Process(up.pid), time.monotonic()
        try:
            while up.poll() is None and (now := time.monotonic() - begun) < given.minutes * 60.0:
                for process in [parent, *parent.children(recursive=True)]:
                    try:
                        name, seen = look(process, now)
                    except (psutil.Error, OSError):
                        continue
                    looks.setdefault(name, []).append(seen)
                time.sleep(PERIOD)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait(30.0)
    for name, seen in sorted(looks.items()):
        settled = [s for s in seen if s[0] >= SETTLING] or seen
        slope = theilslopes([s[1] for s in settled], [s[0] / 3600.0 for s in settled])[0]
        more = [last - first for first, last in zip(settled[0][2:], settled[-1][2:], strict=True)]
        print(
            f'{name}: {slope:.2f} MB/h, now {settled[-1][1]:.1f} MB; '
            'more: {} threads, {} files, {} segments'.format(*more)
        )
    print((given.out / 'up.log').read_text())


if __name__ == '__main__':
    main()

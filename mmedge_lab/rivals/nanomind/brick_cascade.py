"""One event after the other through all bricks of a bundle, in a process of its own.

Either all bricks are loaded once and stay, or each is loaded when the event reaches it, runs, and
is released: an on-demand cascade.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from mmedge_ros.adaptation.brick_measurement import open_brick
from mmedge_ros.encoding.bricks import resident_memory
from mmedge_ros.encoding.opened_levels import release

CASCADE, STAYING = 'on demand', 'staying loaded'
WAYS = (CASCADE, STAYING)
# Pictures of a burst, and what each brick does with them.
RUNS = 8
_SAMPLE = 0.002
_PAUSE = 0.1


class _PeakMemory:
    """Samples the memory of the process, beyond what it had before, until it is left."""

    def __init__(self) -> None:
        self._before = resident_memory()
        self._stopping = threading.Event()
        self.peak = 0
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def grown(self) -> int:
        return max(resident_memory() - self._before, 0)

    def __enter__(self) -> _PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopping.wait(_SAMPLE):
            self.peak = max(self.peak, self.grown())


def run_events(model: Path, bricks: Sequence[str], way: str, events: int) -> dict[str, float]:
    """Let events pass; times in ms, memory in MB beyond what the process had before.

    :raises EncodingError: if a brick cannot be opened, or fails
    """
    for name in bricks:
        open_brick(model, name)()
    release([])
    with _PeakMemory() as memory:
        resident = {name: open_brick(model, name) for name in bricks if way == STAYING}
        time.sleep(_PAUSE)
        walls, begun = [], time.process_time()
        for _ in range(events):
            start = time.monotonic()
            for name in bricks:
                run = resident.get(name) or open_brick(model, name)
                for _ in range(RUNS):
                    run()
                if way == CASCADE:
                    del run
                    release([])
            walls.append(time.monotonic() - start)
            time.sleep(_PAUSE)
        spent = time.process_time() - begun
        between = memory.grown()
    return {
        'processor_ms': 1e3 * spent / events,
        'wall_ms': 1e3 * sorted(walls)[events // 2],
        'peak_mb': memory.peak / 1e6,
        'between_mb': between / 1e6,
    }


def main(arguments: Sequence[str]) -> int:
    """Run MODEL WAY EVENTS BRICK..., and print a line of JSON."""
    model, way, events, *bricks = arguments
    print(json.dumps(run_events(Path(model), bricks, way, int(events))))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

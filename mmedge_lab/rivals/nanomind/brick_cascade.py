"""One event after the other through all bricks of a bundle, in a process of its own.

Either all bricks are loaded once and stay, or each is loaded when the event reaches it, runs, and
is released: an on-demand cascade.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.bricks import BrickState, resident_memory
from mmedge_ros.encoding.opened_levels import release
from mmedge_ros.power.brick_measurement import open_brick

CASCADE, STAYING = 'on demand', 'staying loaded'
WAYS = (CASCADE, STAYING)
# Pictures of a burst, and what each brick does with them.
RUNS = 8
_SAMPLE = 0.002
_PAUSE = 0.1


class _Watch:
    """Notes what bricks do, and samples the memory of the process meanwhile."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before = resident_memory()
        self._stopping = threading.Event()
        self.memory: list[tuple[float, float]] = []
        self.spans: list[tuple[str, str, float, float]] = []
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def now(self) -> float:
        return time.monotonic() - self._begun

    def grown(self) -> int:
        return max(resident_memory() - self._before, 0)

    @contextmanager
    def doing(self, brick: str, state: BrickState) -> Iterator[None]:
        begun = self.now()
        yield
        self.spans.append((brick, state.name, round(begun, 4), round(self.now(), 4)))

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopping.wait(_SAMPLE):
            self.memory.append((round(self.now(), 4), round(self.grown() / 1e6, 2)))


def run_events(model: Path, bricks: Sequence[str], way: str, events: int) -> dict[str, Any]:
    """Let events pass; times in s, memory in MB beyond what the process had before.

    :raises EncodingError: if a brick cannot be opened, or fails
    """
    for name in bricks:
        open_brick(model, name)()
    release([])
    with _Watch() as watch:
        resident = {}
        if way == STAYING:
            for name in bricks:
                with watch.doing(name, BrickState.LOADING):
                    resident[name] = open_brick(model, name)
            time.sleep(_PAUSE)
        walls, begun = [], time.process_time()
        for _ in range(events):
            start = watch.now()
            for name in bricks:
                if way == STAYING:
                    with watch.doing(name, BrickState.RUNNING):
                        for _ in range(RUNS):
                            resident[name]()
                    continue
                with watch.doing(name, BrickState.LOADING):
                    run = open_brick(model, name)
                with watch.doing(name, BrickState.RUNNING):
                    for _ in range(RUNS):
                        run()
                with watch.doing(name, BrickState.RELEASED):
                    del run
                    release([])
            walls.append(watch.now() - start)
            time.sleep(_PAUSE)
        spent = time.process_time() - begun
    return {
        'way': way,
        'events': events,
        'processor_s': spent / events,
        'wall_s': sorted(walls)[events // 2],
        'peak_mb': max((mb for _, mb in watch.memory), default=0.0),
        'between_mb': watch.grown() / 1e6,
        'memory': watch.memory,
        'spans': watch.spans,
    }


def main(arguments: Sequence[str]) -> int:
    """Run MODEL WAY EVENTS BRICK..., and print a line of JSON."""
    model, way, events, *bricks = arguments
    print(json.dumps(run_events(Path(model), bricks, way, int(events))))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

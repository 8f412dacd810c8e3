"""The queue never grows and never makes anybody wait in vain."""

from __future__ import annotations

import threading

from mmedge_ros.sensing.radar.queue import LatestQueue


def test_the_oldest_gives_way_and_is_counted() -> None:
    queue: LatestQueue[int] = LatestQueue(2)
    for item in range(5):
        queue.put(item)
    assert (queue.take(0.0), queue.take(0.0), queue.take(0.0)) == (3, 4, None)
    assert queue.dropped == 3


def test_whoever_waits_is_woken_by_an_item_and_by_the_end() -> None:
    queue: LatestQueue[str] = LatestQueue(2)
    taken: list[str | None] = []
    taker = threading.Thread(target=lambda: taken.extend([queue.take(20.0), queue.take(20.0)]))
    taker.start()
    queue.put('scan')
    queue.close()
    taker.join(10.0)
    assert taken == ['scan', None]

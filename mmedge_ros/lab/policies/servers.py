"""Encoders that serve one unit after the other, and windows that wait for their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from mmedge_ros.data_types import Configuration
from mmedge_ros.lab.policies.schedule import Arrival, Encoding
from mmedge_ros.lab.policies.service_times import ServiceTimes


class WindowQueue:
    """Windows whose ends have passed, waiting; of more than fit the oldest is dropped.

    ``dropped`` are their ends.
    """

    def __init__(self, ends_ns: Sequence[int], capacity: int) -> None:
        self.dropped: list[int] = []
        self._coming = deque(ends_ns)
        self._waiting: deque[int] = deque()
        self._capacity = max(capacity, 1)

    def next(self, free_ns: int) -> int | None:
        """Return the end of the window to be served next, None after the last.

        :param free_ns: from when on it can be served
        """
        if not self._waiting and self._coming:
            self._waiting.append(self._coming.popleft())
        while self._coming and self._coming[0] <= free_ns:
            self._waiting.append(self._coming.popleft())
            if len(self._waiting) > self._capacity:
                self.dropped.append(self._waiting.popleft())
        return self._waiting.popleft() if self._waiting else None


def encode_all(
    units: Iterable[Arrival],
    configuration: Configuration,
    times: ServiceTimes,
    begin_ns: int,
    window_end_ns: int | None,
) -> list[Encoding]:
    """Encode units that are all there, each modality by its own server from ``begin_ns`` on."""
    free_ns: dict[str, int] = {}
    encodings = []
    for unit in units:
        level = configuration.of(unit.modality).level
        begun_ns = free_ns.get(unit.modality, begin_ns)
        end_ns = begun_ns + times.encode_ns(unit.modality, level, unit.sequence)
        free_ns[unit.modality] = end_ns
        encodings.append(
            Encoding(unit.modality, unit.sequence, level, begun_ns, end_ns, window_end_ns)
        )
    return encodings


def encode_on_arrival(
    units: Iterable[Arrival],
    configuration: Configuration,
    times: ServiceTimes,
    capacity: int,
    window_end_ns: int | None = None,
) -> list[Encoding]:
    """Encode units as they come, each modality by its own server with a bounded queue.

    Of more than ``capacity`` waiting units the oldest is never encoded.
    """
    by_modality: dict[str, list[Arrival]] = {}
    for unit in units:
        by_modality.setdefault(unit.modality, []).append(unit)
    encodings = []
    for modality, own in by_modality.items():
        level = configuration.of(modality).level
        queue: deque[Arrival] = deque()
        coming, free_ns = deque(own), 0
        while queue or coming:
            if not queue:
                queue.append(coming.popleft())
            begun_ns = max(free_ns, queue[0].available_ns)
            while coming and coming[0].available_ns <= free_ns:
                queue.append(coming.popleft())
                if len(queue) > capacity:
                    queue.popleft()
            unit = queue.popleft()
            free_ns = begun_ns + times.encode_ns(modality, level, unit.sequence)
            encodings.append(
                Encoding(modality, unit.sequence, level, begun_ns, free_ns, window_end_ns)
            )
    return encodings

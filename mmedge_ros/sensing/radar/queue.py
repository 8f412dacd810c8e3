"""A bounded queue between a driver's reader and whoever takes its scans."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

_T = TypeVar('_T')


class LatestQueue(Generic[_T]):
    """Keeps the newest items; when it is full the oldest is dropped and counted."""

    def __init__(self, length: int) -> None:
        self.dropped = 0
        self._items: deque[_T] = deque()
        self._length = length
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: _T) -> None:
        """Add an item."""
        with self._changed:
            if len(self._items) >= self._length:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify()

    def take(self, timeout: float) -> _T | None:
        """Return the oldest item; None if none comes within ``timeout`` s, or at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed, timeout)
            return self._items.popleft() if self._items else None

    def close(self) -> None:
        """Wake up whoever waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

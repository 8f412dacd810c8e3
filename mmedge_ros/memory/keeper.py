"""Embeds and writes the views of a flight as they come, in a thread of its own."""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.run_record import count_failure
from mmedge_ros.encoding import EncodingError
from mmedge_ros.memory import FlightMemoryError
from mmedge_ros.memory.encoders import MemoryEncoder, ViewEncoder
from mmedge_ros.memory.moment import MemoryItem
from mmedge_ros.memory.store import Displaced, MemoryWriter
from mmedge_ros.memory.views import ChosenView

_LOG = logging.getLogger(__name__)
# So many views may wait; more come only from a peer that floods the graph.
_MOST_WAITING = 500
MOST_IN_BATCH = 50
# A batch stays open so long (s): what a killed program loses at most.
OPEN_FOR = 1.0
_NICE = 10
_FORGETTING_EVERY = 600.0


class OpenBatch:
    """The views of one transaction; what is in it is lost if the program is killed.

    :param with_pictures: False writes views without their thumbnails
    """

    def __init__(self, encoder: ViewEncoder, with_pictures: bool = True) -> None:
        self._encoder = encoder
        self._with_pictures = with_pictures
        self._items: list[MemoryItem] = []
        self._displaced: list[Displaced] = []

    def __len__(self) -> int:
        return len(self._items)

    def add(self, view: ChosenView) -> None:
        """Take in a view; one that it displaces need not be written any more."""
        item, displaced_ns = view.item, view.displaced_ns
        if displaced_ns is not None:
            gone = (item.track_id, displaced_ns)
            waiting = [i for i in self._items if (i.track_id, i.stamp_ns) != gone]
            if len(waiting) == len(self._items):
                self._displaced.append(Displaced(*gone))
            self._items = waiting
        self._items.append(item)

    def write(self, writer: MemoryWriter) -> int:
        """Embed and write all; return how many views that were. They are let go either way.

        :raises EncodingError: if they cannot be embedded
        :raises FlightMemoryError: if they cannot be written
        """
        items, displaced = self._items, self._displaced
        self._items, self._displaced = [], []
        if not items and not displaced:
            return 0
        embedded = self._encoder.embedded(items)
        if not self._with_pictures:
            embedded = [replace(item, thumbnail=b'') for item in embedded]
        writer.add(embedded, displaced)
        return len(items)


class MemoryKeeper:
    """Takes views from any thread, and keeps them.

    :param keep: hours after which views are forgotten; 0 keeps them
    :param with_pictures: False keeps no thumbnails
    :param now_ns: the time of the stamps
    :raises FlightMemoryError: if the memory cannot be written
    """

    def __init__(
        self,
        folder: Path,
        encoder: MemoryEncoder,
        now_ns: Callable[[], int],
        keep: float = 0.0,
        with_pictures: bool = True,
    ) -> None:
        self.kept = self.dropped = 0
        # Why the last batch was lost; '' once another one was kept.
        self.problem = ''
        self.failures: Counter[str] = Counter()
        self._folder, self._header = folder, encoder.header
        self._batch = OpenBatch(encoder, with_pictures)
        self._now_ns = now_ns
        self._keep_ns = round(3600.0 * keep * NS_PER_S)
        self._forget_at_ns = 0
        self._waiting: deque[ChosenView] = deque()
        self._changed = threading.Condition()
        self._stopping = False
        # What cannot be written is said at once; the thread opens it for itself.
        MemoryWriter(folder, encoder.header).close()
        self._thread = threading.Thread(target=self._run, name='memory', daemon=True)

    def start(self) -> None:
        """Begin to keep what is offered."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def offer(self, view: ChosenView) -> None:
        """Take in a view; returns at once."""
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                self.dropped += 1
                return
            self._waiting.append(view)
            self._changed.notify()

    def _run(self) -> None:
        with suppress(OSError):  # the flight goes first
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        try:
            with MemoryWriter(self._folder, self._header) as writer:
                while self._once(writer):
                    pass
        except FlightMemoryError as err:
            self._failed(err)

    def _once(self, writer: MemoryWriter) -> bool:
        """Keep one batch; say whether there is more to do."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._waiting, _FORGETTING_EVERY)
            # What comes within a second belongs to one transaction.
            self._changed.wait_for(
                lambda: self._stopping or len(self._waiting) >= MOST_IN_BATCH, OPEN_FOR
            )
            views = [
                self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_IN_BATCH))
            ]
            is_last = self._stopping and not self._waiting
        for view in views:
            self._batch.add(view)
        try:
            kept = self._batch.write(writer)
            self._forget(writer)
            self.kept += kept
            self.problem = '' if kept else self.problem
        except (FlightMemoryError, EncodingError) as err:
            self._failed(err)
        return not is_last

    def _forget(self, writer: MemoryWriter) -> None:
        """Forget what is too old, now and then."""
        now_ns = self._now_ns()
        if self._keep_ns and now_ns >= self._forget_at_ns:
            self._forget_at_ns = now_ns + round(_FORGETTING_EVERY * NS_PER_S)
            writer.forget_before(now_ns - self._keep_ns)

    def _failed(self, err: Exception) -> None:
        self.problem = str(err)
        if count_failure(self.failures, str(err)):
            _LOG.warning('views are lost: %s', err)

"""Views that wait to be embedded and written together."""

from __future__ import annotations

from dataclasses import replace

from mmedge_ros.flight_memory.memory_store import Displaced, MemoryWriter
from mmedge_ros.flight_memory.moment import MemoryItem
from mmedge_ros.flight_memory.pair_encoder import AnyEncoder
from mmedge_ros.flight_memory.view_maker import ChosenView

MOST_IN_BATCH = 50


class OpenBatch:
    """The views of one transaction; what is in it is lost if the program is killed.

    :param with_pictures: False writes views without their thumbnails
    """

    def __init__(self, encoder: AnyEncoder, with_pictures: bool = True) -> None:
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

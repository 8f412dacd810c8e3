"""Messages that a recording holds more than once, as when two recorders wrote one topic."""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict

_REMEMBERED = 64


class RepeatedMessages:
    """Finds messages that equal an earlier one of their topic, stamp and all.

    ``counts`` tells how many of each topic. Only the last messages are remembered: copies lie
    close together in the order of log times.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._recent: dict[str, OrderedDict[tuple[int, int, int], None]] = {}

    def is_repeated(self, topic: str, stamp_ns: int, raw: bytes | memoryview) -> bool:
        """Enter a message; True if it has been there before."""
        recent = self._recent.setdefault(topic, OrderedDict())
        key = (stamp_ns, len(raw), zlib.crc32(raw))
        if key in recent:
            self.counts[topic] += 1
            return True
        recent[key] = None
        if len(recent) > _REMEMBERED:
            recent.popitem(last=False)
        return False

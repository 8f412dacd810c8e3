"""Recorded flights: rosbag2 folders, single .mcap or .db3 files, and videos.

Messages are read in log-time order with no more than a chunk of the file in memory, and
deserialised only on demand. A broken recording is read up to the break, and
``Bag.problems`` says so.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from mmedge_ros.core.untrusted_files import brief
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag_storage import LAST_NS, BagPart, TopicInfo, open_parts
from mmedge_ros.replay.bag_topics import unknown_topic
from mmedge_ros.replay.picture_recording import (
    PictureParameters,
    PicturePart,
    holds_pictures,
)
from mmedge_ros.replay.wire_formats import header_stamp_ns


@dataclass(frozen=True, slots=True)
class BagMessage:
    """A message as recorded: log time in nanoseconds, CDR bytes, number within its topic."""

    topic: str
    log_ns: int
    raw: bytes
    msgtype: str
    index: int


class Stamp(NamedTuple):
    """When a message was measured (0 where its header cannot be read), and logged; in ns."""

    stamp_ns: int
    log_ns: int


def stamp_of(message: BagMessage) -> int:
    """Return the stamp of a message's header in ns, 0 where it cannot be read."""
    try:
        return header_stamp_ns(message.raw)
    except BagError:
        return 0


@cache
def _usual_types() -> Typestore:
    """Return the types that need no definition; how each is read is found out once."""
    return get_typestore(Stores.ROS2_KILTED)


class Bag:
    """A recording, open for reading; a context manager.

    ``topics`` are sorted by name and list what can be read. ``problems`` holds what was wrong,
    in words; it may grow while messages are read. ``pictures`` is the video or the folder of
    pictures this is, None for a bag.

    :param parameters: of a video or a folder of pictures
    :raises BagError: if there is nothing to read
    """

    def __init__(self, path: str | Path, parameters: PictureParameters | None = None) -> None:
        self.path = Path(path)
        self.problems: list[str] = []
        self.pictures: PicturePart | None = None
        try:
            if holds_pictures(self.path):
                parameters = parameters or PictureParameters()
                self.pictures = PicturePart(self.path, parameters, self._report)
            self._parts: list[BagPart] = (
                [self.pictures] if self.pictures else open_parts(self.path, self._report)
            )
        except OSError as error:
            raise BagError(f'{self.path} cannot be read: {error}') from error
        counts: Counter[tuple[str, str]] = Counter()
        for part in self._parts:
            for topic in part.topics:
                counts[topic.name, topic.msgtype] += topic.count
        self.topics = tuple(TopicInfo(*key, counts[key]) for key in sorted(counts))
        if not counts.total():
            self.close()
            reasons = ''.join(f'; {problem}' for problem in self.problems)
            raise BagError(f'{self.path} holds no messages{reasons}')
        self._filled = [part for part in self._parts if any(t.count for t in part.topics)]
        self._types = _usual_types()

    @property
    def begin_ns(self) -> int:
        """Log time of the first message."""
        return min(part.begin_ns for part in self._filled)

    @property
    def end_ns(self) -> int:
        """Log time of the last message; of a video a guess, until it was read to its end."""
        return max(part.end_ns for part in self._filled)

    def __enter__(self) -> Bag:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files; closing twice does no harm."""
        parts, self._parts = self._parts, []
        for part in parts:
            part.close()

    def messages(self, topics: Iterable[str] | None = None) -> Iterator[BagMessage]:
        """Return the messages of these topics (all if None) in log-time order.

        Several iterations may run at the same time.

        :raises BagError: for an unknown topic, or a bag that is closed
        """
        known = {topic.name for topic in self.topics}
        names = known if topics is None else set(topics)
        for name in sorted(names - known):
            raise unknown_topic(name, known)
        if not self._parts:
            raise BagError(f'{self.path} is closed')
        return self._merged(frozenset(names))

    def stamps(self, topics: Iterable[str]) -> Iterator[Stamp]:
        """Return the times of the messages of these topics; those of a video are not decoded.

        :raises BagError: as `messages`
        """
        names = tuple(topics)
        if self.pictures is not None and names:
            return (Stamp(time_ns, time_ns) for time_ns in self.pictures.times_ns())
        return (Stamp(stamp_of(message), message.log_ns) for message in self.messages(names))

    def deserialize(self, message: BagMessage) -> Any:
        """Return the message as an object with the attributes of its ROS type.

        :raises BagError: if its bytes are damaged or its type is unknown
        """
        place = f'{self.path}: message {message.index} of {message.topic} ({message.msgtype})'
        try:
            if message.msgtype not in self._types.fielddefs:
                self._learn(message.msgtype)
            return self._types.deserialize_cdr(message.raw, message.msgtype)
        # A parser over damaged bytes may raise anything.
        except Exception as error:
            raise BagError(f'{place} cannot be deserialised: {brief(error)}') from error

    def _merged(self, names: frozenset[str]) -> Iterator[BagMessage]:
        indices: Counter[str] = Counter()
        sources = [part.messages(names) for part in self._parts]
        for record in heapq.merge(*sources, key=lambda record: record.log_ns):
            if record.log_ns > LAST_NS:
                self._report(f'{record.topic}: log time {record.log_ns} ns is damaged')
                return
            index = indices[record.topic]
            indices[record.topic] += 1
            yield BagMessage(record.topic, record.log_ns, record.raw, record.msgtype, index)

    def _learn(self, msgtype: str) -> None:
        """Register a type that is not one of the usual ones from the bag's own definition."""
        definitions = (part.definitions.get(msgtype) for part in self._parts)
        encoding, text = next((d for d in definitions if d is not None), ('', ''))
        if encoding != 'ros2msg':
            raise BagError('the recording holds no definition of this type that can be read')
        if self._types is _usual_types():
            self._types = get_typestore(Stores.ROS2_KILTED)
        known = self._types.fielddefs
        types = get_types_from_msg(text, msgtype)
        self._types.register({name: types[name] for name in types if name not in known})

    def _report(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

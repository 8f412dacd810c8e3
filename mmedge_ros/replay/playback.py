"""A recording as a live source: which message is due when, under which stamp.

Knows nothing of ROS: the bag player node publishes what this hands out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_ros.core.data_types import CAMERA, NS_PER_S, RADAR, Configuration, SkipDecision
from mmedge_ros.core.run_record import UnitCounts, count_failure
from mmedge_ros.replay import BagError, ReplayError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.bag_topics import SensorTopics
from mmedge_ros.replay.wire_formats import header_stamp_ns, with_moved_transforms, with_stamp
from mmedge_ros.sensing.capture_control import Admission, CaptureControl

# The source of moving transforms.
TRANSFORMS = 'transforms'


class DueMessage(NamedTuple):
    """A serialised message: publish on the topic of ``source`` at bag time ``due_ns``.

    ``due_ns`` already includes the offset of the present round.
    """

    source: str
    due_ns: int
    data: bytes


@dataclass(frozen=True)
class PlaybackSource:
    """A topic of the bag, and the modality it carries units of ('' for none)."""

    topic: str
    modality: str


def playback_sources(topics: SensorTopics) -> dict[str, PlaybackSource]:
    """Map what the graph calls its inputs to the topics of a bag."""
    named = {
        CAMERA: PlaybackSource(topics.camera or '', CAMERA),
        'camera_info': PlaybackSource(topics.camera_info or '', ''),
        RADAR: PlaybackSource(topics.radar or '', RADAR),
        'odometry': PlaybackSource(topics.odometry or '', ''),
        'rangefinder': PlaybackSource(next(iter(topics.ranges), ''), ''),
        **{modality: PlaybackSource(topic, modality) for modality, topic in topics.added},
    }
    return {name: source for name, source in named.items() if source.topic}


@dataclass(frozen=True)
class PlaybackStatus:
    """How far a playback is; ``offset_ns`` maps bag time to stamps."""

    bag: str
    offset_ns: int
    rate: float
    begin_ns: int
    end_ns: int
    finished: bool
    counts: Mapping[str, UnitCounts]


class Playback:
    """Iterates over a bag like a driver over its sensor: paced, thinned, paused.

    ``problems`` counts, by what is wrong with them, the messages that cannot be published:
    bytes without a header, or a stamp that does not fit a message.

    :param offset_ns: added to every stamp and due time in the first round
    :param periods_ns: native distance of units, per modality
    :param transforms: topics of moving transforms, which are handed out as those of one source
    """

    def __init__(
        self,
        bag: Bag,
        sources: Mapping[str, PlaybackSource],
        offset_ns: int,
        stride_ns: int,
        periods_ns: Mapping[str, int | None],
        loop: bool = False,
        transforms: Sequence[str] = (),
    ) -> None:
        if not sources:
            raise ReplayError(f'{bag.path}: nothing to play; the bag has no camera and no radar')
        self.offset_ns = offset_ns
        self.counts: dict[str, UnitCounts] = {}
        self.problems: Counter[str] = Counter()
        self._bag = bag
        self._names = {source.topic: name for name, source in sources.items()}
        self._names |= dict.fromkeys(transforms, TRANSFORMS)
        self._modalities = {name: source.modality for name, source in sources.items()}
        self._stride_ns = stride_ns
        self._loop = loop
        self._controls: dict[str, CaptureControl] = {}
        for modality in filter(None, self._modalities.values()):
            self.counts[modality] = UnitCounts()
            self._controls[modality] = CaptureControl(modality, periods_ns.get(modality))

    def configure(self, configuration: Configuration) -> None:
        """Obey a configuration from the stamp it takes effect."""
        for control in self._controls.values():
            control.schedule.add(configuration)

    def lease(self, skip: SkipDecision) -> None:
        for control in self._controls.values():
            control.lease(skip)

    def status(self, rate: float, finished: bool) -> PlaybackStatus:
        return PlaybackStatus(
            str(self._bag.path),
            self.offset_ns,
            rate,
            self._bag.begin_ns,
            self._bag.end_ns,
            finished,
            self.counts,
        )

    def __iter__(self) -> Iterator[DueMessage]:
        while True:
            empty = True
            for message in self._round():
                empty = False
                yield message
            if empty or not self._loop:
                return
            length_ns = self._bag.end_ns - self._bag.begin_ns
            self.offset_ns += (length_ns // self._stride_ns + 2) * self._stride_ns

    def _round(self) -> Iterator[DueMessage]:
        for message in self._bag.messages(list(self._names)):
            name = self._names[message.topic]
            try:
                data = self._taken(name, message.raw, message.log_ns)
            except BagError as err:
                count_failure(self.problems, f'{message.topic}: {err}')
                continue
            if data is not None:
                yield DueMessage(name, message.log_ns + self.offset_ns, data)

    def _taken(self, name: str, raw: bytes | memoryview, log_ns: int) -> bytes | None:
        """Return a message with its present stamps; None where its source rests."""
        if name == TRANSFORMS:
            return with_moved_transforms(raw, self.offset_ns)
        stamp_ns = header_stamp_ns(raw) + self.offset_ns
        data = with_stamp(raw, stamp_ns)
        available_ns = log_ns + self.offset_ns
        return data if self._admits(self._modalities[name], stamp_ns, available_ns) else None

    def _admits(self, modality: str, stamp_ns: int, available_ns: int) -> bool:
        if not modality:
            return True
        counts = self.counts[modality]
        counts.captured += 1
        verdict = self._controls[modality].admit(stamp_ns, available_ns)
        counts.skipped += verdict is Admission.SKIPPED
        counts.thinned += verdict is Admission.THINNED
        counts.transferred += verdict is Admission.TAKE
        return verdict is Admission.TAKE


class Pace:
    """Maps the graph's time to the monotonic clock: begins ``lead`` before the first message.

    :param begin_ns: instant of the first message on the graph's clock
    :param lead_ns: how far away it is now, in the graph's time
    :param monotonic_ns: the monotonic clock
    """

    def __init__(
        self, begin_ns: int, lead_ns: int, rate: float, monotonic_ns: Callable[[], int]
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._rate = rate
        self._origin_ns = begin_ns - lead_ns
        self._started_ns = monotonic_ns()

    def now_ns(self) -> int:
        """Return the present instant of the graph's time."""
        return self._origin_ns + int((self._monotonic_ns() - self._started_ns) * self._rate)

    def seconds_until(self, due_ns: int) -> float:
        """Return how many seconds of real time remain until an instant of the graph's time."""
        return (due_ns - self.now_ns()) / NS_PER_S / self._rate


def live_offset_ns(begin_ns: int, now_ns: int, stride_ns: int, lead: float = 0.5) -> int:
    """Return the constant that lets a bag begin ``lead`` seconds from now, on its own grid."""
    earliest_ns = now_ns + round(lead * NS_PER_S) - begin_ns
    return -(-earliest_ns // stride_ns) * stride_ns

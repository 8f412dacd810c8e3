"""A recording seen as sensors: which topics, their rates, calibration, and its units."""

from __future__ import annotations

import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mmedge_ros import MmedgeError
from mmedge_ros.core.data_types import NS_PER_S, Unit
from mmedge_ros.core.parameter import parameter
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.calibration import Calibration, read_calibration
from mmedge_ros.geometry.ego_motion import (
    ODOMETRY_FRAME,
    EgoMotion,
    EgoReport,
    ego_states_from_transforms,
)
from mmedge_ros.geometry.rangefinder import HeightReport, height_from_px4, height_from_range
from mmedge_ros.geometry.sensor_poses import BASE_FRAME
from mmedge_ros.geometry.sensor_rig import RigReport
from mmedge_ros.pipeline.unit_intake import acquisition_trail, plausible_stamp
from mmedge_ros.replay import BagError, ReplayError
from mmedge_ros.replay.bag import Bag, BagMessage, stamp_of
from mmedge_ros.replay.bag_topics import TF_MESSAGE, choose_topics, foreign_types, is_tf_static
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.replay.picture_recording import PictureParameters
from mmedge_ros.replay.playback import playback_sources
from mmedge_ros.replay.recorded_calibration import recorded_camera, recorded_transforms
from mmedge_ros.replay.recorded_truth import GROUND_TRUTH, read_truth
from mmedge_ros.replay.wire_formats import ego_report_from_bytes, header_stamp_ns
from mmedge_ros.sensing.rate_control import native_period_ns

_REMEMBERED = 64


class RepeatedMessages:
    """Finds messages that equal an earlier one of their topic, stamp and all.

    ``counts`` says how many of each topic. Only the last messages are remembered: copies lie
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


# Enough for a robust median, few enough to start at once.
_RATE_SAMPLE = 200
# m; nobody carries a camera so high.
_IN_THE_AIR, _LOOKED_AT_NS = 3.0, 60 * NS_PER_S


@dataclass(frozen=True)
class TopicChoice:
    """Topics of the recording, where types do not decide."""

    camera: str = parameter('', 'camera topic; empty finds it by type')
    radar: str = parameter('', 'radar topic; empty finds it by type')
    odometry: str = parameter('', 'odometry topic; empty finds it by type')


class Recording:
    """A bag or a video with its sensors found; a context manager.

    ``camera`` and ``transforms`` come from the bag, or from a calibration file where one is
    given. ``picture_scale`` is how much larger the pictures of a video are than those that it is
    replayed with.

    :param pictures: what a video or a folder of pictures does not say of itself
    :raises ReplayError: if there is nothing to play or a given file cannot be used
    """

    def __init__(
        self,
        path: str | Path,
        choice: TopicChoice | None = None,
        calibration: str = '',
        pictures: PictureParameters | None = None,
    ) -> None:
        if not str(path):
            raise ReplayError('no recording given; name a rosbag2 folder or file, or a video')
        choice = choice or TopicChoice()
        self._problems: list[str] = []
        self._damaged: dict[str, tuple[str, int]] = {}
        self._repeated = RepeatedMessages()
        self._arrivals_ns: tuple[int, int] | None = None
        self.bag = Bag(path, pictures)
        try:
            self._find_sensors(choice, calibration)
        except MmedgeError:
            self.close()
            raise

    def _find_sensors(self, choice: TopicChoice, calibration: str) -> None:
        self.topics = choose_topics(
            self.bag.topics, choice.camera or None, choice.radar or None, choice.odometry or None
        )
        self._problems += foreign_types(self.bag.topics)
        self.sources = playback_sources(self.topics)
        self.modalities = tuple(s.modality for s in self.sources.values() if s.modality)
        self.periods_ns: dict[str, int] = {}
        for source in self.sources.values():
            period_ns = self._period_ns(source.topic) if source.modality else None
            if period_ns:
                self.periods_ns[source.modality] = period_ns
        self._read_geometry(calibration)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.bag.close()

    @property
    def picture_scale(self) -> float:
        return self.bag.pictures.scale if self.bag.pictures else 1.0

    @property
    def is_simulated(self) -> bool:
        """Whether the pictures come from the simulator: only it records the ground truth."""
        return any(topic.msgtype == GROUND_TRUTH for topic in self.bag.topics)

    @property
    def has_system_state(self) -> bool:
        kinds = ('mmedge_ros/msg/SystemState', 'sensor_msgs/msg/BatteryState')
        return any(topic.msgtype in kinds and topic.count for topic in self.bag.topics)

    @property
    def moving_frames(self) -> list[str]:
        """Topics with transforms that are not static."""
        found = (t for t in self.bag.topics if t.msgtype == TF_MESSAGE and not is_tf_static(t))
        return [topic.name for topic in found]

    @property
    def problems(self) -> list[str]:
        """What could not be used, in words; grows while units are read."""
        return [
            *self._problems,
            *(_counted(text, count) for text, count in self._damaged.values()),
            *(
                f'{topic}: {count} messages are in the recording more than once; each was used '
                'once'
                for topic, count in self._repeated.counts.items()
            ),
        ]

    def units(self) -> Iterator[Unit]:
        """Return every unit once, by its available time; see `events`."""
        return (event for event in self.events() if isinstance(event, Unit))

    def events(self) -> Iterator[Unit | RigReport]:
        """Return units, each once, odometry and rangefinders by the time they were received.

        Damaged and repeated messages are noted and left out.
        """
        self._damaged.clear()
        self._repeated = RepeatedMessages()
        modalities = {s.topic: s.modality for s in self.sources.values() if s.modality}
        ego_topics = self._ego_topics
        heights = (*self.topics.ranges, *self.topics.px4_heights)
        sequences: Counter[str] = Counter()
        for message in self.bag.messages([*modalities, *ego_topics, *heights]):
            if message.topic in ego_topics:
                yield from self._ego_reports(message)
                continue
            if message.topic in heights:
                if (height := self._height(message)) is not None:
                    yield height
                continue
            if self._is_repeated(message):
                continue
            modality = modalities[message.topic]
            unit = self._unit(message, modality, sequences[modality])
            sequences[modality] += 1
            if unit is not None:
                yield unit

    def ego_motion(self) -> EgoMotion | None:
        """Return the drone's whole way by odometry or transforms; None without any."""
        motion: EgoMotion | None = None
        topics = self._ego_topics
        for topic in topics:
            self._damaged.pop(topic, None)  # `events` may have counted the same messages
        for message in self.bag.messages(topics) if topics else ():
            for report in self._ego_reports(message):
                frames = report.frame_id or ODOMETRY_FRAME, report.base_frame or BASE_FRAME
                if motion is None:
                    motion = EgoMotion(*frames, kept=None)
                # What changes its frames half-way cannot be drawn or compared as one way.
                if frames == (motion.frame_id, motion.base_frame):
                    motion.add(report.state)
        return motion

    def flies(self) -> bool:
        """Whether the drone rises in the first minute, or is in the air already."""
        topics = self._ego_topics
        for message in self.bag.messages(topics) if topics else ():
            if message.log_ns - self.bag.begin_ns > _LOOKED_AT_NS:
                break
            heights = [report.state.pose.translation[2] for report in self._ego_reports(message)]
            if max(heights, default=0.0) > _IN_THE_AIR:
                return True
        return False

    def truth(self) -> GroundTruth | None:
        """Return what was really there; None where the recording does not say."""
        return read_truth(self.bag)

    def camera_stamps_ns(self) -> list[int]:
        """Return the stamp of every camera message; its arrival, where the stamp is not true."""
        if self.topics.camera is None:
            return []
        return [
            stamp if plausible_stamp(stamp, log) else log
            for stamp, log in self.bag.stamps([self.topics.camera])
        ]

    def arrivals_ns(self) -> tuple[int, int]:
        """Return when the first and the last unit became available."""
        if self._arrivals_ns is None:
            topics = [s.topic for s in self.sources.values() if s.modality]
            times = [stamp.log_ns for stamp in self.bag.stamps(topics)]
            if not times:
                reasons = ''.join(f'; {problem}' for problem in self.bag.problems)
                raise ReplayError(f'{self.bag.path}: no unit of any sensor can be read{reasons}')
            self._arrivals_ns = min(times), max(times)
        return self._arrivals_ns

    @property
    def _ego_topics(self) -> list[str]:
        """Odometry; where none was recorded, transforms that move."""
        return [self.topics.odometry] if self.topics.odometry else self.moving_frames

    def _unit(self, message: BagMessage, modality: str, sequence: int) -> Unit | None:
        try:
            payload = self.bag.deserialize(message)
            stamp_ns = header_stamp_ns(message.raw)
        except BagError as err:
            self._note_damage(message.topic, str(err))
            return None
        return Unit(
            modality,
            sequence,
            stamp_ns,
            message.log_ns,
            payload.header.frame_id.lstrip('/'),  # as tf2 has names; some drivers still do not
            payload,
            acquisition_trail(stamp_ns, message.log_ns, message.log_ns),
        )

    def _is_repeated(self, message: BagMessage) -> bool:
        """Whether it is a copy; without true stamps equal scans may be two empty ones."""
        stamp_ns = stamp_of(message)
        return plausible_stamp(stamp_ns, message.log_ns) and self._repeated.is_repeated(
            message.topic, stamp_ns, message.raw
        )

    def _ego_reports(self, message: BagMessage) -> list[EgoReport]:
        try:
            if message.topic == self.topics.odometry:
                return [ego_report_from_bytes(message.raw, message.log_ns)]
            return ego_states_from_transforms(self.bag.deserialize(message), message.log_ns)
        except (BagError, GeometryError) as err:
            self._note_damage(message.topic, f'odometry not used: {err}')
            return []

    def _height(self, message: BagMessage) -> HeightReport | None:
        try:
            content = self.bag.deserialize(message)
            if message.topic in self.topics.ranges:
                return height_from_range(content, message.log_ns, message.topic)
            return height_from_px4(content, message.log_ns)
        except (BagError, GeometryError, AttributeError) as err:
            self._note_damage(message.topic, f'height not used: {err}')
            return None

    def _note_damage(self, topic: str, text: str) -> None:
        """Keep the first of a topic in full and count the others."""
        first, count = self._damaged.get(topic, (text, 0))
        self._damaged[topic] = first, count + 1

    def _period_ns(self, topic: str) -> int | None:
        sample = islice(self.bag.stamps([topic]), _RATE_SAMPLE)
        return native_period_ns([stamp.stamp_ns for stamp in sample])

    def _read_geometry(self, calibration: str) -> None:
        """Take calibration and transforms from the bag, where a file does not say otherwise."""
        report = self._problems.append
        try:
            given = read_calibration(calibration) if calibration else Calibration(None, [])
            self.camera = given.camera
            self.transforms = recorded_transforms(self.bag, report, given.transforms)
        except GeometryError as err:
            raise ReplayError(str(err)) from err
        if self.bag.pictures is not None:
            self.camera, note = self.bag.pictures.calibrated(self.camera)
            report(note)
        elif self.camera is None and self.topics.camera_info is not None:
            self.camera = recorded_camera(self.bag, self.topics.camera_info, report)


def _counted(text: str, count: int) -> str:
    return text if count == 1 else f'{text} (and {count - 1} more of this topic)'

"""A recording seen as sensors: which topics, their rates, calibration, and its units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType

from mmedge_ros.data_types import Unit
from mmedge_ros.fusion.calibration import read_calibration
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.fusion.projection import CameraModel
from mmedge_ros.fusion.transforms import StampedTransform
from mmedge_ros.parameter import parameter
from mmedge_ros.pipeline.unit_intake import acquisition_trail
from mmedge_ros.replay.bag import (
    Bag,
    BagError,
    BagMessage,
    choose_topics,
    first,
    header_stamp_ns,
    native_period_ns,
    static_transforms,
)
from mmedge_ros.replay.errors import ReplayError
from mmedge_ros.replay.playback import playback_sources

_DEMO_RECORDING = Path('millieye') / 'night_walk'

# Enough for a robust median, few enough to start at once.
_RATE_SAMPLE = 200


@dataclass(frozen=True)
class TopicChoice:
    """Topics of the recording, where they cannot be told by their types."""

    camera: str = parameter('', 'camera topic; empty finds it by type')
    radar: str = parameter('', 'radar topic; empty finds it by type')
    odometry: str = parameter('', 'odometry topic; empty finds it by type')


class Recording:
    """A bag with its sensors found; a context manager.

    ``camera`` and ``transforms`` come from the bag, or from a calibration file where one is
    given. ``problems`` lists what could not be used.

    :raises ReplayError: if there is nothing to play or a given file cannot be used
    """

    def __init__(
        self, path: str | Path, choice: TopicChoice | None = None, calibration: str = ''
    ) -> None:
        if not str(path):
            raise ReplayError('no recording given; name a rosbag2 folder or file')
        choice = choice or TopicChoice()
        self.bag = Bag(path)
        self.topics = choose_topics(
            self.bag.topics, choice.camera or None, choice.radar or None, choice.odometry or None
        )
        self.sources = playback_sources(self.topics)
        self.modalities = tuple(s.modality for s in self.sources.values() if s.modality)
        self.periods_ns: dict[str, int] = {}
        self.problems: list[str] = []
        for source in self.sources.values():
            period_ns = self._period_ns(source.topic) if source.modality else None
            if period_ns:
                self.periods_ns[source.modality] = period_ns
        self.transforms = self._read_transforms()
        self.camera = self._read_camera()
        if calibration:
            self._replace_calibration(calibration)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the files."""
        self.bag.close()

    def units(self) -> Iterator[Unit]:
        """Return every unit by its available time; damaged messages are noted and left out."""
        modalities = {s.topic: s.modality for s in self.sources.values() if s.modality}
        sequences: Counter[str] = Counter()
        for message in self.bag.messages(list(modalities)):
            modality = modalities[message.topic]
            unit = self._unit(message, modality, sequences[modality])
            sequences[modality] += 1
            if unit is not None:
                yield unit

    def camera_stamps_ns(self) -> list[int]:
        """Return the stamp of every camera message, 0 where it cannot be read."""
        if self.topics.camera is None:
            return []
        return [self._stamp_ns(m) for m in self.bag.messages([self.topics.camera])]

    def arrivals_ns(self) -> tuple[int, int]:
        """Return when the first and the last unit became available."""
        topics = [s.topic for s in self.sources.values() if s.modality]
        times = [message.log_ns for message in self.bag.messages(topics)]
        if not times:
            raise ReplayError(f'{self.bag.path}: no unit of any sensor can be read')
        return min(times), max(times)

    def _unit(self, message: BagMessage, modality: str, sequence: int) -> Unit | None:
        try:
            payload = self.bag.deserialize(message)
            stamp_ns = header_stamp_ns(message.raw)
        except BagError as err:
            self.problems.append(str(err))
            return None
        return Unit(
            modality,
            sequence,
            stamp_ns,
            message.log_ns,
            payload.header.frame_id,
            payload,
            acquisition_trail(stamp_ns, message.log_ns, message.log_ns),
        )

    def _stamp_ns(self, message: BagMessage) -> int:
        try:
            return header_stamp_ns(message.raw)
        except BagError:
            return 0

    def _period_ns(self, topic: str) -> int | None:
        sample = islice(self.bag.messages([topic]), _RATE_SAMPLE)
        return native_period_ns([self._stamp_ns(message) for message in sample])

    def _read_transforms(self) -> list[StampedTransform]:
        try:
            return static_transforms(self.bag)
        except BagError as err:
            self.problems.append(f'static transforms not used: {err}')
            return []

    def _read_camera(self) -> CameraModel | None:
        if self.topics.camera_info is None:
            return None
        try:
            info = first(self.bag, self.topics.camera_info)
            return None if info is None else CameraModel.from_camera_info(info)
        except (BagError, FusionError) as err:
            self.problems.append(f'camera_info not used: {err}')
            return None

    def _replace_calibration(self, path: str) -> None:
        try:
            calibration = read_calibration(path)
        except FusionError as err:
            raise ReplayError(str(err)) from err
        self.camera = calibration.camera or self.camera
        self.transforms = [*self.transforms, *calibration.transforms]


def demo_recording(data_folder: str) -> Path:
    """Return the recording the demo plays.

    :raises ReplayError: where it is missing
    """
    if not data_folder:
        raise ReplayError(
            'the demo needs a recording: set MMEDGE_DATA to the folder that holds '
            f'{_DEMO_RECORDING}'
        )
    path = Path(data_folder) / _DEMO_RECORDING
    if not path.exists():
        raise ReplayError(f'the demo needs {path}, which does not exist; check MMEDGE_DATA')
    return path

"""Recordings that can be read up to the last flush, whatever happens to who writes them."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Iterator
from pathlib import Path

import bag_fixtures as flight
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rosbags.interfaces import Qos
from rosbags.rosbag2 import Reader

from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.ros.recording.session import MEGABYTE, RecordingLimits, RecordingSession
from mmedge_ros.ros.recording.topics import MessageTypes, message_class
from mmedge_ros.ros.recording.writer import BagWriter, RecordedTopic

TYPES = MessageTypes()


def topic(name: str, msgtype: str, *offered: Qos) -> RecordedTopic:
    return RecordedTopic(name, msgtype, *TYPES.definition(msgtype), offered)


CAMERA = topic(flight.CAMERA_COMPRESSED, 'sensor_msgs/msg/CompressedImage')
RADAR = topic(flight.RADAR, 'sensor_msgs/msg/PointCloud2')


def messages(seconds: float = 1.0) -> list[tuple[str, int, bytes]]:
    """What camera and radar send, serialised."""
    names = (flight.CAMERA_COMPRESSED, flight.RADAR)
    return [
        (name, log_ns, flight.serialized(message))
        for name, log_ns, message in flight.recording(seconds)
        if name in names
    ]


def written(path: Path, seconds: float = 1.0, split_bytes: int = 0) -> BagWriter:
    """Write a recording, but do not end it."""
    writer = BagWriter(path, split_bytes)
    writer.add_topic(CAMERA)
    writer.add_topic(RADAR)
    for message in messages(seconds):
        writer.write(*message)
        if split_bytes:
            writer.flush()
    return writer


def test_a_recording_is_read_back_byte_by_byte_in_order(tmp_path: Path) -> None:
    written(tmp_path / 'flight').close()
    with Bag(tmp_path / 'flight') as bag:
        assert bag.problems == []
        assert [(m.topic, m.log_ns, m.raw) for m in bag.messages()] == messages()
        assert {t.name: t.count for t in bag.topics} == {
            flight.CAMERA_COMPRESSED: 20,
            flight.RADAR: 25,
        }


def test_files_are_split_by_size_and_read_as_one(tmp_path: Path) -> None:
    split = 10_000
    writer = written(tmp_path / 'flight', split_bytes=split)
    writer.close()
    files = sorted((tmp_path / 'flight').glob('*.mcap'))
    assert len(files) == writer.files > 2
    assert {f.name for f in files} == {f'flight_{n}.mcap' for n in range(len(files))}
    assert all(split < f.stat().st_size < 2 * split for f in files[:-1])
    with Bag(tmp_path / 'flight') as bag:
        assert bag.problems == []
        assert [m.raw for m in bag.messages()] == [m[2] for m in messages()]
    with Reader(tmp_path / 'flight') as reader:
        assert [raw for _, _, raw in reader.messages()] == [m[2] for m in messages()]
    metadata = yaml.safe_load((tmp_path / 'flight/metadata.yaml').read_text())
    information = metadata['rosbag2_bagfile_information']
    assert information['message_count'] == 45
    assert sum(f['message_count'] for f in information['files']) == 45


def test_what_was_flushed_is_read_though_the_recording_was_never_ended(tmp_path: Path) -> None:
    writer = written(tmp_path / 'flight')
    writer.flush()
    with Bag(tmp_path / 'flight') as bag:
        assert [m.raw for m in bag.messages()] == [m[2] for m in messages()]
        assert bag.problems[0].startswith('metadata.yaml is missing')
    writer.abandon()


@pytest.fixture(scope='module')
def torn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that was flushed after each message and never ended."""
    path = tmp_path_factory.mktemp('torn') / 'flight'
    written(path, split_bytes=10**9).abandon()
    return path / 'flight_0.mcap'


@given(share=st.floats(0.2, 1.0))
def test_a_recording_cut_anywhere_is_read_up_to_the_break(
    torn: Path, tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    data = torn.read_bytes()
    path = tmp_path_factory.mktemp('cut') / 'flight.mcap'
    path.write_bytes(data[: round(share * len(data))])
    with Bag(path) as bag:
        found = [m.raw for m in bag.messages()]
    expected = [m[2] for m in messages()]
    assert found == expected[: len(found)]
    # The first tenth is the definitions of the types.
    assert len(found) >= (share - 0.2) * len(expected)


# ------------------------------------------------------------------------------ types


def test_a_type_that_is_not_installed_is_told(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r'is not installed: no strange_msgs/msg/Thing\.msg'):
        MessageTypes([tmp_path]).definition('strange_msgs/msg/Thing')
    for name in ('strange_msgs/msg/Thing', 'std_msgs/msg/Thing', '', '/msg/x'):
        with pytest.raises(ReplayError, match='cannot be recorded'):
            message_class(name)


# ------------------------------------------------------------------------------ the disk


class Disk:
    """Free space that the test sets."""

    free_mb = 5000.0

    def __call__(self, folder: Path) -> int:
        return round(self.free_mb * MEGABYTE)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def session(tmp_path: Path, disk: Disk) -> Iterator[RecordingSession]:
    seconds = itertools.count(1.0)  # every look at the clock takes one
    limits = RecordingLimits(min_free=100, queue=1)
    found = RecordingSession(BagWriter(tmp_path / 'flight'), limits, disk, lambda: next(seconds))
    found.announce(CAMERA)
    found.announce(RADAR)
    yield found
    found.stop()


def test_what_waits_is_written_before_the_end(tmp_path: Path, session: RecordingSession) -> None:
    for message in messages():
        session.offer(*message)
    session.start()
    session.stop()
    assert session.failure == ''
    with Bag(tmp_path / 'flight') as bag:
        assert bag.problems == []
        assert sum(t.count for t in bag.topics) == 45


def test_recording_stops_before_the_disk_is_full_and_what_was_written_is_sound(
    tmp_path: Path, session: RecordingSession, disk: Disk
) -> None:
    first, second, *others = messages()
    session.offer(*first)
    session.offer(*second)
    session.step()
    disk.free_mb = 99.0
    session.offer(*others[0])
    session.step()
    assert session.failure.startswith('only 99 MB are free, 100 MB are to be kept: recording to')
    session.offer(*others[1])
    session.start()
    session.stop()
    with Bag(tmp_path / 'flight') as bag:
        assert bag.problems == []
        assert len(list(bag.messages())) == 3


def test_a_slow_disk_costs_the_oldest_messages_and_says_so(session: RecordingSession) -> None:
    for number in range(15):
        session.offer(flight.RADAR, number, bytes(100_000))
    assert session.dropped == 5


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file of this process may grow beyond 64 kB, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_stops_the_recording_with_a_message_and_nothing_else(
    tmp_path: Path, session: RecordingSession, small_files: None
) -> None:
    for message in messages(4.0):
        session.offer(*message)
        session.step()
    session.start()
    session.stop()
    assert 'recording to' in session.failure
    assert 'what was written can be replayed' in session.failure
    with Bag(tmp_path / 'flight') as bag:
        found = [m.raw for m in bag.messages()]
    assert 10 < len(found) < 180
    assert found == [m[2] for m in messages(4.0)][: len(found)]

"""Recordings of this package carry checksums: a damaged byte is noticed, or changes nothing."""

from __future__ import annotations

from pathlib import Path

import bag_fixtures as flight
import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin

from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.checked_mcap import CheckedWriter, summary_checksums

Message = tuple[str, int, bytes]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with checksums, its one file."""
    writer = CheckedWriter(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP)
    with writer:
        connections = {}
        for topic, log_ns, message in flight.recording(0.5):
            if topic not in connections:
                kind = message.__msgtype__
                connections[topic] = writer.add_connection(topic, kind, typestore=flight.STORE)
            writer.write(connections[topic], log_ns, flight.serialized(message))
    return tmp_path / 'bag/bag.mcap'


def read(file: Path) -> tuple[list[Message], list[str]]:
    try:
        with Bag(file) as bag:
            messages = [(m.topic, m.log_ns, bytes(m.raw)) for m in bag.messages()]
            return messages, bag.problems
    except BagError as error:
        return [], [str(error)]


def test_every_flipped_bit_is_noticed_or_changes_nothing(recording: Path) -> None:
    content, (whole, problems) = recording.read_bytes(), read(recording)
    assert (len(whole), problems) == (len(flight.recording(0.5)), [])
    random = np.random.default_rng(5)
    noticed = 0
    for place in random.integers(len(content), size=150).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(8))
        recording.write_bytes(damaged)
        messages, problems = read(recording)
        noticed += bool(problems)
        assert problems or messages == whole, f'byte {place} of {len(content)}'
    assert noticed > 100


def test_a_damaged_summary_is_left_alone_and_all_messages_are_read(recording: Path) -> None:
    whole, _ = read(recording)
    content = bytearray(recording.read_bytes())
    place = content.rindex(b'/radar/points')
    content[place + 1 : place + 6] = b'lidar'
    recording.write_bytes(content)
    messages, (problem,) = read(recording)
    assert sorted(messages) == sorted(whole)
    assert 'its index is damaged, the checksum differs' in problem


def test_a_file_without_a_summary_has_no_checksum_to_differ(tmp_path: Path) -> None:
    file = tmp_path / 'short.mcap'
    file.write_bytes(b'\x89MCAP0\r\n')
    with pytest.raises(ValueError, match='no footer'):
        summary_checksums(file)
    file.write_bytes(bytes(100))
    with pytest.raises(ValueError, match='footer is damaged'):
        summary_checksums(file)

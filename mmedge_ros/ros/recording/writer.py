"""Writes a rosbag2 folder of MCAP files that can be read up to the last flush, whatever happens.

rosbags writes the files; splitting, flushing and the folder's metadata are done here.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from rosbags.interfaces import Connection, ConnectionExtRosbag2, MessageDefinition, Qos
from rosbags.rosbag2 import CompressionMode
from rosbags.rosbag2.metadata import dump_qos_v9

from mmedge_ros.replay import ReplayError
from mmedge_ros.replay.bag_storage import METADATA
from mmedge_ros.replay.checked_mcap import CheckedMcapWriter

# rosbag2's version of metadata.yaml.
_VERSION = 9


class RecordedTopic(NamedTuple):
    """A topic to be written: type with definition and digest, and its publishers' QoS."""

    name: str
    msgtype: str
    definition: MessageDefinition
    digest: str
    offered: tuple[Qos, ...] = ()


@dataclass
class _File:
    """A file of the recording."""

    path: Path
    count: int = 0
    begin_ns: int = 2**63 - 1
    end_ns: int = 0

    def described(self) -> dict[str, Any]:
        begin_ns = self.begin_ns if self.count else 0
        return {
            'path': self.path.name,
            'starting_time': {'nanoseconds_since_epoch': begin_ns},
            'duration': {'nanoseconds': max(self.end_ns - begin_ns, 0)},
            'message_count': self.count,
        }


class BagWriter:
    """A recording, open for writing; every method may raise OSError when the disk is full.

    :param split_bytes: a new file begins when one has grown beyond this; 0 keeps one file
    :raises ReplayError: if the folder exists already
    """

    def __init__(self, folder: Path, split_bytes: int = 0) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self._unflushed = False
        self._split_bytes = split_bytes
        self._connections: dict[str, Connection] = {}
        self._files: list[_File] = []
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise ReplayError(f'{folder} exists already; name a folder that does not') from error
        except (OSError, ValueError) as error:
            raise ReplayError(f'{str(folder)!r} cannot be made: {error}') from error
        self._storage = self._begin_file()

    @property
    def bytes_written(self) -> int:
        """Size of the present file, in bytes."""
        return int(self._storage.bio.tell())

    @property
    def files(self) -> int:
        """How many files there are."""
        return len(self._files)

    def add_topic(self, topic: RecordedTopic) -> None:
        """Announce a topic; a second time does nothing."""
        if topic.name in self._connections:
            return
        connection = Connection(
            id=len(self._connections) + 1,
            topic=topic.name,
            msgtype=topic.msgtype,
            msgdef=topic.definition,
            digest=topic.digest,
            msgcount=0,
            ext=ConnectionExtRosbag2('cdr', list(topic.offered)),
            owner=None,
        )
        self._connections[topic.name] = connection
        self._announce(connection)

    def write(self, topic: str, log_ns: int, data: bytes) -> None:
        """Write a serialised message of an announced topic."""
        if self._split_bytes and self.bytes_written > self._split_bytes:
            self._storage.close(_VERSION, '{}')
            self._storage = self._begin_file()
        self._storage.write(self._connections[topic], log_ns, data)
        self._unflushed = True
        self.counts[topic] += 1
        file = self._files[-1]
        file.count += 1
        file.begin_ns = min(file.begin_ns, log_ns)
        file.end_ns = max(file.end_ns, log_ns)

    def flush(self) -> None:
        """Make everything up to here readable, even if we are killed or the power fails."""
        if not self._unflushed:
            return
        self._unflushed = False
        if self._storage.chunk.msgs:
            self._storage.close_chunk()
        self._storage.bio.flush()
        os.fsync(self._storage.bio.fileno())

    def close(self) -> None:
        """End the recording with indices and metadata."""
        self._storage.close(_VERSION, '{}')
        partial = self.folder / f'{METADATA}.part'
        partial.write_text(yaml.safe_dump(self._metadata(), sort_keys=False))
        partial.replace(self.folder / METADATA)

    def abandon(self) -> None:
        """Let go of the file as it is, because it cannot be written to."""
        with suppress(OSError):  # what was not written yet cannot be
            self._storage.abort()

    def _begin_file(self) -> CheckedMcapWriter:
        storage = CheckedMcapWriter(self.folder, CompressionMode.NONE)
        # rosbags names the file after the folder; it goes on writing to it under any name.
        path = self.folder / f'{self.folder.name}_{len(self._files)}.mcap'
        storage.path = storage.path.rename(path)
        self._files.append(_File(path))
        self._storage = storage
        for connection in self._connections.values():
            self._announce(connection)
        return storage

    def _announce(self, connection: Connection) -> None:
        if connection.msgtype not in {schema.name for schema in self._storage.schemas}:
            self._storage.add_msgtype(connection)
        self._storage.add_connection(connection, yaml.safe_dump(_offered(connection)).strip())

    def _metadata(self) -> dict[str, Any]:
        filled = [file for file in self._files if file.count]
        begin_ns = min((file.begin_ns for file in filled), default=0)
        end_ns = max((file.end_ns for file in filled), default=0)
        topics = [
            {
                'topic_metadata': {
                    'name': connection.topic,
                    'type': connection.msgtype,
                    'serialization_format': 'cdr',
                    'offered_qos_profiles': _offered(connection),
                    'type_description_hash': connection.digest,
                },
                'message_count': self.counts[connection.topic],
            }
            for connection in self._connections.values()
        ]
        return {
            'rosbag2_bagfile_information': {
                'version': _VERSION,
                'storage_identifier': 'mcap',
                'duration': {'nanoseconds': end_ns - begin_ns},
                'starting_time': {'nanoseconds_since_epoch': begin_ns},
                'message_count': self.counts.total(),
                'topics_with_message_count': topics,
                'compression_format': '',
                'compression_mode': '',
                'relative_file_paths': [file.path.name for file in self._files],
                'files': [file.described() for file in self._files],
                'custom_data': None,
                'ros_distro': os.environ.get('ROS_DISTRO', 'rosbags'),
            }
        }


def _offered(connection: Connection) -> list[Any]:
    extension = connection.ext
    assert isinstance(extension, ConnectionExtRosbag2)
    return list(dump_qos_v9(extension.offered_qos_profiles))

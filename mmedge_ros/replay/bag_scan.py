"""Broken recordings, record by record: what comes before the break is still there."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

import zstandard
from mcap.exceptions import McapError
from mcap.records import Channel, Chunk, McapRecord, Message, Schema
from mcap.stream_reader import StreamReader, breakup_chunk

CDR = 'cdr'

# A chunk that claims more was damaged, or made to fill the memory; recorders write megabytes.
_MAX_CHUNK_BYTES = 2**30

# An MCAP chunk record: opcode, length, times, size, checksum, then the compression's name.
_CHUNK_HEAD = struct.Struct('<BQQQQII')
_CHUNK_OPCODE = 6
_DATA_LENGTH_BYTES = 8
_MAX_NAME_BYTES = 16

# Offset of the count of pages in an SQLite header; 0 makes SQLite take the file's real size.
_SQLITE_PAGES_AT = 28


class Record(NamedTuple):
    """A message as it lies in the file: log time in nanoseconds and CDR bytes."""

    log_ns: int
    topic: str
    msgtype: str
    raw: bytes


class Scan:
    """Reads a file from its beginning; whatever ``records`` raises marks the break.

    ``definitions`` maps message types to encoding and text of their definition, ``left_out``
    topics that are not CDR to what they are.
    """

    def __init__(self, path: Path) -> None:
        self.definitions: dict[str, tuple[str, str]] = {}
        self.left_out: dict[str, str] = {}
        self._path = path

    def records(self) -> Iterator[Record]:
        """Yield messages in the file's order."""
        raise NotImplementedError

    def close(self) -> None:
        """Release files; by default nothing stays open between scans."""


class McapScan(Scan):
    """An MCAP file without a usable end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}

    def records(self) -> Iterator[Record]:
        limit = max(self._path.stat().st_size, 1)
        with self._path.open('rb') as file:
            reader = StreamReader(file, emit_chunks=True, record_size_limit=limit)
            read_to = 0
            try:
                for record in reader.records:
                    yield from self._messages([record])
                    read_to = file.tell()
            except McapError as error:
                file.seek(read_to)
                yield from self._messages(_cut_chunk(file, limit))
                reason = str(error) or 'the file ends in the middle of a record'
                raise EOFError(reason) from error

    def _messages(self, records: Iterable[McapRecord]) -> Iterator[Record]:
        for record in records:
            if isinstance(record, Chunk):
                if record.uncompressed_size > _MAX_CHUNK_BYTES:
                    raise ValueError(f'a chunk claims {record.uncompressed_size} bytes')
                yield from self._messages(breakup_chunk(record, validate_crc=True))
            elif isinstance(record, Schema):
                self._schemas[record.id] = record
                self.definitions[record.name] = (record.encoding, record.data.decode())
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Message):
                channel = self._channels[record.channel_id]
                if channel.message_encoding != CDR:
                    self.left_out[channel.topic] = channel.message_encoding
                    continue
                msgtype = self._schemas[channel.schema_id].name
                yield Record(record.log_time, channel.topic, msgtype, record.data)


def _cut_chunk(file: IO[bytes], limit: int) -> Iterator[McapRecord]:
    """Yield the records of a chunk whose end is missing; ends or raises at the break."""
    head = file.read(_CHUNK_HEAD.size)
    if len(head) < _CHUNK_HEAD.size or head[0] != _CHUNK_OPCODE:
        return
    name_bytes = _CHUNK_HEAD.unpack(head)[-1]
    compression = file.read(min(name_bytes, _MAX_NAME_BYTES)).decode('ascii', 'replace')
    file.read(_DATA_LENGTH_BYTES)
    stream: IO[bytes]
    if compression == 'zstd':
        stream = zstandard.ZstdDecompressor().stream_reader(file)
    elif not compression:
        stream = file
    else:
        return
    limit = max(limit, _MAX_CHUNK_BYTES)
    try:
        yield from StreamReader(stream, skip_magic=True, record_size_limit=limit).records
    except McapError:
        return


class SqliteScan(Scan):
    """An SQLite file that is shorter than its header says.

    Works on a copy in the folder for temporary files, because the header must be changed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._folder = TemporaryDirectory(prefix='mmedge_bag_')
        copy = Path(self._folder.name) / 'bag.db3'
        shutil.copyfile(path, copy)
        with copy.open('r+b') as file:
            file.seek(_SQLITE_PAGES_AT)
            file.write(bytes(4))
        self._uri = f'{copy.as_uri()}?mode=ro&immutable=1'

    def records(self) -> Iterator[Record]:
        connection = sqlite3.connect(self._uri, uri=True)
        try:
            topics = {}
            for number, name, msgtype, encoding in connection.execute(
                'SELECT id, name, type, serialization_format FROM topics'
            ):
                if encoding == CDR:
                    topics[number] = (str(name), str(msgtype))
                else:
                    self.left_out[str(name)] = str(encoding)
            self._read_definitions(connection)
            rows = connection.execute('SELECT topic_id, timestamp, data FROM messages ORDER BY id')
            for number, log_ns, raw in rows:
                if not isinstance(log_ns, int) or not isinstance(raw, bytes):
                    raise ValueError('a message is not stored as time and bytes')
                if number in topics:
                    yield Record(log_ns, *topics[number], raw)
        finally:
            connection.close()

    def close(self) -> None:
        self._folder.cleanup()

    def _read_definitions(self, connection: sqlite3.Connection) -> None:
        # Recorders before Iron wrote no definitions.
        if connection.execute(
            "SELECT name FROM sqlite_master WHERE name = 'message_definitions'"
        ).fetchone():
            for msgtype, encoding, text in connection.execute(
                'SELECT topic_type, encoding, encoded_message_definition FROM message_definitions'
            ):
                self.definitions[str(msgtype)] = (str(encoding), str(text))


SCANS: dict[str, Callable[[Path], Scan]] = {'.mcap': McapScan, '.db3': SqliteScan}

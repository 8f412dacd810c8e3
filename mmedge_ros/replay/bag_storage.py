"""The files of a rosbag2 recording, intact ones by their index, broken ones by scanning.

``rosbags`` reads what is intact. What it refuses (a recorder that was killed, a copy that was
cut) is read record by record up to the break.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Protocol, cast

from rosbags.interfaces import ConnectionExtRosbag2
from rosbags.rosbag2 import Reader

from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.untrusted_files import PlainYamlError, brief, load_plain_yaml
from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag_scan import CDR, SCANS, Record, Scan
from mmedge_ros.replay.checked_mcap import summary_checksums

METADATA = 'metadata.yaml'
_MCAP = '.mcap'
# Times beyond int64 cannot be reckoned with.
LAST_NS = 2**63 - 1
_MAX_METADATA_BYTES = 2_000_000
# Recorders write messages almost in order. A larger step back is a damaged time, and sorting
# it in would need the whole bag in memory.
_MAX_DISORDER_NS = 10 * NS_PER_S

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic of a recording."""

    name: str
    msgtype: str
    count: int


class BagPart(Protocol):
    """One readable piece of a recording; log times are nanoseconds."""

    topics: tuple[TopicInfo, ...]
    definitions: dict[str, tuple[str, str]]

    @property
    def begin_ns(self) -> int: ...

    @property
    def end_ns(self) -> int: ...

    def messages(self, names: frozenset[str]) -> Iterator[Record]:
        """Yield the messages of these topics in log-time order."""

    def close(self) -> None:
        """Release files."""


class IndexedPart:
    """A file, or a compressed folder, that ``rosbags`` reads.

    :raises Exception: of many kinds, when ``rosbags`` cannot read it
    """

    def __init__(self, path: Path, report: Report) -> None:
        self._name = path.name
        if path.suffix == _MCAP:
            written, true = summary_checksums(path)
            if written not in (0, true):
                raise LookupError('its index is damaged, the checksum differs')
        self._report = report
        self._is_reported = False
        self._reader = Reader(path)
        self._reader.open()
        try:
            self._check_index()
        except LookupError:
            self._reader.close()
            raise
        self._connections: list[Any] = []
        for connection in self._reader.connections:
            encoding = cast(ConnectionExtRosbag2, connection.ext).serialization_format
            if encoding == CDR:
                self._connections.append(connection)
            else:
                _report_left_out(path, connection.topic, encoding, report)
        self.topics = tuple(TopicInfo(c.topic, c.msgtype, c.msgcount) for c in self._connections)
        self.definitions = {
            c.msgtype: (f'ros2{c.msgdef.format.name.lower()}', c.msgdef.data)
            for c in self._connections
            if c.msgdef.data
        }
        self.begin_ns = self._reader.start_time
        self.end_ns = self._reader.end_time - 1

    def _check_index(self) -> None:
        """Refuse an MCAP index that rosbags would follow into leaving messages out."""
        chunks = getattr(self._reader.storage, 'chunks', None)
        if chunks is not None and not (chunks and all(c.message_index_offsets for c in chunks)):
            raise LookupError('it has no complete index')
        if self._reader.message_count and not (
            self._reader.start_time < self._reader.end_time <= LAST_NS
        ):
            raise LookupError('the times in its index are damaged')

    def messages(self, names: frozenset[str]) -> Iterator[Record]:
        wanted = [c for c in self._connections if c.topic in names]
        if not wanted:
            return
        count = 0
        source = self._reader.messages(wanted)
        while True:
            try:
                connection, log_ns, raw = next(source)
            except StopIteration:
                break
            # A parser over damaged bytes may raise anything.
            except Exception as error:  # noqa: BLE001
                self._report_once(f'{self._name}: broken after {count} messages ({brief(error)})')
                return
            count += 1
            yield Record(log_ns, connection.topic, connection.msgtype, raw)
        # Damaged lengths can make the parser step over messages without noticing.
        promised = sum(c.msgcount for c in wanted)
        if count != promised:
            self._report_once(f'{self._name}: damaged, {count} of {promised} messages can be read')

    def _report_once(self, problem: str) -> None:
        """Report the break when it is first met; other topics meet it after another count."""
        if not self._is_reported:
            self._is_reported = True
            self._report(problem)

    def close(self) -> None:
        self._reader.close()


class ScannedPart:
    """A file without a usable index, read from its beginning to its end or its break.

    ``failure`` says why reading ended early, None if it did not.
    """

    def __init__(self, scan: Scan) -> None:
        self._scan = scan
        self.failure: str | None = None
        self.begin_ns, self.end_ns, self._disorder_ns = 2**63, -(2**63), 0
        counts: Counter[tuple[str, str]] = Counter()
        try:
            for record in scan.records():
                self._observe(record)
                counts[record.topic, record.msgtype] += 1
        # A parser over damaged bytes may raise anything; that is the break.
        except Exception as error:  # noqa: BLE001
            self.failure = brief(error)
        self.count = counts.total()
        self.topics = tuple(TopicInfo(*key, count) for key, count in counts.items())
        self.definitions, self.left_out = scan.definitions, scan.left_out

    def messages(self, names: frozenset[str]) -> Iterator[Record]:
        sound = islice(self._scan.records(), self.count)
        return _in_order((r for r in sound if r.topic in names), self._disorder_ns)

    def close(self) -> None:
        self._scan.close()

    def _observe(self, record: Record) -> None:
        step_back_ns = self.end_ns - record.log_ns
        if record.log_ns > LAST_NS:
            raise ValueError(f'log time {record.log_ns} ns is damaged')
        if step_back_ns > _MAX_DISORDER_NS:
            raise ValueError(f'the log time steps back by {step_back_ns / NS_PER_S:.0f} s')
        self.begin_ns = min(self.begin_ns, record.log_ns)
        self.end_ns = max(self.end_ns, record.log_ns)
        self._disorder_ns = max(self._disorder_ns, step_back_ns)


def _in_order(records: Iterable[Record], disorder_ns: int) -> Iterator[Record]:
    """Sort records by log time of which none comes more than ``disorder_ns`` too late."""
    waiting: list[tuple[int, int, Record]] = []
    for number, record in enumerate(records):
        heapq.heappush(waiting, (record.log_ns, number, record))
        while waiting[0][0] < record.log_ns - disorder_ns:
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]


def open_parts(path: Path, report: Report) -> list[BagPart]:
    """Open a rosbag2 folder, or a single .mcap or .db3 file.

    What is wrong but can be lived with goes to ``report``, in words.

    :raises BagError: if this is no recording at all
    """
    if not path.exists():
        raise BagError(
            f'{path} does not exist; give a rosbag2 folder, an .mcap or .db3 file, a video file '
            'or a folder of pictures'
        )
    if path.is_dir():
        return _open_folder(path, report)
    if path.suffix == '.bag':
        raise BagError(f'{path} is a ROS 1 bag; convert it with rosbags-convert')
    if path.suffix not in SCANS:
        raise BagError(f'{path} is not a recording; give a rosbag2 folder, an .mcap or a .db3')
    return [_open_file(path, report)]


def _open_folder(path: Path, report: Report) -> list[BagPart]:
    files, compressed = _files_of(path, report)
    if compressed:
        try:
            return [IndexedPart(path, report)]
        except Exception as error:
            raise BagError(f'{path}: compressed recording cannot be read ({brief(error)})') from (
                error
            )
    present = [file for file in files if file.exists()]
    for file in files:
        if file not in present:
            report(f'{file.name} is missing, although {METADATA} lists it')
    if not present:
        raise BagError(
            f'{path} has no .mcap or .db3 file, and no pictures (.jpg, .png) either; give a '
            'rosbag2 folder, a video file or a folder of pictures'
        )
    return [_open_file(file, report) for file in present]


def _files_of(path: Path, report: Report) -> tuple[list[Path], bool]:
    """Return the storage files of a folder, and whether rosbag2 has compressed them."""
    metadata = path / METADATA
    if not metadata.exists():
        files = sorted(file for file in path.iterdir() if file.suffix in SCANS)
        if files:
            report(f'{METADATA} is missing: the recorder was not closed properly')
        return files, False
    try:
        content = load_plain_yaml(metadata, _MAX_METADATA_BYTES)
        bag = content['rosbag2_bagfile_information']
        # Only the name counts: a recording does not reach outside its folder.
        files = [path / PurePath(str(name)).name for name in bag['relative_file_paths']]
        return files, bool(bag.get('compression_mode')) and bag['compression_mode'] != 'NONE'
    except PlainYamlError as error:
        reason = str(error)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        reason = f'{metadata} is not the metadata of a recording ({error!r})'
    raise BagError(f'{reason}; give the .mcap or .db3 file itself, or remove {METADATA}')


def _open_file(path: Path, report: Report) -> BagPart:
    journal = path.with_name(f'{path.name}-wal')
    if journal.exists() and journal.stat().st_size:
        report(
            f'{journal.name} holds messages that are not read; open {path.name} once in sqlite3'
        )
    try:
        indexed = IndexedPart(path, report)
        if path.suffix != _MCAP:
            report(f'{path.name}: SQLite keeps no checksums; damaged messages may go unnoticed')
        return indexed
    # A parser over damaged bytes may raise anything.
    except Exception as error:  # noqa: BLE001
        reason = brief(error)
    try:
        part = ScannedPart(SCANS[path.suffix](path))
    except OSError as error:
        raise BagError(f'{path} cannot be read: {error}') from error
    for topic, encoding in part.left_out.items():
        _report_left_out(path, topic, encoding, report)
    if part.failure is None:
        report(f'{path.name}: {reason}; all its {part.count} messages were read without an index')
    else:
        report(f'{path.name}: broken after {part.count} messages ({part.failure})')
    return part


def _report_left_out(path: Path, topic: str, encoding: str, report: Report) -> None:
    report(f'{path.name}: {topic} is left out, it is {encoding!r} and not {CDR!r}')

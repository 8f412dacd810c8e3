"""Reading recordings, whole and broken."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import bag_fixtures as flight
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, IndexType
from mcap.writer import Writer as McapWriter

from mmedge_ros.replay import BagError
from mmedge_ros.replay.bag import Bag
from mmedge_ros.replay.recorded_calibration import static_transforms

STORAGES = ('mcap', 'sqlite3')
NO_CHECKSUMS = 'keeps no checksums'
LAYOUTS = [
    ('mcap', 'none'),
    ('mcap', 'storage'),
    ('mcap', 'file'),
    ('sqlite3', 'none'),
    ('sqlite3', 'file'),
    ('sqlite3', 'message'),
]


HEADER, BATTERY, PLAIN = 'std_msgs/msg/Header', 'drone_msgs/msg/Battery', 'ros2msg'


def mcap(
    path: Path,
    messages: Iterable[tuple[int, bytes]],
    kind: str = HEADER,
    definition: tuple[str, bytes] = (PLAIN, b''),
    odd: str = '',
    **options: Any,
) -> Path:
    """Write an MCAP file with a message of one topic at each log time, each third on /odd."""
    with path.open('wb') as file:
        writer = McapWriter(file, **options)
        writer.start('ros2')
        schema = writer.register_schema(kind, *definition)
        plain = writer.register_channel('/h', 'cdr', schema)
        other = writer.register_channel('/odd', odd, schema) if odd else plain
        for number, (log_ns, raw) in enumerate(messages):
            writer.add_message(other if number % 3 == 2 else plain, log_ns, raw, log_ns)
        writer.finish()
    return path


def headers(path: Path, times: Iterable[int], **options: Any) -> Path:
    return mcap(path, ((log_ns, bytes(20)) for log_ns in times), **options)


def storage_file(folder: Path) -> Path:
    (file,) = (f for f in folder.iterdir() if f.suffix in ('.mcap', '.db3'))
    return file


def cut(file: Path, share: float) -> None:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * share)])


@pytest.mark.parametrize(('storage', 'compression'), LAYOUTS)
def test_a_recording_gives_back_what_was_written(
    tmp_path: Path, storage: str, compression: str
) -> None:
    written = flight.recording()
    with Bag(flight.write_bag(tmp_path / 'bag', storage, written, compression)) as bag:
        read = list(bag.messages())
        assert [p for p in bag.problems if NO_CHECKSUMS not in p] == []
        is_plain = (storage, compression) == ('sqlite3', 'none')
        assert bool(bag.problems) == is_plain
        assert [(m.topic, m.log_ns) for m in read] == [(t, ns) for t, ns, _ in written]
        assert [bytes(m.raw) for m in read] == [flight.serialized(m) for _, _, m in written]
        assert (bag.begin_ns, bag.end_ns) == (written[0][1], written[-1][1])


@pytest.mark.parametrize('storage', STORAGES)
def test_messages_written_out_of_order_come_in_log_time_order(
    tmp_path: Path, storage: str
) -> None:
    written = flight.recording()
    shuffled = [written[i ^ 3] for i in range(len(written) // 4 * 4)]
    with Bag(flight.write_bag(tmp_path / 'bag', storage, shuffled)) as bag:
        times = [m.log_ns for m in bag.messages()]
        assert times == sorted(ns for _, ns, _ in shuffled)


def test_a_split_recording_is_merged_in_log_time_order(tmp_path: Path) -> None:
    written = flight.recording()
    folder = flight.write_bag(tmp_path / 'bag', 'mcap', written[::2])
    other = flight.write_bag(tmp_path / 'other', 'mcap', written[1::2])
    storage_file(other).rename(folder / 'other.mcap')
    (folder / 'metadata.yaml').unlink()
    with Bag(folder) as bag:
        assert [m.log_ns for m in bag.messages()] == [ns for _, ns, _ in written]
        assert {t.name: t.count for t in bag.topics}[flight.RADAR] == 25
        assert any('metadata.yaml is missing' in problem for problem in bag.problems)


@pytest.mark.parametrize('storage', STORAGES)
def test_a_recording_cut_off_is_read_up_to_the_break(tmp_path: Path, storage: str) -> None:
    written = flight.recording(duration=4.0)
    folder = flight.write_bag(tmp_path / 'bag', storage, written)
    cut(storage_file(folder), 0.5)
    with Bag(folder) as bag:
        read = list(bag.messages())
        assert 0.3 * len(written) < len(read) < 0.6 * len(written)
        expected = [(t, ns, flight.serialized(m)) for t, ns, m in written[: len(read)]]
        assert [(m.topic, m.log_ns, bytes(m.raw)) for m in read] == expected
        assert sum(t.count for t in bag.topics) == len(read)
        assert (bag.begin_ns, bag.end_ns) == (written[0][1], read[-1].log_ns)
        (problem,) = bag.problems
        assert f'broken after {len(read)} messages' in problem
        assert list(bag.messages()) == read


@pytest.mark.parametrize('compression', [CompressionType.NONE, CompressionType.ZSTD])
def test_an_unfinished_mcap_chunk_is_read_as_far_as_it_goes(
    tmp_path: Path, compression: CompressionType
) -> None:
    random = np.random.default_rng(1)
    messages = ((number, random.bytes(1000)) for number in range(500))
    path = mcap(tmp_path / 'a.mcap', messages, compression=compression, chunk_size=1_000_000)
    cut(path, 0.93)
    with Bag(path) as bag:
        read = [m.log_ns for m in bag.messages()]
        # They are all in one chunk, which has no end.
        assert read == list(range(len(read)))
        assert len(read) > 300


@pytest.mark.parametrize('chunked', [True, False])
@pytest.mark.parametrize('index', [IndexType.NONE, IndexType.CHUNK])
@pytest.mark.parametrize('statistics', [True, False])
def test_an_mcap_file_without_an_index_is_read_and_sorted(
    tmp_path: Path, chunked: bool, index: IndexType, statistics: bool
) -> None:
    options = {'use_chunking': chunked, 'index_types': index, 'use_statistics': statistics}
    path = headers(tmp_path / 'a.mcap', (5, 3, 4, 9, 7, 8), **options)
    with Bag(path) as bag:
        assert [m.log_ns for m in bag.messages()] == [3, 4, 5, 7, 8, 9]
        assert any('all its 6 messages' in problem for problem in bag.problems)


@pytest.mark.parametrize('indexed', [True, False])
def test_topics_that_are_not_cdr_are_left_out(tmp_path: Path, indexed: bool) -> None:
    index = IndexType.ALL if indexed else IndexType.NONE
    with Bag(headers(tmp_path / 'a.mcap', range(9), odd='json', index_types=index)) as bag:
        assert [t.name for t in bag.topics] == ['/h']
        assert [m.log_ns for m in bag.messages()] == [0, 1, 3, 4, 6, 7]
        assert any("/odd is left out, it is 'json'" in problem for problem in bag.problems)


@pytest.mark.parametrize('compression', [CompressionType.LZ4, CompressionType.ZSTD])
def test_a_file_cut_within_its_only_small_chunk_holds_nothing(
    tmp_path: Path, compression: CompressionType
) -> None:
    path = headers(tmp_path / 'a.mcap', range(9), compression=compression)
    data = path.read_bytes()
    path.write_bytes(data[:120])
    with pytest.raises(BagError, match=r'holds no messages; a\.mcap: broken after 0 messages'):
        Bag(path)


def test_a_time_far_back_is_the_break_of_a_file_without_an_index(tmp_path: Path) -> None:
    times = [10**12, 10**12 + 1, 5, 10**12 + 2]
    with Bag(headers(tmp_path / 'a.mcap', times, index_types=IndexType.NONE)) as bag:
        assert [m.log_ns for m in bag.messages()] == times[:2]
        assert any('log time steps back by 1000 s' in problem for problem in bag.problems)


@pytest.mark.parametrize('index', [IndexType.ALL, IndexType.NONE])
def test_a_time_beyond_all_times_is_the_break(tmp_path: Path, index: IndexType) -> None:
    with Bag(headers(tmp_path / 'a.mcap', [1, 2, 2**64 - 1], index_types=index)) as bag:
        assert [m.log_ns for m in bag.messages()] == [1, 2]
        assert bag.end_ns == 2
        assert any(f'log time {2**64 - 1} ns is damaged' in problem for problem in bag.problems)


def test_a_chunk_that_claims_a_gigabyte_is_the_break(tmp_path: Path) -> None:
    path = headers(tmp_path / 'a.mcap', [1, 2], compression=CompressionType.NONE)
    data = bytearray(path.read_bytes())
    # Behind magic and header record: opcode, length, two times, then the claimed size.
    at = 8 + 9 + struct.unpack_from('<Q', data, 9)[0] + 9 + 16
    data[at : at + 8] = struct.pack('<Q', 2**40)
    path.write_bytes(data[:-8])
    with pytest.raises(BagError, match=r'a chunk claims 1099511627776 bytes'):
        Bag(path)


def test_a_missing_file_of_several_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag')
    metadata = folder / 'metadata.yaml'
    text = metadata.read_text()
    metadata.write_text(text.replace('  - bag.mcap', '  - bag.mcap\n  - bag_1.mcap', 1))
    with Bag(folder) as bag:
        assert len(list(bag.messages([flight.RADAR]))) == 25
        assert any('bag_1.mcap is missing' in problem for problem in bag.problems)


def test_damage_inside_an_indexed_file_ends_the_reading_there(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag', compression='storage')
    file = storage_file(folder)
    data = bytearray(file.read_bytes())
    data[1000:1100] = bytes(100)
    file.write_bytes(data)
    with Bag(folder) as bag:
        read = list(bag.messages())
        assert len(read) < 66
        assert any(f'damaged, {len(read)} of 66 messages' in text for text in bag.problems)


def test_a_chunk_that_fails_its_checksum_ends_the_reading_there(tmp_path: Path) -> None:
    messages = ((number, b'%020d' % number) for number in range(100))
    options = {'compression': CompressionType.NONE, 'chunk_size': 2000}
    path = mcap(tmp_path / 'a.mcap', messages, **options)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'%020d' % 70, b'X' * 20))
    with Bag(path) as bag:
        read = [m.log_ns for m in bag.messages()]
        assert read == list(range(len(read)))
        assert 0 < len(read) <= 70
        assert any(f'broken after {len(read)} messages' in text for text in bag.problems)


def test_an_unmerged_journal_is_reported(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag', 'sqlite3')
    (folder / 'bag.db3-wal').write_bytes(b'pages')
    with Bag(folder) as bag:
        assert any('bag.db3-wal' in problem for problem in bag.problems)


def test_a_static_transform_without_a_rotation_is_left_out_and_its_frames_are_named(
    tmp_path: Path,
) -> None:
    broken = [(flight.TF_STATIC, 1, flight.static_transforms(1, w=0.0))]
    problems: list[str] = []
    with Bag(flight.write_bag(tmp_path / 'bag', messages=broken)) as bag:
        assert list(static_transforms(bag, problems.append)) == []
    (problem,) = problems
    assert re.search(r'radar_link.*camera_optical_frame.*quaternion', problem)


def test_an_unknown_topic_brings_up_the_nearest(tmp_path: Path) -> None:
    with (
        Bag(flight.write_bag(tmp_path / 'bag')) as bag,
        pytest.raises(BagError, match="nearest is '/camera/camera_info'"),
    ):
        bag.messages(['/camera/info'])


def test_a_type_of_our_own_is_read_by_the_definition_in_the_bag(tmp_path: Path) -> None:
    text = b'std_msgs/Header header\nfloat32 charge # 0..1\n'
    raw = flight.serialized(flight.header(7, 'abc')) + struct.pack('<f', 0.5)
    path = mcap(tmp_path / 'own.mcap', [(1, raw)], BATTERY, (PLAIN, text))
    with Bag(path) as bag:
        message = bag.deserialize(next(bag.messages()))
        assert (message.charge, message.header.frame_id) == (0.5, 'abc')


def test_a_type_that_nobody_defines_is_an_error(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'own.mcap', [(1, bytes(20))], BATTERY, ('protobuf', b'?'))
    with Bag(path) as bag, pytest.raises(BagError, match='no definition'):
        bag.deserialize(next(bag.messages()))


@pytest.mark.parametrize('keep', [0, 3, 4, 11, 40, 200])
def test_damaged_message_bytes_name_the_topic_and_the_message(tmp_path: Path, keep: int) -> None:
    whole = flight.serialized(flight.point_cloud(0, 5))
    damaged = ('sensor_msgs/msg/PointCloud2', whole[:keep])
    messages = [(flight.RADAR, 1, flight.point_cloud(0, 5)), (flight.RADAR, 2, damaged)]
    with Bag(flight.write_bag(tmp_path / 'bag', messages=messages)) as bag:
        good, bad = bag.messages()
        assert bag.deserialize(good).width == 4
        with pytest.raises(BagError, match=r'message 1 of /radar/points'):
            bag.deserialize(bad)


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('nowhere', 'does not exist'),
        ('old.bag', 'rosbags-convert'),
        ('', r'has no \.mcap or \.db3'),
    ],
)
def test_what_is_no_recording_is_refused_with_the_remedy(
    tmp_path: Path, name: str, words: str
) -> None:
    if name.endswith('.bag'):
        (tmp_path / name).write_bytes(b'#ROSBAG V2.0\n')
    with pytest.raises(BagError, match=words):
        Bag(tmp_path / name)


def test_a_path_that_no_file_system_holds_is_an_error() -> None:
    with pytest.raises(BagError, match=r'cannot be read|does not exist'):
        Bag('x' * 5000)


def test_a_folder_in_the_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag', 'sqlite3')
    storage_file(folder).unlink()
    (folder / 'bag.db3').mkdir()
    with pytest.raises(BagError, match=r'bag\.db3 cannot be read'):
        Bag(folder)


@pytest.mark.parametrize('storage', STORAGES)
def test_a_recording_without_messages_is_an_error(tmp_path: Path, storage: str) -> None:
    folder = flight.write_bag(tmp_path / 'bag', storage, [])
    with pytest.raises(BagError, match='holds no messages'):
        Bag(folder)


@pytest.mark.parametrize('suffix', ['.mcap', '.db3'])
@pytest.mark.parametrize('content', [b'', b'\x00' * 300, b'\x89MCAP0\r\n', b'SQLite format 3\x00'])
def test_a_file_with_the_right_name_and_other_content_is_an_error(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f'bag{suffix}'
    path.write_bytes(content)
    with pytest.raises(BagError, match='holds no messages'):
        Bag(path)


@pytest.mark.parametrize(
    'text',
    [
        '',
        'just text',
        'a: [1, 2',
        'rosbag2_bagfile_information: 3',
        'rosbag2_bagfile_information: {version: 9}',
        'rosbag2_bagfile_information: {relative_file_paths: 7}',
        '\x00\x01',
        'a: &a [1]\nb: *a',
        '[' * 5000,
    ],
)
def test_damaged_metadata_is_an_error_that_names_the_way_out(tmp_path: Path, text: str) -> None:
    folder = flight.write_bag(tmp_path / 'bag')
    (folder / 'metadata.yaml').write_text(text)
    with pytest.raises(BagError, match=r'metadata\.yaml.*give the \.mcap or \.db3 file itself'):
        Bag(folder)


def test_metadata_cannot_point_outside_its_folder(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag')
    outside = storage_file(folder).rename(tmp_path / 'secret.mcap')
    metadata = folder / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('bag.mcap', f'../{outside.name}'))
    with pytest.raises(BagError):
        Bag(folder)


def test_a_damaged_compressed_recording_is_an_error(tmp_path: Path) -> None:
    folder = flight.write_bag(tmp_path / 'bag', 'sqlite3', compression='file')
    (file,) = folder.glob('*.zstd')
    file.write_bytes(b'nonsense')
    with pytest.raises(BagError, match='compressed recording cannot be read'):
        Bag(folder)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    storage=st.sampled_from(STORAGES),
    at=st.floats(0.0, 1.0),
    junk=st.binary(min_size=1, max_size=40),
)
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, storage: str, at: float, junk: bytes
) -> None:
    folder = flight.write_bag(tmp_path_factory.mktemp('damaged') / 'bag', storage)
    file = storage_file(folder)
    data = bytearray(file.read_bytes())
    begin = int(at * len(data))
    data[begin : begin + len(junk)] = junk
    file.write_bytes(data)
    with suppress(BagError), Bag(folder) as bag:
        assert bag.topics
        for message in bag.messages():
            with suppress(BagError):
                bag.deserialize(message)

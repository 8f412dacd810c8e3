"""Recordings become a summary, and a table that others can read."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.capture_file import LAST_BYTES_MISSING, decode_capture
from mmedge_ros.sensing.radar.chirp_configuration import configurations_folder, read_configuration
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, write_packet
from mmedge_ros.sensing.simulated_board.frames import RecordedFrames

CHIRPS = read_configuration(configurations_folder() / 'iwr1443_sdk2_20hz.cfg')
INTEGERS = BoardIdentity(0x02010004, 0xA1443, velocity_step=1.0)
POINTS = np.array([[0.5, 2.0, -0.25, -3.0, 14.2, 70.3], [0.0, 40.0, 0.0, 1.0, 9.9, 71.0]], 'f4')


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def same(mine: dict[str, str], theirs: dict[str, str]) -> bool:
    """Whether a row says the same within six significant digits."""
    return mine.keys() == theirs.keys() and all(
        mine[name] == text or float(mine[name]) == pytest.approx(float(text), rel=1e-6, abs=1e-9)
        for name, text in theirs.items()
    )


@pytest.mark.parametrize('chunk_bytes', [1 << 20, 777])
def test_tables_are_those_of_another_decoder(
    data_folder: Path, tmp_path: Path, chunk_bytes: int
) -> None:
    folder = data_folder / 'ti_tlv'
    for expected in json.loads((folder / 'expected.json').read_text()):
        capture = folder / expected['file']
        table = tmp_path / 'points.csv'
        summary = decode_capture(capture, None, table, chunk_bytes)
        assert summary['frames'] == expected['complete_frames']
        assert summary['points'] == expected['points_total']
        assert summary['first_frame'] == expected['first_frame']
        assert summary['last_frame'] == expected['first_frame'] + summary['frames'] - 1
        assert summary['frame_gaps'] == expected['frame_gaps']
        assert summary['header_bytes'] == expected['header_bytes']
        assert summary['sdk_version'] == expected['sdk_version']
        assert summary['tlv_types'] == expected['tlv_counts']
        mine, theirs = rows(table), rows(capture.with_suffix('.points.csv'))
        assert len(mine) == len(theirs)
        assert all(map(same, mine, theirs))


def test_gaps_restarts_and_rejected_points_are_counted(tmp_path: Path) -> None:
    capture = tmp_path / 'some.dat'
    packets = [write_packet(INTEGERS, number, POINTS) for number in (5, 6, 9, 9, 1, 2)]
    capture.write_bytes(b'noise' + b''.join(packets))
    summary = decode_capture(capture, CHIRPS)
    assert summary['frames'] == 6
    assert (summary['frame_gaps'], summary['restarts']) == (2, 1)
    assert (summary['points'], summary['points_rejected']) == (6, 6)
    assert summary['bytes_thrown_away'] == 5
    assert json.loads(json.dumps(summary)) == summary


def test_a_capture_without_the_last_byte_of_each_packet_is_read_with_a_note(
    tmp_path: Path,
) -> None:
    capture, table = tmp_path / 'some.dat', tmp_path / 'table.csv'
    whole = [
        write_packet(BoardIdentity(), number, POINTS, (1, 2, 3, 4, 5, 6)) for number in range(9)
    ]
    capture.write_bytes(b''.join(data[:-1] for data in whole))
    summary = decode_capture(capture, None, table)
    assert (summary['frames'], summary['points'], summary['bytes_thrown_away']) == (9, 18, 0)
    assert summary['notes'] == [LAST_BYTES_MISSING]
    assert len(rows(table)) == 18
    assert len(RecordedFrames(capture).packet(3, 0.0)) == len(whole[0])
    capture.write_bytes(b''.join(whole))
    assert decode_capture(capture)['notes'] == []


def test_a_text_is_no_capture(tmp_path: Path) -> None:
    text, table = tmp_path / 'notes.txt', tmp_path / 'table.csv'
    text.write_text('no packet in here')
    with pytest.raises(SensingError, match=r'notes\.txt: 17 bytes without a packet'):
        decode_capture(text, None, table)
    assert not table.exists()


def test_velocities_are_added_where_a_configuration_gives_them(tmp_path: Path) -> None:
    capture, table = tmp_path / 'some.dat', tmp_path / 'table.csv'
    capture.write_bytes(write_packet(INTEGERS, 5, POINTS))
    decode_capture(capture, None, table)
    (first, second) = rows(table)
    assert first == {
        'frame': '5',
        'point': '0',
        'x_m': '0.5',
        'y_m': '2',
        'z_m': '-0.25',
        'doppler_index': '-3',
        'snr_0p1dB': '',
        'noise_0p1dB': '',
    }
    assert second['y_m'] == '40'
    decode_capture(capture, CHIRPS, table)
    (only,) = rows(table)
    assert float(only['doppler_mps']) == pytest.approx(-3 * CHIRPS.velocity_step, rel=1e-5)
    assert only['doppler_index'] == '-3'


def test_numbers_of_points_stay_when_others_are_rejected(tmp_path: Path) -> None:
    capture, table = tmp_path / 'some.dat', tmp_path / 'table.csv'
    capture.write_bytes(write_packet(BoardIdentity(), 5, POINTS[::-1]))
    decode_capture(capture, CHIRPS, table)
    (only,) = rows(table)
    assert (only['point'], only['doppler_mps']) == ('1', '-3')
    assert (only['snr_0p1dB'], only['noise_0p1dB']) == ('142', '703')


def test_nothing_gives_an_empty_summary_and_the_names_of_the_columns(tmp_path: Path) -> None:
    capture, table = tmp_path / 'empty.dat', tmp_path / 'table.csv'
    capture.write_bytes(b'')
    summary = decode_capture(capture, None, table)
    assert (summary['frames'], summary['points'], summary['first_frame']) == (0, 0, None)
    assert table.read_text().startswith('frame,point,x_m')


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    capture = tmp_path / 'some.dat'
    capture.write_bytes(write_packet(INTEGERS, 5, POINTS))
    with pytest.raises(SensingError, match=r'none\.dat: No such file'):
        decode_capture(tmp_path / 'none.dat')
    with pytest.raises(SensingError, match=r'cannot write the points to .*: No such file'):
        decode_capture(capture, None, tmp_path / 'no/such/folder/table.csv')
    table = tmp_path / 'table.csv'
    table.write_text('kept')
    with pytest.raises(SensingError, match='Is a directory'):
        decode_capture(tmp_path, None, table)
    assert table.read_text() == 'kept'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['some.dat', 'table.csv']


def test_points_never_replace_the_recording_nor_a_pipe(tmp_path: Path) -> None:
    capture, link, pipe = (tmp_path / name for name in ('some.dat', 'link.csv', 'pipe'))
    capture.write_bytes(write_packet(INTEGERS, 5, POINTS))
    before = capture.read_bytes()
    link.symlink_to(capture)
    for same in (capture, link):
        with pytest.raises(SensingError, match='is the recording itself'):
            decode_capture(capture, None, same)
    assert capture.read_bytes() == before
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        decode_capture(capture, None, pipe)
        assert os.read(reader, 1000).startswith(b'frame,point,x_m')
    finally:
        os.close(reader)
    assert pipe.is_fifo()

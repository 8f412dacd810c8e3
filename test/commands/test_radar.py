"""`mmedge radar` prints results on standard output and sentences beside it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mmedge_ros.commands.radar import radar_app
from mmedge_ros.sensing.radar.chirp_configuration import configurations_folder
from mmedge_ros.sensing.radar.tlv_writer import BoardIdentity, write_packet

CFG = configurations_folder() / 'iwr6843_sdk3_20hz.cfg'


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / 'capture.dat'
    points = np.array([[0.5, 2.0, 0.0, 1.0, 10.0, 60.0], [0, 50.0, 0, 0, 9, 61]], np.float32)
    path.write_bytes(b''.join(write_packet(BoardIdentity(), n, points) for n in range(1, 5)))
    return path


def run(*arguments: object, code: int = 0, given: str | None = None) -> tuple[str, str]:
    done = CliRunner().invoke(radar_app, [str(a) for a in arguments], input=given)
    assert done.exit_code == code, (done.stdout, done.stderr, done.exception)
    return done.stdout, done.stderr


def test_decoding_prints_a_summary_and_writes_points(capture: Path, tmp_path: Path) -> None:
    table = tmp_path / 'points.csv'
    summary = json.loads(run('decode', capture, '--points', table)[0])
    assert (summary['frames'], summary['points'], summary['points_rejected']) == (4, 8, 0)
    assert len(table.read_text().splitlines()) == 9
    summary = json.loads(run('decode', capture, '--cfg', CFG)[0])
    assert (summary['frames'], summary['points'], summary['points_rejected']) == (4, 4, 4)


def test_what_cannot_be_decoded_is_one_sentence(capture: Path, tmp_path: Path) -> None:
    out, err = run('decode', capture, '--cfg', capture, code=1)
    assert out == ''
    assert err.startswith(f'mmedge: {capture} line 1: ')
    assert err.count('\n') == 1
    _, err = run('decode', capture, '--points', tmp_path / 'no/points.csv', code=1)
    assert 'cannot write the points' in err


def test_checking_prints_what_a_radar_measures(tmp_path: Path) -> None:
    measured = json.loads(run('check', CFG)[0])
    assert measured['dialect'] == 'SDK 3'
    assert measured['max_range_m'] == pytest.approx(33.31, abs=0.01)
    busy = tmp_path / 'busy.cfg'
    text = CFG.read_text().replace('guiMonitor -1 1 0 0 0 0 1', 'guiMonitor -1 0 1 1 1 1 1')
    busy.write_text(text)
    _, err = run('check', busy)
    assert 'guiMonitor sends no points' in err
    busy.write_text(text.replace('frameCfg 0 2', 'frameCfg 0 9'))
    assert 'no chirpCfg describes chirp 3' in run('check', busy, code=1)[1]


def test_a_simulated_board_names_its_ports_and_obeys(capture: Path, tmp_path: Path) -> None:
    folder = tmp_path / 'ports'
    out, err = run('simulate-board', capture, '--out', folder, given='reset\nfly\nquit\n')
    assert json.loads(out) == {'command': str(folder / 'command'), 'data': str(folder / 'data')}
    assert 'done: reset' in err
    assert "no order 'fly'" in err
    assert list(folder.iterdir()) == []
    empty = tmp_path / 'empty.dat'
    empty.write_bytes(b'')
    assert 'without a packet' in run('simulate-board', empty, code=1)[1]

"""The page of `mmedge doctor`, its exit status, and a graph that cannot be looked at."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mmedge_ros.commands import doctor
from mmedge_ros.commands.main import app
from mmedge_ros.preflight.finding import Finding, note, ok, wrong

FOUND = {
    'machine': [ok('memory', '4 GB'), note('disk', '\x1b[31m[b]nearly full', 'make room')],
    'USB': [wrong('radar', 'permission denied', 'log in again')],
}


def run(monkeypatch: pytest.MonkeyPatch, found: dict[str, list[Finding]], *words: str) -> Result:
    monkeypatch.setattr(doctor, 'examined', lambda *_: found)
    environment = {'NO_COLOR': '1', 'COLUMNS': '120', 'TERM': 'dumb'}
    return CliRunner().invoke(app, ['doctor', *words], env=environment)


def test_each_finding_has_a_line_and_its_remedy_below(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, FOUND)
    lines = [' '.join(line.split()) for line in result.stdout.splitlines() if line.strip()]
    assert lines == [
        'machine',
        'ok memory 4 GB',
        'note disk \N{REPLACEMENT CHARACTER}[31m[b]nearly full',
        '\N{RIGHTWARDS ARROW} make room',
        'USB',
        'wrong radar permission denied',
        '\N{RIGHTWARDS ARROW} log in again',
        '1 wrong, 1 to note',
    ]
    assert result.exit_code == 1


def test_notes_alone_stop_no_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, {'machine': FOUND['machine']}, '--json')
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert (report['wrong'], report['notes']) == (0, 1)
    assert report['sections']['machine'][0] == {
        'subject': 'memory',
        'state': 'ok',
        'words': '4 GB',
        'remedy': '',
    }


def test_a_file_that_holds_no_transforms_is_an_error_and_no_page(tmp_path: Path) -> None:
    path = tmp_path / 'rig.yaml'
    path.write_text('[1, 2]')
    result = CliRunner().invoke(app, ['doctor', '--extrinsics', str(path)])
    assert result.exit_code == 1
    assert 'rig.yaml' in result.stderr
    assert result.stdout == ''


@pytest.mark.parametrize(
    ('program', 'words'),
    [
        ('echo oh >&2; echo no rclpy >&2; exit 3', 'cannot be looked at: no rclpy'),
        ('exit 3', 'exit code 3'),
        ('kill -SEGV $$', 'exit code -11'),
        ('echo "[1, 2"', 'cannot be looked at'),
        ('echo "[1, 2]"', 'cannot be looked at'),
        ('exec sleep 60', 'no answer within 0 s'),
    ],
)
def test_a_middleware_that_crashes_hangs_or_talks_nonsense_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    python = tmp_path / 'python'
    python.write_text(f'#!/bin/sh\n{program}\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(python))
    reason = doctor.look_at_graph(['', '', ''], 5.0 if 'sleep' not in program else 0.2)
    assert isinstance(reason, str)
    assert words in reason


def test_without_ros_everything_else_is_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    known = doctor.importlib.util.find_spec
    monkeypatch.setattr(
        doctor.importlib.util, 'find_spec', lambda name: None if name == 'rclpy' else known(name)
    )
    found = doctor.examined(['', '', ''], [], '/no/such.onnx', Path('/no/profile.yaml'))
    assert {'machine', 'software', 'USB', 'models', 'topics'} <= found.keys()
    assert 'no ROS 2' in found['topics'][0].words
    assert any('rclpy is not installed' in f.words for f in found['software'])

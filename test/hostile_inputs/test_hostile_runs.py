"""The command as its user meets it: exit codes, and what is on which stream."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import bag_fixtures as flight
import pytest

ROOT = Path(__file__).parents[2]
REPORT_FILES = {'report.json', 'report.html', 'decisions.jsonl'}


@pytest.fixture(scope='module')
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return flight.write_bag(tmp_path_factory.mktemp('recording') / 'bag')


def mmedge(
    *arguments: object, limit: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command; whatever happens, nobody is shown a traceback."""
    command = [sys.executable, '-m', 'mmedge_ros.commands.main', 'replay', *map(str, arguments)]
    environment = {**os.environ, 'PYTHONPATH': str(ROOT)}
    done = subprocess.run(
        command,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
    )
    assert 'Traceback' not in done.stderr, done.stderr
    return done


def small_files() -> None:
    """A disk that is full after the first 20 kB of a file."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


def test_a_sound_replay_prints_the_report_and_nothing_else(
    bag: Path, detector: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'report'
    done = mmedge(bag, '--out', out, '--detector', detector)
    assert (done.returncode, done.stdout) == (0, f'{out}/report.html\n')


def test_a_recording_that_cannot_be_read_ends_with_one_sentence_and_exit_code_1(
    tmp_path: Path, detector: Path
) -> None:
    file = tmp_path / 'broken.mcap'
    file.write_bytes(b'\x89MCAP0\r\n' + bytes(100))
    done = mmedge(file, '--out', tmp_path / 'report', '--detector', detector)
    assert (done.returncode, done.stdout) == (1, '')
    (said,) = [line for line in done.stderr.splitlines() if 'starting' not in line]
    assert said.startswith(f'mmedge: {file} holds no messages')


@pytest.mark.parametrize(
    'arguments',
    [
        ['/nowhere'],
        ['{bag}', '--frames', '9:3'],
        ['{bag}', '--frames', '1' * 5000 + ':'],
        ['{bag}', '--frames', '\u00b2:3'],
        ['{bag}', '--rate', '2'],
        ['{bag}', '--rate', 'nan', '--live'],
        ['{bag}', '--params', '/nowhere.yaml'],
    ],
    ids=['bag', 'frames_end', 'frames_long', 'frames_digit', 'rate', 'rate_nan', 'params'],
)
def test_a_wrong_use_ends_with_exit_code_2(bag: Path, arguments: list[str]) -> None:
    done = mmedge(*(argument.format(bag=bag) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, '')
    assert 'Usage: mmedge replay' in done.stderr


def test_a_disk_that_fills_leaves_the_earlier_report_whole(
    bag: Path, detector: Path, tmp_path: Path
) -> None:
    out = tmp_path / 'report'
    arguments = (bag, '--out', out, '--detector', detector)
    assert mmedge(*arguments).returncode == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert before.keys() > REPORT_FILES
    done = mmedge(*arguments, limit=small_files)
    assert done.returncode == 1
    assert 'cannot write the report' in done.stderr
    assert 'File too large' in done.stderr
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before

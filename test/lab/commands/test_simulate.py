"""`mmedge simulate` from the command line to the recording."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made_flight import sensors
from typer.testing import CliRunner, Result

from mmedge_lab.simulation import flight as flight_module
from mmedge_lab.simulation import standard_sets
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description
from mmedge_lab.simulation.flight_set import PlannedFlight
from mmedge_ros.commands.main import app
from mmedge_ros.replay.bag import Bag

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: object) -> Result:
    environment = {'NO_COLOR': '1', 'COLUMNS': '200', 'TERM': 'dumb'}
    words = ['simulate', *map(str, arguments)]
    return CliRunner().invoke(app, words, prog_name='mmedge', env=environment)


def one_line(text: str) -> str:
    return ' '.join(text.split())


@pytest.fixture
def grey(monkeypatch: pytest.MonkeyPatch) -> None:
    """A camera that costs nothing, for what is not about pictures."""
    monkeypatch.setattr(flight_module, 'standard_sensors', sensors)


@pytest.mark.usefixtures('grey')
class TestOneFlight:
    def test_the_path_and_nothing_else_goes_to_standard_output(self, tmp_path: Path) -> None:
        out = tmp_path / 'new' / 'flight'
        result = run(out, '--scenario', 'yard_dusk_near', '--seconds', 0.5, '--seed', 9)
        assert result.exit_code == 0
        assert result.stdout == f'{out}\n'
        assert 'flight' in result.stderr
        assert read_description(out) == FlightDescription('yard_dusk_near', 9, 0.5)


def test_a_trace_has_no_sensors_and_is_never_taken_for_the_flight(tmp_path: Path) -> None:
    out = tmp_path / 'flight'
    result = run(out, '--seconds', 0.5, '--trace-only')
    assert result.exit_code == 0
    assert f'trace:={out}' in one_line(result.stderr)
    with Bag(out) as bag:
        assert {topic.name for topic in bag.topics} == {'/battery_state', '/system_state'}
    wanted = FlightDescription('park_day_middle', 1, 0.5)
    assert read_description(out) == replace(wanted, trace_only=True) != wanted


def test_a_patrol_says_so_in_its_description(tmp_path: Path, grey: None) -> None:
    out = tmp_path / 'flight'
    assert run(out, '--seconds', 0.5, '--patrol').exit_code == 0
    wanted = FlightDescription('park_day_middle', 1, 0.5)
    assert read_description(out) == replace(wanted, patrol=True) != wanted


class TestRefusals:
    @pytest.mark.parametrize(
        ('arguments', 'words'),
        [
            (['--scenario', 'prak_day_far'], "unknown scenario 'prak_day_far'; the nearest is"),
            (['--seconds', '0'], 'must last 0.5 to 3600 s'),
            (['--seconds', 'nan'], 'must last 0.5 to 3600 s'),
            (['--seconds', '1e12'], 'must last 0.5 to 3600 s'),
            (['--seed', '-1'], 'seed -1'),
            (['--set', 'tset'], "unknown standard set 'tset'; the nearest is 'test'"),
        ],
    )
    def test_what_cannot_be_flown_is_one_sentence(
        self, arguments: list[str], words: str, tmp_path: Path
    ) -> None:
        result = run(tmp_path / 'f', *arguments)
        assert result.exit_code == 1
        assert result.stdout == ''
        assert words in one_line(result.stderr)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ('arguments', 'words'),
        [
            ([], 'name the folder'),
            (['f', '--set', 'test', '--seed', '3'], '--set decides'),
            (['f', '--seconds', 'long'], "'--seconds'"),
            (['f', '--seed', '1.5'], "'--seed'"),
            (['f', '--jobs', '2'], '--jobs and --first belong to --set'),
            (['f', '--jobs', '-1'], "'--jobs'"),
        ],
    )
    def test_what_makes_no_sense_is_a_usage_error(
        self, arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        result = run(*arguments)
        assert result.exit_code == 2
        assert words in one_line(result.stderr)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_of_somebody_else_stays_as_it_is(self, tmp_path: Path) -> None:
        (tmp_path / 'thesis.tex').write_text('years')
        result = run(tmp_path)
        assert result.exit_code == 1
        assert 'name another folder' in one_line(result.stderr)
        assert (tmp_path / 'thesis.tex').read_text() == 'years'


def test_a_set_prints_its_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grey: None
) -> None:
    flights = (
        PlannedFlight('a', 'park_day_near', 1, 0.5),
        PlannedFlight('b', 'park_day_near', 2, 0.5),
    )
    monkeypatch.setattr(standard_sets, 'standard_set', lambda name: flights)
    for _ in range(2):
        result = run(tmp_path, '--set', 'test')
        assert result.exit_code == 0
        assert result.stdout.split() == [str(tmp_path / 'a'), str(tmp_path / 'b')]


@pytest.mark.parametrize(('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize('lines', [1, 2], ids=['as it begins', 'at work'])
def test_a_stopped_command_leaves_nothing(
    number: signal.Signals, code: int, lines: int, tmp_path: Path
) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            '-m',
            'mmedge_ros.commands.main',
            'simulate',
            str(tmp_path / 'f'),
            '--seconds=60',
        ],
        env={**os.environ, 'PYTHONPATH': str(ROOT), 'NO_COLOR': '1'},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for _ in range(lines):
        process.stderr.readline()
    # As a terminal does it: to every process of the command.
    os.killpg(process.pid, number)
    # The output ends when the last process has: each holds its other end.
    output, messages = process.communicate(timeout=60)
    assert process.returncode == code
    assert output == ''
    assert messages.splitlines()[-1] == 'stopped'
    assert 'Traceback' not in messages
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures('undrawn')
def test_a_simulated_flight_replays(tmp_path: Path, data_folder: Path) -> None:
    flight, report = tmp_path / 'flight', tmp_path / 'report'
    assert run(flight, '--seconds', 1.5, '--scenario', 'meadow_day_near').exit_code == 0
    arguments = ['replay', str(flight), '--out', str(report)]
    arguments += ['--detector', str(data_folder / 'models' / 'yolox_nano.onnx')]
    result = CliRunner().invoke(app, arguments, prog_name='mmedge')
    assert result.exit_code == 0, result.stderr
    assert 'note:' not in result.stderr
    assert (report / 'report.json').is_file()

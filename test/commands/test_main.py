"""The command line: exit codes, and what goes where."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ros_installed import needs_ros
from typer.testing import CliRunner, Result

from mmedge_ros.commands import replay_run
from mmedge_ros.commands.display import say
from mmedge_ros.commands.laboratory import REMEDY
from mmedge_ros.commands.main import app
from mmedge_ros.commands.replay_run import ReplayRequest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ('demo', 'replay', 'simulate', 'record', 'up', 'ask', 'lab evaluate-bundle')


def run(*arguments: str) -> Result:
    """Run a command inside the test process."""
    environment = {'NO_COLOR': '1', 'COLUMNS': '200', 'TERM': 'dumb'}
    return CliRunner().invoke(app, list(arguments), prog_name='mmedge', env=environment)


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = {**os.environ, 'PYTHONPATH': str(ROOT), 'NO_COLOR': '1', 'COLUMNS': '200'}
    environment.pop('MMEDGE_DATA', None)
    return subprocess.Popen(
        [sys.executable, '-m', 'mmedge_ros.commands.main', *arguments],
        env=environment | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    output, messages = process.communicate(timeout=120)
    return process.returncode, output, messages


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Something that exists; usage is checked before it is read."""
    path = tmp_path / 'bag'
    path.mkdir()
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ReplayRequest]:
    """What would have been replayed."""
    requests: list[ReplayRequest] = []
    monkeypatch.setattr(replay_run, 'run_replay', requests.append)
    return requests


class TestUsage:
    def test_without_a_command_the_commands_are_listed(self) -> None:
        result = run()
        assert result.exit_code in (0, 2)  # 2 since click 8.2
        listed = result.output
        assert all(name.split()[0] in listed for name in COMMANDS)
        assert 'Usage: mmedge ' in listed

    @pytest.mark.parametrize('command', COMMANDS)
    def test_every_command_and_option_is_described(self, command: str) -> None:
        result = run(*command.split(), '--help')
        assert result.exit_code == 0
        assert f'Usage: mmedge {command} ' in result.stdout
        options = [line for line in result.stdout.splitlines() if '--' in line]
        assert all(len(line.split('--', 1)[1].strip(' │').split()) >= 3 for line in options)

    @pytest.mark.parametrize(
        ('arguments', 'words'),
        [
            (['fly'], "'fly'"),
            (['replay'], 'RECORDING'),
            (['replay', '/no/such/bag'], '/no/such/bag'),
            (['replay', '{bag}', '--speed', '2'], '--speed'),
            (['demo', '--bag', '{bag}', '--seed', '2'], '--bag'),
            (['up', '--bag', '{bag}', '--drivers'], '--bag'),
            (['up', '--simulated-radar', '/no/such/file'], '/no/such/file'),
            (['replay', '{bag}', '--rate', '2'], '--live'),
            (['replay', '{bag}', '--live', '--rate', 'nan'], '--rate'),
            (['replay', '{bag}', '--params', '/no/such.yaml'], '/no/such.yaml'),
            (['replay', '{bag}', '--clock'], '--live'),
            (['replay', '{bag}', '--network'], '--live'),
            (['replay', '{bag}', '--view'], '--live'),
            (['replay', '{bag}', '--live', '--rate', '0'], '0.05'),
            (['replay', '{bag}', '--live', '--rate', '21'], '20'),
            (['replay', '{bag}', '--live', '--rate', 'fast'], '--rate'),
            (['replay', '{bag}', '--live', '--profile', '{file}'], '--profile'),
            (['replay', '{bag}', '--reuse', '0'], '--reuse'),
            (['replay', '{bag}', '--reuse', '11'], '10'),
            (['replay', '{bag}', '--live', '--optimise', '--reuse', '2'], '--optimise'),
            (['up', '--bag', '/no/such/bag'], '/no/such/bag'),
            (['up', '--rate', '2'], '--bag'),
            (['up', '--loop'], '--bag'),
            (['up', '--image-transport', 'theora'], 'compressed'),
            (['up', '--params', '/no/such.yaml'], '/no/such.yaml'),
        ],
    )
    def test_wrong_usage_is_named_and_exits_2(
        self, bag: Path, tmp_path: Path, arguments: list[str], words: str
    ) -> None:
        file = tmp_path / 'a.yaml'
        file.touch()
        result = run(*(a.format(bag=bag, file=file) for a in arguments))
        assert result.exit_code == 2, result.output
        assert words in result.stderr.lower() or words in result.stderr
        assert result.stdout == ''

    def test_options_arrive_where_they_belong(
        self, bag: Path, tmp_path: Path, asked: list[ReplayRequest]
    ) -> None:
        options = ['--live', '--rate', '0.5', '--clock', '--camera', '/c', '--radar', '/r']
        run('replay', str(bag), *options, '--out', str(tmp_path / 'out'))
        (request,) = asked
        assert (request.bag, request.out) == (str(bag), tmp_path / 'out')
        assert (request.live, request.rate, request.clock) == (True, 0.5, True)
        assert (request.camera, request.radar) == ('/c', '/r')


class TestFailures:
    @needs_ros
    def test_a_demo_of_an_unknown_scenario_names_the_nearest(self, tmp_path: Path) -> None:
        result = run('demo', '--scenario', 'park_day_nearby', '--out', str(tmp_path / 'out'))
        assert (result.exit_code, result.stdout) == (1, '')
        assert "'park_day_near'" in result.stderr
        assert not (tmp_path / 'out').exists()

    @pytest.mark.parametrize(
        'live',
        [pytest.param([], id='offline'), pytest.param(['--live'], marks=needs_ros, id='live')],
    )
    def test_a_folder_that_is_no_recording_is_one_sentence(
        self, bag: Path, tmp_path: Path, live: list[str]
    ) -> None:
        result = run('replay', str(bag), *live, '--out', str(tmp_path / 'out'))
        assert (result.exit_code, result.stdout) == (1, '')
        last = result.stderr.splitlines()[-1]
        assert last.startswith('mmedge: ')
        assert str(bag) in last

    @needs_ros
    def test_a_place_that_cannot_be_written_is_told_at_once(self, tmp_path: Path) -> None:
        (tmp_path / 'file').write_text('in the way')
        place = tmp_path / 'file' / 'out'
        result = run('up', '--detector', 'flight_people', '--logs', str(place))
        assert (result.exit_code, result.stdout) == (1, '')
        assert str(place) in result.stderr.splitlines()[-1]

    def test_without_ros_a_live_replay_says_what_is_missing(
        self, bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, 'mmedge_ros.ros.sessions.live_session', None)
        result = run('replay', str(bag), '--live', '--out', str(tmp_path / 'out'))
        assert (result.exit_code, result.stdout) == (1, '')
        assert 'needs ROS 2' in result.stderr

    def test_a_defect_is_not_hidden(self, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def defective(_: ReplayRequest) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(replay_run, 'run_replay', defective)
        assert isinstance(run('replay', str(bag)).exception, ZeroDivisionError)


class TestSignals:
    """An offline replay of a recording that never ends stands for anything that takes long."""

    @pytest.fixture
    def endless(self, tmp_path: Path) -> Path:
        path = tmp_path / 'endless.mcap'
        os.mkfifo(path)
        return path

    @pytest.mark.parametrize(
        ('number', 'code'), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
    )
    def test_a_signal_ends_a_command_with_one_word(
        self, endless: Path, tmp_path: Path, number: signal.Signals, code: int
    ) -> None:
        process = start('replay', str(endless), '--out', str(tmp_path / 'out'))
        assert process.stderr is not None
        seen = process.stderr.readline()
        assert 'endless.mcap: starting' in seen
        process.send_signal(number)
        found, output, messages = ended(process)
        assert (found, output) == (code, '')
        assert messages.splitlines()[-1] == 'stopped'
        assert 'Traceback' not in messages


class TestDisplay:
    def test_what_is_said_is_printed_as_it_is(self, capsys: pytest.CaptureFixture[str]) -> None:
        sentence = 'logs: /tmp/[red]/:warning:/' + 40 * 'long/'
        say(sentence)
        assert capsys.readouterr() == ('', f'{sentence}\n')


@pytest.mark.parametrize('words', [['demo', '--out', 'x'], ['lab', 'bench', 'reuse', '--quick']])
def test_without_the_laboratory_its_commands_say_so_whatever_their_options(
    words: list[str],
) -> None:
    code = (
        'import importlib.metadata, sys\n'
        'importlib.metadata.entry_points = lambda **_: ()\n'
        'from mmedge_ros.commands.main import main\n'
        f'sys.argv = {["mmedge", *words]}\n'
        'main()'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.strip() == f'mmedge: {REMEDY}'

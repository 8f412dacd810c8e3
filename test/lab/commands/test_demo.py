"""`mmedge demo` up to where the nodes start."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made_flight import sensors
from hand_made_looks import HEADER, seen
from hand_made_moments import memory_of
from typer.testing import CliRunner, Result

from mmedge_lab.commands.demo import remember
from mmedge_lab.simulation import flight as flight_module
from mmedge_lab.simulation.flight_folder import FlightDescription, read_description
from mmedge_ros.commands import replay_run
from mmedge_ros.commands.main import app
from mmedge_ros.commands.replay_run import ReplayRequest
from mmedge_ros.memory import FlightMemoryError, build
from mmedge_ros.memory.build import BuiltMemory
from mmedge_ros.memory.store import memory_folder
from mmedge_ros.report.report import MEMORY_MARK
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions import up_session


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[ReplayRequest]:
    """What would be played live; the flights' camera costs nothing."""
    requests: list[ReplayRequest] = []
    monkeypatch.setattr(flight_module, 'standard_sensors', sensors)
    monkeypatch.setattr(replay_run, 'run_replay', requests.append)
    monkeypatch.setattr('mmedge_lab.commands.demo.remember', lambda *_: None)
    return requests


def run(*arguments: object) -> Result:
    words = ['demo', *map(str, arguments)]
    return CliRunner().invoke(app, words, prog_name='mmedge', env={'NO_COLOR': '1'})


def test_the_flight_alone_is_what_the_demo_plays_afterwards(
    tmp_path: Path, played: list[ReplayRequest]
) -> None:
    options = ['--out', tmp_path / 'out', '--seconds', 0.5, '--seed', 4]
    assert run(*options, '--flight-only').exit_code == 0
    assert played == []
    flight = tmp_path / 'out/flight'
    assert read_description(flight) == FlightDescription('street_day_middle', 4, 0.5)
    written = (flight / 'flight.yaml').stat().st_mtime_ns
    result = run(*options)
    assert (result.exit_code, 'simulating' in result.stderr) == (0, False)
    assert [request.bag for request in played] == [str(flight)]
    assert (flight / 'flight.yaml').stat().st_mtime_ns == written


def test_what_a_simulated_flight_saw_is_remembered_unless_no_pictures_are_wanted(
    tmp_path: Path, played: list[ReplayRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered: list[tuple[Path, Path]] = []
    monkeypatch.setattr(
        'mmedge_lab.commands.demo.remember', lambda *places: remembered.append(places)
    )
    out = tmp_path / 'out'
    assert run('--bag', tmp_path, '--out', out).exit_code == 0
    assert run('--seconds', 0.5, '--no-pictures', '--out', out).exit_code == 0
    assert remembered == []
    assert run('--seconds', 0.5, '--out', out).exit_code == 0
    assert remembered == [(out / 'flight', out)]


def test_the_report_leads_to_the_page_of_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def built(recording: str, **_: object) -> BuiltMemory:
        folder = memory_folder(recording)
        memory_of(folder, seen('person red', 1), header=HEADER).close()
        return BuiltMemory(folder, 1, 1, 0, ())

    monkeypatch.setattr(build, 'build_memory', built)
    (tmp_path / 'report.html').write_text(f'<p>above</p>{MEMORY_MARK}')
    remember(tmp_path / 'flight', tmp_path)
    assert './flight.memory/page.html' in (tmp_path / 'report.html').read_text()
    assert 'person 1' in (tmp_path / 'flight.memory/page.html').read_text()
    assert 'flight.memory/page.html' in capsys.readouterr().err


def test_a_flight_that_cannot_be_remembered_costs_a_note_and_no_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> BuiltMemory:
        raise FlightMemoryError('the disk is full')

    monkeypatch.setattr(build, 'build_memory', fails)
    remember(tmp_path / 'flight', tmp_path)
    assert 'not remembered: the disk is full' in capsys.readouterr().err


def test_with_a_view_the_flight_plays_on_after_the_report(
    tmp_path: Path, played: list[ReplayRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[GraphOptions] = []
    monkeypatch.setattr(up_session, 'run_up', lambda options, *_: again.append(options))
    monkeypatch.setattr('mmedge_lab.commands.demo.open_view', lambda wanted: 8123 * wanted)
    arguments = ['--bag', tmp_path, '--out', tmp_path / 'out']
    assert run(*arguments).exit_code == 0
    assert ([request.view for request in played], again) == ([0], [])
    assert run(*arguments, '--view').exit_code == 0
    assert played[-1].view == 8123
    (options,) = again
    assert (options.bag, options.loop, options.view) == (str(tmp_path), True, 8123)


def test_without_ros_the_demo_ends_before_anything_is_simulated(
    tmp_path: Path, played: list[ReplayRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('importlib.util.find_spec', lambda _: None)
    result = run('--out', tmp_path / 'out')
    assert (result.exit_code, played) == (1, [])
    assert 'docs/install.md' in result.stderr
    assert not (tmp_path / 'out').exists()

"""`mmedge lab train gate`: from sets of flights to a bundle with a certified gate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app
from mmedge_lab.training import gate_session
from mmedge_lab.training.gate_training import GateFit
from mmedge_lab.training.gate_trials import gate_trials, rival_trials
from mmedge_lab.training.gates.gate_report import THINNED
from mmedge_ros.skipping.bundle_gate import bundle_gate
from mmedge_ros.skipping.gate import Gate
from mmedge_ros.skipping.gate_features import FIELDS


def run(place: Path, *arguments: str | Path) -> Result:
    known = ('--train', place / 'samples', '--calibration', place / 'calibration')
    paths = ('--out', place / 'out', '--report', place / 'report', '--jobs', '1')
    given = ['gate', place / 'tiny', *known, *paths, '--level', 'small', *arguments]
    return CliRunner().invoke(train_app, [str(argument) for argument in given])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / 'tiny')
    for name in ('samples', 'calibration'):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_help_names_the_options() -> None:
    done = CliRunner().invoke(train_app, ['gate', '--help'], env={'COLUMNS': '120'})
    assert done.exit_code == 0
    for option in ('--train', '--calibration', '--test', '--delta', '--report'):
        assert option in done.stdout


def test_sets_without_flights_are_refused(place: Path) -> None:
    done = run(place)
    assert done.exit_code == 1
    assert 'holds no flights' in done.stderr
    assert not (place / 'out').exists()


def test_what_is_there_already_is_left_alone(place: Path) -> None:
    (place / 'out').mkdir()
    (place / 'out/mine').touch()
    done = run(place)
    assert done.exit_code == 1
    assert 'exists already' in done.stderr


def test_an_unknown_level_is_told(place: Path) -> None:
    done = run(place, '--level', 'giant')
    assert done.exit_code == 1
    assert "no level 'giant'" in done.stderr


def test_networks_that_are_not_there_are_told(place: Path) -> None:
    done = run(place, '--strategy', 'feature')
    assert done.exit_code == 1
    assert 'no fusion networks' in done.stderr


def test_a_flight_in_two_sets_is_refused(place: Path) -> None:
    for name in ('samples', 'calibration'):
        write_short_flights(place / name, 1, 0.5)
    done = run(place)
    assert done.exit_code == 1
    assert 'is the same flight as' in done.stderr


def test_too_few_flights_certify_nothing(place: Path) -> None:
    write_short_flights(place / 'samples', 1, 0.5)
    write_short_flights(place / 'calibration', 2, 0.7)
    done = run(place)
    assert done.exit_code == 1
    assert 'holds flights of 2 seeds' in done.stderr


@pytest.fixture
def always_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained says yes to everything, and little is tried."""
    nothing, count = np.zeros(1), len(FIELDS)
    yes = Gate(np.zeros(count), np.ones(count), np.zeros((count, 1)), nothing, nothing, 5.0)
    fit = GateFit(yes, 5, 100, 3, 0.4, 0.6)
    monkeypatch.setattr(gate_session, 'make_gate', lambda *_: fit)
    monkeypatch.setattr(gate_session, 'gate_trials', lambda gate: gate_trials(gate, (0.9,)))
    rivals = [next(trial for trial in rival_trials(yes) if trial.rule == THINNED)]
    monkeypatch.setattr(gate_session, 'rival_trials', lambda _: rivals)


@pytest.mark.usefixtures('always_sure')
def test_a_certified_gate_is_in_a_copy_of_the_bundle(place: Path) -> None:
    write_short_flights(place / 'samples', 1, 0.5)
    write_short_flights(place / 'calibration', 10, 1.3)
    refused = run(place, '--delta', '0.001')
    assert refused.exit_code == 1
    assert 'no bundle was written' in refused.stderr
    assert not (place / 'out').exists()
    assert (place / 'report/report.html').is_file()
    # What was replayed is kept: even flights that can no longer be read are known.
    write_short_flights(place / 'shifted', 2, 2.5)
    done = run(place, '--delta', '0.5', '--shifted', place / 'shifted')
    assert done.exit_code == 0, done.stderr
    gate = bundle_gate(place / 'out')
    assert gate is not None
    certified = gate.certified(0.5)
    assert certified is not None
    assert certified.threshold == pytest.approx(0.9)
    assert gate.slow == ('camera',)
    assert bundle_gate(place / 'tiny') is None
    assert done.stdout.splitlines()[-1] == str(place / 'out')
    report = json.loads((place / 'report/report.json').read_text())
    assert report['certified']
    assert report['calibration_flights'] == 10
    assert {row['set']: row['flights'] for row in report['drift']} == {
        'calibration': 10,
        'shifted': 2,
    }
    assert sum(row['audits'] for row in report['drift']) > 0
    assert not list(place.glob('.out*'))

"""`mmedge lab evaluate --counts` and `mmedge lab train counts`: observed once, and judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mmedge_lab.judging import EvaluationError, count_ranges
from mmedge_lab.judging.count_cases import count_tasks, observe, read_observed
from mmedge_lab.simulation.flight import FlightDescription, kept_flight
from mmedge_ros.commands.main import app

ROOT = Path(__file__).resolve().parents[3]
BUNDLE, PROFILE = ROOT / 'models' / 'flight_people', ROOT / 'config' / 'profiles' / 'default.yaml'
FLIGHT = 'street_day_near_5'


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('set')
    kept_flight(folder / FLIGHT, FlightDescription('street_day_near', 5, 0.8), lambda _: None)
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ['lab', *map(str, arguments)], env={'NO_COLOR': '1'})


def test_people_in_flights_are_counted_beside_rivals(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_ranges, 'SECONDS', (0.6,))
    counted = ('evaluate', flights, '--counts', '--profile', PROFILE, '--jobs', 1)
    result = run(*counted, '--out', tmp_path)
    assert result.exit_code == 0, result.output
    report_file = tmp_path / 'counts' / 'report.json'
    assert result.stdout.splitlines()[-1] == str(report_file)
    report = json.loads(report_file.read_text())
    assert (report['flights'], report['windows']) == ([FLIGHT], 1)
    assert report['people']['most'] >= 1
    rows = report['rows']
    assert set(rows) == {'range', 'median_fixed', 'ids', 'groups'}
    assert report['with_true_tracks']['groups']['exact']['value'] == 1.0
    assert rows['ids']['width']['value'] == 0.0
    assert 'only 1 seeds' in ' '.join(report['problems'])
    for verdict in report['verdicts']:
        assert f'{verdict["verdict"]}: {verdict["target"]}' in result.stderr
    (task,) = count_tasks([(FLIGHT, flights / FLIGHT)], BUNDLE, str(PROFILE), tmp_path / 'counts')
    assert task.pending() == ()
    seen = read_observed(task)
    assert len(seen.observations.stamps_ns) > 4
    assert any(len(track.looks) for track in seen.observations.tracks)
    assert set(seen.owners) == {track.id for track in seen.observations.tracks}
    assert set(seen.owners.values()) & set(seen.sights[:, 1].tolist())
    assert seen.observations.drone is not None


def test_a_flight_that_was_not_simulated_cannot_be_counted(flights: Path, tmp_path: Path) -> None:
    (task,) = count_tasks([('empty', flights)], BUNDLE, '', tmp_path)
    with pytest.raises(EvaluationError, match='no flight of `mmedge simulate`'):
        observe(task, lambda _: None)
    with pytest.raises(EvaluationError, match='cannot be read'):
        read_observed(task)


def test_counts_judge_no_policies(flights: Path) -> None:
    result = run('evaluate', flights, '--counts', '--policies', 'ours')
    assert result.exit_code == 2
    assert 'judges no policies' in ' '.join(result.stderr.split())
    assert run('evaluate', flights, '--counts', '--memory').exit_code == 2


def test_counting_is_not_learned_from_nothing(tmp_path: Path) -> None:
    (tmp_path / 'set').mkdir()
    result = run('train', 'counts', BUNDLE, '--train', tmp_path / 'set', '--out', tmp_path / 'out')
    assert result.exit_code == 1
    assert 'holds no flights' in result.stderr

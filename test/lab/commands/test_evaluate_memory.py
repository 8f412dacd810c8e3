"""`mmedge lab evaluate --memory`: flights are remembered once, judged, and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mmedge_lab.judging import EvaluationError, memory_flights, memory_truth
from mmedge_lab.judging.memory_flights import memory_tasks, read_remembered, remember
from mmedge_lab.simulation.flight import FlightDescription, kept_flight
from mmedge_ros.commands.main import app

BUNDLE = Path(__file__).resolve().parents[3] / 'models' / 'flight_people'
FLIGHT = 'street_day_near_5'


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('set')
    kept_flight(folder / FLIGHT, FlightDescription('street_day_near', 5, 0.6), lambda _: None)
    return folder


def run(*arguments: object) -> Result:
    words = ['lab', 'evaluate', *map(str, arguments)]
    return CliRunner().invoke(app, words, env={'NO_COLOR': '1'})


def test_flights_are_remembered_and_asked_for_what_they_saw(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One flight is no gallery in which three in a hundred are anybody.
    monkeypatch.setattr(memory_truth.questions, '__defaults__', (0.5,))
    # A process of its own takes seconds to begin, and only its memory is measured there.
    monkeypatch.setattr(memory_flights, 'value_within', lambda _name, _s, work, _expected: work())
    result = run(flights, '--memory', '--jobs', 1, '--out', tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(tmp_path / 'memory' / 'report.json')
    report = json.loads((tmp_path / 'memory' / 'report.json').read_text())
    assert report['flights'] == [FLIGHT]
    rows = report['words']
    exits = {'exit_1', 'exit_3', 'exit_4', 'exit_1, 10 refined', 'exit_1, 50 refined'}
    assert exits | {'picture', 'true_boxes', 'mean_colour', 'random'} <= set(rows)
    assert rows['exit_3']['hit_1']['value'] > rows['random']['hit_1']['value']
    assert rows['exit_3']['memory_more']['value'] == 0.0
    assert report['by_light']['day'] == rows['exit_3']
    assert report['scrubbing']['questions'] > 0
    costs = report['costs']
    assert costs['embedding_ms']['exit_1'] > 0.0
    assert costs['bytes_per_item'] > 100.0
    assert costs['views'] > 0 < costs['question_ms']
    assert 'nothing is asked by example' in result.stderr
    kept = memory_tasks(
        [(one, flights / one) for one in report['flights']], BUNDLE, tmp_path / 'memory'
    )
    assert [task.pending() for task in kept] == [()]


def test_a_flight_that_was_not_simulated_cannot_be_judged(flights: Path, tmp_path: Path) -> None:
    copy = tmp_path / 'renamed'
    copy.symlink_to(flights / FLIGHT)
    (task,) = memory_tasks([('renamed', copy)], BUNDLE, tmp_path / 'out')
    with pytest.raises(EvaluationError, match='no flight of `mmedge simulate`'):
        remember(task, lambda _: None)
    with pytest.raises(EvaluationError, match='cannot be read'):
        read_remembered(task)

"""`mmedge lab evaluate --questions`: flights are watched once, asked about, and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made_observations import STAMPS_NS, hovering, observed, walked
from typer.testing import CliRunner, Result

from mmedge_lab.judging import EvaluationError, question_accuracy, simulated_flight
from mmedge_lab.judging.question_accuracy import answer_flight, question_tasks
from mmedge_lab.simulation.flight import FlightDescription
from mmedge_ros.commands.main import app
from mmedge_ros.data_types import Box
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.questions.observed_flight import ObservedFlight
from mmedge_ros.records.ground_truth import GroundTruth, TrueObject, TrueScene

ROOT = Path(__file__).resolve().parents[3]
BUNDLE = ROOT / 'models' / 'flight_people'
PROFILE = ROOT / 'config' / 'profiles' / 'default.yaml'
PEOPLE = {7: np.array([12.0, 3.0, 0.0]), 8: np.array([9.0, -4.0, 0.0])}


def scene(stamp_ns: int) -> TrueScene:
    objects = tuple(
        TrueObject(number, 'person', Box(0.0, 0.0, 20.0, 60.0), 1.0, place, np.zeros(3))
        for number, place in PEOPLE.items()
    )
    return TrueScene(stamp_ns, 'odom', objects, ego=EgoState(stamp_ns, Transform.identity()))


class FakeRecording:
    def __init__(self, _path: Path) -> None: ...

    def __enter__(self) -> FakeRecording:
        return self

    def __exit__(self, *_: object) -> None: ...

    def truth(self) -> GroundTruth:
        return GroundTruth([scene(int(stamp_ns)) for stamp_ns in STAMPS_NS])


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set with one flight, whose people our tracks number otherwise and see half a metre off."""
    people = walked(1, place=(12.4, 3.0)), walked(2, place=(9.0, -4.4))
    seen = ObservedFlight(observed(*people, drone=hovering()), ('person', 'car', 'cyclist'), ())

    def in_turn(tasks: Any, evaluate: Any, *_: object) -> None:
        for task in tasks:
            evaluate(task, lambda _share: None)

    monkeypatch.setattr(question_accuracy, 'observe_flight', lambda *_: seen)
    monkeypatch.setattr(question_accuracy, 'Recording', FakeRecording)
    monkeypatch.setattr(
        simulated_flight,
        'read_description',
        lambda path: FlightDescription('street_day_near', 5, 10.0) if path.name == 'one' else None,
    )
    monkeypatch.setattr(question_accuracy, 'work_through', in_turn)
    for name in ('one', 'other'):
        (tmp_path / 'set' / name).mkdir(parents=True)
        (tmp_path / 'set' / name / f'{name}.mcap').write_bytes(b'')
    return tmp_path / 'set'


def run(*arguments: object) -> Result:
    words = ['lab', 'evaluate', *map(str, arguments)]
    return CliRunner().invoke(app, words, env={'NO_COLOR': '1'})


def test_a_flight_is_asked_about_with_our_tracks_and_with_true_ones(
    flights: Path, tmp_path: Path
) -> None:
    (task,) = question_tasks([('one', flights / 'one')], BUNDLE, '', tmp_path / 'out')
    assert task.pending() == ('one',)
    answer_flight(task, lambda _: None)
    assert task.pending() == ()
    rows = task.rows()
    assert rows
    assert all(row['true'] for row in rows), [row for row in rows if not row['true']]
    # The numbers in questions are those of our tracks.
    named = [row for row in rows if row['form'] == 'distance']
    assert named
    assert {row['question'].split()[4] for row in named} <= {'1', '2'}
    assert {row['objects'][0] for row in named} <= {7, 8}
    assert all(row['ours'] for row in named)


def test_a_flight_that_was_not_simulated_cannot_be_judged(flights: Path, tmp_path: Path) -> None:
    (task,) = question_tasks([('other', flights / 'other')], BUNDLE, '', tmp_path / 'out')
    with pytest.raises(EvaluationError, match='no flight of `mmedge simulate`'):
        answer_flight(task, lambda _: None)


def test_a_set_is_judged_into_a_report(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        'mmedge_lab.commands.evaluate._flights', lambda *_: (('one', flights / 'one'),)
    )
    result = run(flights, '--questions', '--out', tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == str(tmp_path / 'questions' / 'report.json')
    report = json.loads((tmp_path / 'questions' / 'report.json').read_text())
    assert report['command'] == f'mmedge lab evaluate {flights} --questions'
    assert report['all']['true']['value'] == 1.0
    for verdict in report['verdicts']:
        assert f'{verdict["verdict"]}: {verdict["target"]}' in result.stderr


def test_flights_are_replayed_with_the_times_of_a_profile_and_kept_apart_from_measured_ones(
    flights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    watch = question_accuracy.observe_flight

    def watched(*given: Any) -> ObservedFlight:
        used.append(given[-1])
        return watch(*given)

    monkeypatch.setattr(question_accuracy, 'observe_flight', watched)
    monkeypatch.setattr(
        'mmedge_lab.commands.evaluate._flights', lambda *_: (('one', flights / 'one'),)
    )
    kept = []
    for profile in ('', str(PROFILE)):
        options = ('--profile', profile) if profile else ()
        result = run(flights, '--questions', '--out', tmp_path, *options)
        assert result.exit_code == 0, result.output
        kept.append(json.loads((tmp_path / 'questions' / 'report.json').read_text())['profile'])
        (task,) = question_tasks(
            [('one', flights / 'one')], BUNDLE, profile, tmp_path / 'questions'
        )
        assert task.pending() == ()
    assert used == ['', str(PROFILE)]
    assert kept == ['', PROFILE.name]


@pytest.mark.parametrize('options', [('--memory',), ('--policies', 'ours'), ('--crops', '.')])
def test_what_others_have_is_refused(flights: Path, options: tuple[str, ...]) -> None:
    assert run(flights, '--questions', *options).exit_code == 2

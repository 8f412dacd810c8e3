"""`mmedge ask`: a recording is replayed once, and questions are answered with their evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_model_server import DONE, STREAM, Scripts, answered, listening, short_folder
from hand_made_looks import HEADER, seen
from hand_made_moments import memory_of
from hand_made_observations import BEGIN_NS, hovering, observed, walked
from typer.testing import CliRunner

from mmedge_ros.commands.main import app
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.memory.moment import Spot
from mmedge_ros.memory.store_file import FILE_NAME
from mmedge_ros.questions import observed_flight
from mmedge_ros.questions.selection import KnownFlight


@pytest.fixture
def flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording whose replay is put in by hand."""
    replays = []

    def replayed(recording: str, _detector: str, _on_share: object) -> KnownFlight:
        replays.append(recording)
        assert len(replays) == 1
        people = walked(1, velocity=(1.0, 0.0)), walked(2, place=(30.0, 5.0))
        return KnownFlight(
            observed(*people, drone=hovering()), labels=('person',), problems=('no radar',)
        )

    monkeypatch.setattr(observed_flight, 'observe_flight', replayed)
    (tmp_path / 'flight').mkdir()
    return tmp_path / 'flight'


def run(*words: object, typed: str = '') -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ['ask', *map(str, words)], typed, env={'NO_COLOR': '1'})
    return result.exit_code, result.stdout, result.stderr


def test_an_answer_is_a_sentence_and_a_table_of_what_it_rests_on(flight: Path) -> None:
    code, out, err = run('--flight', flight, 'was anybody within 15 m of the drone?')
    assert code == 0
    assert out.startswith('Yes: track 1 within 15 m of the drone, from 0.0 to 5.0 s')
    assert ['1', 'person', '0.0', 'to', '5.0', '10.0', '+-', '0.5', '0.0', '-'] in [
        line.split() for line in out.splitlines()
    ]
    assert 'note: no radar' in err


def test_several_questions_cost_one_replay_and_are_answered_as_json(flight: Path) -> None:
    questions = ('how many people at 2 s', 'how fast is track 1', 'how many happy people')
    code, out, _ = run('--flight', flight, '--json', *questions)
    assert code == 0
    first, second, third = json.loads(out)
    assert (first['value'], first['refused']) == (2, None)
    assert second['value'] == pytest.approx(1.0)
    assert second['evidence'][0]['track'] == 1
    assert 'happy' in third['refused']


def test_without_a_question_each_line_of_the_input_is_one(flight: Path) -> None:
    code, out, _ = run('--flight', flight, typed='who is there\n\nhow fast is track 1\n')
    assert code == 0
    assert out.startswith('person 1, person 2 at 10.0 s.')
    assert 'Track 1 (person) moved at 1.0 m/s at 10.0 s.' in out


def test_a_refused_question_ends_with_code_one_and_says_why(flight: Path) -> None:
    code, out, _ = run('--flight', flight, "'; DROP TABLE items; --")
    assert code == 1
    assert out.startswith('not answered: ')
    assert 'drop' in out


def test_the_memory_beside_the_recording_says_how_tracks_look(flight: Path) -> None:
    asked = ('--flight', flight, '--json', 'was anybody in blue there')
    assert 'memory build' in json.loads(run(*asked)[1])[0]['refused']


def test_looks_are_those_of_the_memory(flight: Path) -> None:
    view = seen('person blue', 7, BEGIN_NS / NS_PER_S + 2.0, position=Spot(12.0, 0.0, 0.0))
    memory_of(flight.with_name('flight.memory'), view, header=HEADER).close()
    (found,) = json.loads(run('--flight', flight, '--json', 'was anybody in blue there')[1])
    assert (found['value'], found['evidence'][0]['track']) == (True, 1)
    assert found['source'] == 'tracks and memory'


def test_a_damaged_memory_costs_the_looks_alone(flight: Path) -> None:
    folder = flight.with_name('flight.memory')
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(b'no memory at all')
    code, out, err = run('--flight', flight, '--json', 'how many people at 2 s')
    assert (code, json.loads(out)[0]['value']) == (0, 2)
    assert 'looks are not known' in err


def test_a_model_says_more_after_what_was_measured(flight: Path) -> None:
    scripts = Scripts([STREAM, answered('A man in red.', 1), DONE])
    with short_folder() as folder, listening(folder, scripts) as endpoint:
        code, out, _ = run('--flight', flight, '--model', f'unix:{endpoint.socket}', 'who is near')
    assert code == 0
    assert out.rstrip().endswith('the model says: A man in red.')
    assert 'who is near' in str(scripts.requests[0])


def test_where_the_model_fails_the_measured_answer_stays(flight: Path, tmp_path: Path) -> None:
    nobody = f'unix:{tmp_path}/no.sock'
    code, out, _ = run(
        *('--flight', flight, '--json', '--model', nobody, '--within', 2),
        'was anybody within 15 m of the drone?',
    )
    assert code == 0
    (answer,) = json.loads(out)
    assert answer['text'].startswith('Yes: track 1 within 15 m')
    assert answer['model'] is None
    assert 'no.sock' in answer['model_refused']


@pytest.mark.parametrize(
    ('words', 'reason'),
    [
        (('--model', 'http://example.org'), 'this machine'),
        (('--model', 'http://127.0.0.1', '--within', '0'), 'name 0 to 600 s'),
        (('--mmproj', __file__), 'goes with --model GGUF'),
        (('--model', 'unix:/no.sock', '--mmproj', __file__), 'goes with --model GGUF'),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused(
    flight: Path, words: tuple[str, ...], reason: str
) -> None:
    code, _, err = run('--flight', flight, *words, 'how many people')
    assert code in (1, 2)
    assert reason in err

"""`mmedge lab train rivals`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from hand_made_rivals import going_on
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_lab.policies.trained_rivals import read_rivals
from mmedge_lab.training import imputation_training
from mmedge_ros.commands.main import app


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / 'tiny')
    for name in ('train', 'validation'):
        (tmp_path / name).mkdir()
    return tmp_path


def add_flights(folder: Path, count: int, first: float) -> None:
    """Short flights, no two of the same length."""
    for number in range(count):
        write_bag(folder / f'flight_{number}', messages=recording_with_truth(first + 0.1 * number))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ['lab', *map(str, arguments)], env={'NO_COLOR': '1'})


def train(place: Path, *arguments: object) -> Result:
    given = ('--bundle', place / 'tiny', '--out', place / 'out', '--jobs', '1')
    return run('train', 'rivals', place / 'train', *given, *arguments)


def refusal(result: Result) -> str:
    assert (result.exit_code, result.stdout) == (1, ''), result.output
    assert 'Traceback' not in result.stderr
    return result.stderr.splitlines()[-1]


def test_what_cannot_be_done_is_one_sentence(place: Path) -> None:
    assert 'holds no flights' in refusal(train(place))
    write_bag(place / 'train' / 'blind', messages=recording(0.5))
    assert 'ground truth is needed' in refusal(train(place))
    assert not (place / 'out').exists()


def test_a_flight_in_both_sets_is_refused(place: Path) -> None:
    for name in ('train', 'validation'):
        add_flights(place / name, 1, 0.5)
    sentence = refusal(train(place, '--validation', place / 'validation'))
    assert 'is the same flight as' in sentence


def test_too_few_flights_are_refused_and_their_samples_kept(place: Path) -> None:
    add_flights(place / 'train', 1, 0.6)
    assert refusal(train(place))
    assert not (place / 'out').exists()
    assert list(place.glob('.out.training/**/samples.npz'))


def test_the_trained_rival_is_a_folder_that_is_judged_by_its_validation_set(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What can be learnt of such short flights says nothing; the learning has tests of its own.
    monkeypatch.setattr(
        imputation_training, 'train_imputer', lambda *_: (going_on(), {'flights': 1})
    )
    add_flights(place / 'train', 1, 0.6)
    add_flights(place / 'validation', 1, 0.9)
    done = train(place, '--validation', place / 'validation')
    assert done.exit_code == 0, done.output
    assert done.stdout.strip() == str(place / 'out')
    assert 'imputation on validation: samples ' in done.stderr
    index = json.loads((place / 'out/rivals.json').read_text())
    assert index['training']['imputation']['flights'] == index['validation']['flights'] == 1
    assert index['validation']['imputation']['samples'] > 0
    assert read_rivals(place / 'out', place / 'tiny').plugins.imputation is not None
    assert not list(place.glob('.out*'))
    assert 'exists already' in refusal(train(place))

"""`mmedge lab train rivals`, and `mmedge lab evaluate` with what it made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bag_fixtures import recording, write_bag
from hand_made_rivals import going_on, plugins_for
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_lab.policies.trained_rivals import bundle_rivals, read_rivals, write_rivals
from mmedge_lab.rivals.comparison import figures
from mmedge_lab.rivals.mmedge import contention_bench
from mmedge_lab.training import imputation_training
from mmedge_ros.commands.main import app

RIVALS = 'imputation,modality_gating,model_selection'


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


def test_an_evaluation_takes_the_rivals_it_is_given_or_those_of_the_bundle(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, 'draw_comparison', lambda report: [])
    monkeypatch.setattr(contention_bench, 'tables_folder', lambda: None)
    bundle, out = place / 'tiny', place / 'report'
    add_flights(place / 'validation', 1, 0.8)
    write_rivals(place / 'rivals', bundle, plugins_for(bundle))
    given = (
        *('evaluate', place / 'validation', '--bundle', bundle, '--limits', '50ms'),
        *('--shares', '100', '--jobs', '1', '--no-timing', '--out', out),
        *('--protocols', 'stream'),
    )
    asked = ('--policies', RIVALS)
    without = run(*given, *asked)
    assert 'it needs a trained plug-in' in refusal(without)
    done = run(*given, *asked, '--rivals', place / 'rivals')
    assert done.exit_code == 0, done.output
    report = json.loads((out / 'report.json').read_text())
    assert sorted(row['policy'] for row in report['cases']) == sorted(RIVALS.split(','))
    assert f'--rivals {place / "rivals"}' in report['command']
    # In the bundle they are found, and the same are not run again.
    write_rivals(bundle / 'rivals', bundle, plugins_for(bundle))
    assert bundle_rivals(bundle).digest == read_rivals(place / 'rivals', bundle).digest
    again = run(*given, *asked)
    assert '0 of 3 cases are to be run' in again.stderr
    # Others are.
    write_rivals(bundle / 'rivals', bundle, plugins_for(bundle, rests=-3.0))
    assert '3 of 3 cases are to be run' in run(*given, *asked).stderr
    damaged = bundle / 'rivals/imputation.npz'
    damaged.write_bytes(b'')
    assert 'is not the file' in refusal(run(*given))

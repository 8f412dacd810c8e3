"""`mmedge lab train fit predictor`: from flights to a bundle that says which is used."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app
from mmedge_lab.training.accuracy_predictor import (
    LEARNT_RATES,
)
from mmedge_ros.adaptation.bundle_configurations import bundle_predictor, bundle_space, manifest_of
from mmedge_ros.adaptation.learned_accuracy import WEIGHTS


def run(place: Path, *arguments: str | Path) -> Result:
    given = ['fit', 'predictor', place / 'tiny', '--train', place / 'calibration', '--jobs', '1']
    given += arguments
    return CliRunner().invoke(train_app, [str(argument) for argument in given])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    space = bundle_space(bundle, ('camera', 'radar'), LEARNT_RATES)
    rows = []
    for index in range(len(space)):
        camera, radar = space.parts(index)
        listed = {'camera': [camera.rate, camera.level], 'radar': [radar.rate, radar.level]}
        rows.append({**listed, 'value': round(0.3 + 0.01 * index, 3)})
    content = {**manifest_of(bundle), 'accuracy': {'configurations': rows}}
    (bundle / 'manifest.yaml').write_text(yaml.safe_dump(content))
    (tmp_path / 'calibration').mkdir()
    return tmp_path


def test_a_bundle_without_a_table_is_refused(place: Path) -> None:
    path = place / 'tiny' / 'manifest.yaml'
    content = {k: v for k, v in yaml.safe_load(path.read_text()).items() if k != 'accuracy'}
    path.write_text(yaml.safe_dump(content))
    write_short_flights(place / 'calibration', 1, 0.5)
    done = run(place)
    assert done.exit_code == 1
    assert 'lacks a table of accuracies' in done.stderr


def test_flights_become_a_bundle_that_says_which_is_used(place: Path) -> None:
    write_short_flights(place / 'calibration', 3, 1.3)
    done = run(place, '--seconds', '1.6')
    assert done.exit_code == 0, done.stderr
    section = manifest_of(place / 'tiny')['predictor']
    assert section['training'] == {'set': 'calibration', 'flights': 3}
    is_used = section['used'] == 'predictor'
    assert is_used == (place / 'tiny' / WEIGHTS).is_file()
    space = bundle_space(place / 'tiny', ('camera', 'radar'), LEARNT_RATES)
    made = bundle_predictor(place / 'tiny', space)
    assert made.note == ''
    assert made.predictor.uses_indicators == is_used

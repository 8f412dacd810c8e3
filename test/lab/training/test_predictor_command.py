"""`mmedge lab train predictor`: from two sets of flights to a bundle that says which is used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app
from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.encoded_flight import replay_encoded
from mmedge_lab.training import accuracy_predictor_samples
from mmedge_lab.training.accuracy_predictor_samples import (
    LEARNT_RATES,
    PredictorFlight,
    collect,
    kept,
)
from mmedge_ros.configuration.bundle_configurations import (
    bundle_predictor,
    bundle_space,
    manifest_of,
)
from mmedge_ros.configuration.learned_accuracy import WEIGHTS
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters


def run(place: Path, *arguments: str | Path) -> Result:
    known = ('--train', place / 'calibration', '--test', place / 'test')
    paths = ('--out', place / 'out', '--report', place / 'report', '--jobs', '1')
    given = ['predictor', place / 'tiny', *known, *paths, *arguments]
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
    for name in ('calibration', 'test'):
        (tmp_path / name).mkdir()
    return tmp_path


def test_the_help_names_the_options() -> None:
    done = CliRunner().invoke(train_app, ['predictor', '--help'], env={'COLUMNS': '120'})
    assert done.exit_code == 0
    for option in ('--train', '--test', '--seconds', '--replays', '--report'):
        assert option in done.stdout


def test_sets_without_flights_are_refused(place: Path) -> None:
    done = run(place)
    assert done.exit_code == 1
    assert 'holds no flights' in done.stderr
    assert not (place / 'out').exists()


def test_a_bundle_without_a_table_is_refused(place: Path) -> None:
    path = place / 'tiny' / 'manifest.yaml'
    content = {k: v for k, v in yaml.safe_load(path.read_text()).items() if k != 'accuracy'}
    path.write_text(yaml.safe_dump(content))
    done = run(place)
    assert done.exit_code == 1
    assert 'lacks a table of accuracies' in done.stderr


def test_no_flight_may_be_in_both_sets(place: Path) -> None:
    write_short_flights(place / 'calibration', 1, 1.5)
    write_short_flights(place / 'test', 1, 1.5)
    done = run(place)
    assert done.exit_code == 1
    assert 'is the same flight as' in done.stderr


def test_flights_become_a_bundle_that_says_which_is_used(place: Path) -> None:
    write_short_flights(place / 'calibration', 3, 1.3)
    write_short_flights(place / 'test', 2, 1.7)
    done = run(place, '--seconds', '1.6')
    assert done.exit_code == 0, done.stderr
    report = json.loads((place / 'report' / 'report.json').read_text())
    assert report['calibration']['flights'] == 3
    assert report['test']['flights'] == 2
    section = manifest_of(place / 'out')['predictor']
    assert section['used'] == report['used']
    assert (report['used'] == 'predictor') == (place / 'out' / WEIGHTS).is_file()
    space = bundle_space(place / 'out', ('camera', 'radar'), LEARNT_RATES)
    made = bundle_predictor(place / 'out', space)
    assert made.note == ''
    assert made.predictor.uses_indicators == (report['used'] == 'predictor')
    assert manifest_of(place / 'tiny').get('predictor') is None


def test_what_was_replayed_is_not_replayed_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_short_flights(place / 'calibration', 1, 1.3)
    flight = place / 'calibration' / 'flight_0'
    bundle = BundleUnderTest(place / 'tiny', NOMINAL, '')
    task = PredictorFlight(flight, bundle, place / 'kept')
    collect(task, lambda _: None)
    first = kept(task)
    monkeypatch.setattr(accuracy_predictor_samples, 'replay_encoded', None)
    collect(task, lambda _: None)
    second = kept(task)
    assert first is not None
    assert second is not None
    for before, after in zip(first, second, strict=True):
        np.testing.assert_array_equal(before, after)
    assert first.asked.sum() > 0
    # Nothing was known before the first unit; at the end the picture and the scan were.
    assert np.isnan(first.known[:, 0]).any()
    assert np.isfinite(first.known[:, -1, 1]).all()


def test_replays_with_cached_measurements_are_those_of_a_plain_pipeline(place: Path) -> None:
    write_short_flights(place / 'calibration', 1, 1.3)
    bundle = BundleUnderTest(place / 'tiny', NOMINAL, '')
    task = PredictorFlight(place / 'calibration' / 'flight_0', bundle, place / 'kept')
    flight = accuracy_predictor_samples.encoded_flight(task, lambda _: None)
    measured: dict = {}
    for index in (0, len(task.space) - 1):
        parts = task.space.parts(index)
        configuration = accuracy_predictor_samples.Configuration(1, 0, parts)
        remembering = accuracy_predictor_samples.caching_pipeline(
            measured.setdefault(parts[0].level, {})
        )
        plain = accuracy_predictor_samples.PerceptionPipeline(
            PipelineParameters(
                strategy='decision',
                skipping=accuracy_predictor_samples.SkipParameters(delta=0.0),
            )
        )
        ours, theirs = (
            replay_encoded(flight, pipeline, configuration, NOMINAL).decisions
            for pipeline in (remembering, plain)
        )
        assert [[t.box for t in d.tracks] for d in ours] == [
            [t.box for t in d.tracks] for d in theirs
        ]
        assert any(d.tracks for d in ours)

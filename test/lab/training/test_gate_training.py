"""From flights to a gate whose thresholds are certified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from hand_made_encoded_flight import encoded_flight
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth, write_short_flights
from typer.testing import CliRunner, Result

from mmedge_lab.commands.train import train_app
from mmedge_lab.judging.bundle_under_test import NOMINAL, BundleUnderTest
from mmedge_lab.training import gate_training
from mmedge_lab.training.certificate import FlightLoss
from mmedge_lab.training.dense_training import DenseFit
from mmedge_lab.training.gate_loop import FlightLoop, LoopSettings
from mmedge_lab.training.gate_training import THRESHOLDS, GateSetting, collect_samples, try_gate
from mmedge_ros.core.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import DECISION, PipelineParameters
from mmedge_ros.windows.bundle_gate import bundle_gate
from mmedge_ros.windows.gate import Gate
from mmedge_ros.windows.gate_features import FIELDS

NOTHING, COUNT = np.zeros(1), len(FIELDS)
YES = Gate(np.zeros(COUNT), np.ones(COUNT), np.zeros((COUNT, 1)), NOTHING, NOTHING, 5.0)


def test_samples_are_features_with_what_would_have_come_of_a_yes() -> None:
    configuration = Configuration(
        1, 0, (ModalityConfiguration(CAMERA, 30.0), ModalityConfiguration(RADAR, 20.0))
    )
    settings = LoopSettings(configuration, NOMINAL, PipelineParameters())
    changing, quiet = (
        collect_samples(FlightLoop(encoded_flight(people), settings), number, (0.2, 0.8))
        for number, people in enumerate((lambda when: 2 + (when > 1290.0), lambda _: 1))
    )
    assert set(quiet.flights.tolist()) == {1}
    assert quiet.features.shape == (len(quiet.kept), len(FIELDS))
    assert quiet.kept.mean() > changing.kept.mean()
    assert 0.0 <= changing.kept.min() < changing.kept.max() <= 1.0


def test_a_gate_is_tried_at_every_threshold(tmp_path: Path) -> None:
    bundle = BundleUnderTest(write_tiny_bundle(tmp_path / 'tiny'), NOMINAL, 'digest')
    bag = write_bag(tmp_path / 'flight', messages=recording_with_truth(2.0))
    camera, radar = (
        ModalityConfiguration(CAMERA, 20.0, 'small'),
        ModalityConfiguration(RADAR, 20.0),
    )
    setting = GateSetting(bundle, DECISION, Configuration(1, 0, (camera, radar)))
    losses = [FlightLoss(*row) for row in try_gate(YES, setting, bag, 3, print)['losses']]
    assert len(losses) == len(THRESHOLDS)
    assert losses[0].early > 0
    assert losses[0].encodes > losses[0].saved > 0


def run(place: Path, *arguments: str | Path) -> Result:
    known = ('--train', place / 'samples', '--calibration', place / 'calibration')
    given = ['gate', place / 'tiny', *known, '--out', place / 'out', '--jobs', '1']
    given += ['--level', 'small', *arguments]
    return CliRunner().invoke(train_app, [str(argument) for argument in given])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / 'tiny')
    for name in ('samples', 'calibration'):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_flight_in_two_sets_is_refused(place: Path) -> None:
    for name in ('samples', 'calibration'):
        write_short_flights(place / name, 1, 0.5)
    assert 'is the same flight as' in run(place).stderr


def test_too_few_flights_certify_nothing(place: Path) -> None:
    write_short_flights(place / 'samples', 1, 0.5)
    write_short_flights(place / 'calibration', 2, 0.7)
    assert 'are of 2 seeds' in run(place).stderr


def test_a_certified_gate_is_in_a_copy_of_the_bundle(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = DenseFit(None, 5, 0.4, 0.6)  # type: ignore[arg-type]
    monkeypatch.setattr(gate_training, 'train_gate', lambda *_: (YES, fit))
    monkeypatch.setattr(gate_training, 'THRESHOLDS', (0.9,))
    write_short_flights(place / 'samples', 1, 0.5)
    write_short_flights(place / 'calibration', 10, 1.3)
    refused = run(place, '--delta', '0.001')
    assert refused.exit_code == 1
    assert 'no bundle was written' in refused.stderr
    assert not (place / 'out').exists()
    done = run(place, '--delta', '0.5')
    assert done.exit_code == 0, done.stderr
    gate = bundle_gate(place / 'out')
    assert gate is not None
    certified = gate.certified(0.5)
    assert certified is not None
    assert certified.threshold == pytest.approx(0.9)
    assert gate.slow == ('camera',)
    assert bundle_gate(place / 'tiny') is None
    assert done.stdout.splitlines()[-1] == str(place / 'out')
    assert not list(place.glob('.out*'))

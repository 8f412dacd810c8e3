"""Bundles: what their manifest says, and that none is ever half there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from painted_flight import write_painted_flight
from tiny_detector import write_tiny_detector

from mmedge_lab.training import TrainingError
from mmedge_lab.training.bundle_files import require_free
from mmedge_lab.training.detector_evaluation import accuracy_facts
from mmedge_lab.training.detector_session import training_facts, write_bundle
from mmedge_lab.training.detector_training import DetectorSettings, detector_settings
from mmedge_lab.training.picture_set import write_picture_set
from mmedge_ros.encoding.bundle.model_bundle import load_bundle
from mmedge_ros.report.detector_accuracy import DetectorAccuracy, StratumAccuracy


def write(folder: Path, **content: Any) -> Path:
    network = write_tiny_detector(folder.parent / 'network.onnx')
    write_bundle(folder, folder.parent / 'part', network, DetectorSettings(), content)
    return folder


def test_a_bundle_says_what_it_is_and_can_be_opened(tmp_path: Path) -> None:
    bundle = load_bundle(write(tmp_path / 'walkers', metrics={'test': {'map50': 0.5}}))
    assert (bundle.name, bundle.domain, bundle.default) == ('walkers', 'simulated', 'small')
    assert bundle.weights().name == 'small.onnx'
    assert bundle.content['metrics'] == {'test': {'map50': 0.5}}
    assert bundle.content['labels'] == ['person', 'cyclist', 'car', 'dog']
    assert 'AGPL-3.0' in bundle.content['licence']
    assert not (tmp_path / 'part').exists()


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    taken = tmp_path / 'taken'
    taken.mkdir()
    (taken / 'mine').touch()
    with pytest.raises(TrainingError, match='exists already and was left as it is'):
        require_free(taken)
    with pytest.raises(OSError, match='not empty'):
        write(taken)
    assert [path.name for path in taken.iterdir()] == ['mine']


def test_an_empty_folder_and_a_missing_one_will_do(tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    for name in ('empty', 'new/one'):
        require_free(tmp_path / name)
    assert load_bundle(write(tmp_path / 'empty')).name == 'empty'


def test_what_a_network_was_trained_on_can_be_made_again(tmp_path: Path) -> None:
    flights = [write_painted_flight(tmp_path / f'f{n}', pictures=2, seed=n) for n in (4, 5)]
    pictures = write_picture_set(flights, tmp_path / 'set', 4)
    settings = detector_settings(epochs=10, seed=3, pictures=4, threads=1)
    facts = training_facts(pictures, settings, {'torch': '2'})
    assert facts['data']['seeds'] == [4, 5]
    assert facts['data']['scenarios'] == {'meadow_day_near': 2}
    assert facts['data']['sha256'] == pictures.digest
    assert facts['settings']['seed'] == 3
    assert yaml.safe_load(yaml.safe_dump(facts)) == facts


def test_figures_that_are_not_known_are_left_out() -> None:
    strata = (
        StratumAccuracy('light', 'day', 3, 0.5, 0.25, 1.0),
        StratumAccuracy('visibility', 'not hidden', 3, math.nan, 0.25, math.nan),
        StratumAccuracy('surroundings', 'park', 3, 0.5, 0.25, 1.0),
    )
    facts = accuracy_facts(DetectorAccuracy(2, 3, 0.5, math.nan, 0.25, math.nan, 3.0, strata))
    assert facts == {
        'pictures': 2,
        'people': 3,
        'map50': 0.5,
        'recall_20px': 0.25,
        'light': {'day': {'people': 3, 'ap50': 0.5, 'recall': 0.25}},
        'visibility': {'not hidden': {'people': 3, 'recall': 0.25}},
    }


def test_short_trainings_keep_a_share_without_mosaics() -> None:
    assert detector_settings(epochs=1, seed=0, pictures=1, threads=1).plain_epochs == 1
    usual = DetectorSettings()
    asked = detector_settings(epochs=usual.epochs, seed=0, pictures=1, threads=0)
    assert asked.plain_epochs == usual.plain_epochs
    assert asked.threads >= 1

"""Bundles: what their manifest says, and that none is ever half there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tiny_detector import write_tiny_detector

from mmedge_lab.judging.detector_accuracy import DetectorAccuracy, StratumAccuracy
from mmedge_lab.training import TrainingError
from mmedge_lab.training.bundle_files import (
    file_entry,
    finish_bundle,
    require_free,
    write_manifest,
)
from mmedge_lab.training.detector_evaluation import accuracy_facts
from mmedge_lab.training.detector_training import DetectorSettings
from mmedge_ros.encoding.bundle.model_bundle import load_bundle


def write(folder: Path) -> Path:
    part = folder.parent / 'part'
    part.mkdir()
    network = write_tiny_detector(part / 'small.onnx')
    level = {**file_entry(network), 'input_size': [64, 64]}
    content = {'camera': {'default': 'small', 'levels': {'small': level}}, 'labels': ['person']}
    write_manifest(part, folder.name, {**content, 'metrics': {'map50': 0.5, 'recall': math.nan}})
    finish_bundle(part, folder)
    return folder


def test_a_bundle_says_what_it_is_and_can_be_opened(tmp_path: Path) -> None:
    bundle = load_bundle(write(tmp_path / 'walkers'))
    assert (bundle.name, bundle.default) == ('walkers', 'small')
    assert bundle.weights().name == 'small.onnx'
    assert bundle.content['metrics'] == {'map50': 0.5}
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
    assert [DetectorSettings(epochs=epochs).plain_epochs for epochs in (1, 3, 16)] == [1, 1, 5]

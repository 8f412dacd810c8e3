"""Bundles: what their manifest says, and that none is ever half there."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tiny_detector import write_tiny_detector

from mmedge_lab.training import TrainingError
from mmedge_lab.training.bundle_files import file_entry, new_bundle, require_free, write_manifest
from mmedge_ros.encoding.bundle.model_bundle import load_bundle


def write(folder: Path) -> Path:
    with new_bundle(folder) as part:
        network = write_tiny_detector(part / 'small.onnx')
        level = {**file_entry(network), 'input_size': [64, 64]}
        camera = {'default': 'small', 'levels': {'small': level}}
        metrics = {'map50': 0.5, 'recall': math.nan}
        content = {'camera': camera, 'labels': ['person'], 'metrics': metrics}
        write_manifest(part, folder.name, content)
    return folder


def test_a_bundle_says_what_it_is_and_can_be_opened(tmp_path: Path) -> None:
    bundle = load_bundle(write(tmp_path / 'walkers'))
    assert (bundle.name, bundle.default) == ('walkers', 'small')
    assert bundle.camera_stages()[0].name == 'small.onnx'
    assert bundle.content['metrics'] == {'map50': 0.5}
    assert [path.name for path in tmp_path.iterdir()] == ['walkers']


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    taken = tmp_path / 'taken'
    taken.mkdir()
    (taken / 'mine').touch()
    with pytest.raises(TrainingError, match='exists already and was left as it is'):
        require_free(taken)
    with pytest.raises(TrainingError, match='not empty'):
        write(taken)
    assert [path.name for path in taken.iterdir()] == ['mine']

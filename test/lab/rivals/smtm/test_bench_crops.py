"""Scenes that judge are kept apart from those that were learned from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_recogniser import write_tiny_recogniser

from mmedge_lab.judging import EvaluationError
from mmedge_lab.rivals.smtm.bench_crops import read_bench_crops
from mmedge_lab.training.crop_set import CropSet
from mmedge_lab.training.recogniser_labels import CLASSES
from mmedge_ros.encoding.classifier_description import ClassifierDescription, describe_classifier
from mmedge_ros.encoding.crops import CropForm


@pytest.fixture
def description(tmp_path: Path) -> ClassifierDescription:
    found = describe_classifier(write_tiny_recogniser(tmp_path / 'bundle'))
    assert found is not None
    return found


def write_scenes(folder: Path, scenes: int) -> Path:
    """Two crops of each scene: one with a bright box, and its number as its object."""
    count = 2 * scenes
    crops = np.zeros((count, 72, 48, 3), np.uint8)
    crops[:, 14:58, 9:39] = 200
    numbers = np.repeat(np.arange(scenes, dtype=np.int32), 2)
    facts = np.zeros((count, 4), np.int8)
    facts[1::2, 0] = 3
    parts = CropSet(
        crops,
        facts,
        np.full(count, 40.0, np.float32),
        np.zeros(count, np.int8),
        numbers,
        np.tile(np.arange(2, dtype=np.int32), scenes),
    )
    folder.mkdir()
    np.savez(folder / 'crops_00000.npz', **parts._asdict())
    return folder


def test_of_ten_scenes_two_are_fitted_on_and_one_judges(
    tmp_path: Path, description: ClassifierDescription
) -> None:
    ours = replace(description, classes=CLASSES, form=CropForm((32, 48), margin=0.0))
    found = read_bench_crops(write_scenes(tmp_path / 'crops', 10), ours)
    assert found.judged.labels.tolist() == [0, 3]
    assert len(np.unique(found.judged.objects)) == 2
    assert len(found.fitted_on.labels) == 4
    assert found.judged.crops.shape == (2, 48, 32, 3)
    assert found.judged.crops[:, 3:-3, 3:-3].min() == 200, 'without the room around the box'


def test_scenes_are_refused_for_other_classes(
    tmp_path: Path, description: ClassifierDescription
) -> None:
    folder = write_scenes(tmp_path / 'crops', 10)
    with pytest.raises(EvaluationError, match='a bundle of `mmedge lab train recogniser`'):
        read_bench_crops(folder, description)


def test_too_few_scenes_are_refused(tmp_path: Path, description: ClassifierDescription) -> None:
    ours = replace(description, classes=CLASSES)
    with pytest.raises(EvaluationError, match='take more scenes'):
        read_bench_crops(write_scenes(tmp_path / 'crops', 5), ours)


def test_a_folder_without_crops_is_refused(
    tmp_path: Path, description: ClassifierDescription
) -> None:
    (tmp_path / 'empty').mkdir()
    with pytest.raises(EvaluationError, match='holds no crops; name the folder that'):
        read_bench_crops(tmp_path / 'empty', description)

"""The folder of pictures and labels that is trained from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from painted_flight import Seen, write_painted_pictures

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_set import open_pictures
from mmedge_lab.training.picture_sources import CLASSES

PERSON = Seen('person', (100.0, 50.0, 120.0, 110.0))
HIDDEN = Seen('person', (200.0, 50.0, 220.0, 110.0), 0.3)
TINY = Seen('dog', (10.0, 20.0, 20.0, 27.0))
CAR = Seen('car', (160.0, 150.0, 250.0, 190.0))


def test_visible_objects_are_labels_and_the_others_are_ignored(tmp_path: Path) -> None:
    pictures = write_painted_pictures(tmp_path / 'set', 2, seen=[PERSON, HIDDEN, TINY, CAR])
    assert len(pictures) == 2
    assert pictures.objects == {'person': 2, 'cyclist': 0, 'car': 2, 'dog': 0}
    loaded = pictures.load(1)
    assert loaded.image.shape == (240, 320, 3)
    expected = [[0, *PERSON.box], [2, *CAR.box]]
    np.testing.assert_allclose(loaded.objects, expected, atol=0.01)
    np.testing.assert_allclose(loaded.ignored, [[0, *HIDDEN.box], [3, *TINY.box]], atol=0.01)


def test_the_layout_is_the_one_ultralytics_reads(tmp_path: Path) -> None:
    folder = tmp_path / 'set'
    write_painted_pictures(folder, 1, seen=[PERSON])
    described = yaml.safe_load((folder / 'data.yaml').read_text())
    assert described['names'] == dict(enumerate(CLASSES))
    assert cv2.imread(str(folder / 'images/000000.jpg')).shape == (240, 320, 3)
    label, x, y, width, height = (folder / 'labels/000000.txt').read_text().split()
    assert label == '0'
    np.testing.assert_allclose(
        [float(v) for v in (x, y, width, height)], [110 / 320, 80 / 240, 20 / 320, 60 / 240], 1e-4
    )


def test_pictures_of_ones_own_are_read_in_that_layout(tmp_path: Path) -> None:
    for name in ('images', 'labels'):
        (tmp_path / name).mkdir()
    for name in ('walk.png', 'empty.jpg'):
        cv2.imwrite(str(tmp_path / 'images' / name), np.zeros((48, 64, 3), np.uint8))
    (tmp_path / 'labels/walk.txt').write_text('0 0.5 0.5 0.25 0.5\n')
    pictures = open_pictures(tmp_path)
    assert pictures.objects['person'] == 1
    assert [len(pictures.load(number).objects) for number in range(2)] == [0, 1]
    np.testing.assert_allclose(pictures.load(1).objects, [[0, 24.0, 12.0, 40.0, 36.0]])
    (tmp_path / 'labels/walk.txt').write_text('7 0.5 0.5 0.25 0.5\n')
    with pytest.raises(TrainingError, match=r'walk.txt .* classes are 0 person, 1 cyclist'):
        open_pictures(tmp_path)
    (tmp_path / 'labels/walk.txt').write_text('0 0.5 0.5 0.25 0.5 0.75 0.5\n')
    with pytest.raises(TrainingError, match=r'walk.txt'):
        open_pictures(tmp_path)


def test_a_folder_without_pictures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match='holds no pictures with labels'):
        open_pictures(tmp_path)

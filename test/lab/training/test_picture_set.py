"""The folder of pictures and labels that is trained from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import yaml
from painted_flight import Seen, write_painted_flight, write_painted_set

from mmedge_lab.simulation.flight_folder import flights_in
from mmedge_lab.training.picture_set import CLASSES, INDEX, write_picture_set

PERSON = Seen('person', (100.0, 50.0, 120.0, 110.0))
HIDDEN = Seen('person', (200.0, 50.0, 220.0, 110.0), 0.3)
TINY = Seen('dog', (10.0, 20.0, 20.0, 27.0))
CAR = Seen('car', (160.0, 150.0, 250.0, 190.0))


def test_visible_objects_are_labels_and_the_others_are_ignored(tmp_path: Path) -> None:
    flight = write_painted_flight(
        tmp_path / 'flight', pictures=2, seen=[PERSON, HIDDEN, TINY, CAR]
    )
    pictures = write_picture_set([flight], tmp_path / 'set', 100)
    assert len(pictures) == 2
    assert pictures.objects == {'person': 2, 'cyclist': 0, 'car': 2, 'dog': 0}
    loaded = pictures.load(1)
    assert loaded.image.shape == (240, 320, 3)
    expected = [[0, *PERSON.box], [2, *CAR.box]]
    np.testing.assert_allclose(loaded.objects, expected, atol=0.01)
    np.testing.assert_allclose(loaded.ignored, [[0, *HIDDEN.box], [3, *TINY.box]], atol=0.01)


def test_the_layout_is_the_one_ultralytics_reads(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=1, seen=[PERSON])
    folder = write_picture_set([flight], tmp_path / 'set', 100).folder
    described = yaml.safe_load((folder / 'data.yaml').read_text())
    assert described['names'] == dict(enumerate(CLASSES))
    assert cv2.imread(str(folder / 'images/000000.jpg')).shape == (240, 320, 3)
    label, x, y, width, height = (folder / 'labels/000000.txt').read_text().split()
    assert label == '0'
    np.testing.assert_allclose(
        [float(v) for v in (x, y, width, height)], [110 / 320, 80 / 240, 20 / 320, 60 / 240], 1e-4
    )


def test_a_set_that_is_there_is_used_again_and_another_one_is_written_anew(tmp_path: Path) -> None:
    flights = flights_in(write_painted_set(tmp_path / 'flights', flights=2, pictures=4))
    first = write_picture_set(flights, tmp_path / 'set', 8)
    written = (first.folder / INDEX).stat().st_mtime_ns
    again = write_picture_set(flights, tmp_path / 'set', 8)
    assert again == first
    assert (first.folder / INDEX).stat().st_mtime_ns == written
    other = write_picture_set(flights[:1], tmp_path / 'set', 8)
    assert (len(other), other.digest == first.digest) == (4, False)

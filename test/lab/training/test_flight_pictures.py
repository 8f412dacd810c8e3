"""Pictures of flights beside their truth."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from painted_flight import Seen, write_painted_flight, write_painted_set

from mmedge_lab.simulation import SimulationError
from mmedge_lab.training import TrainingError
from mmedge_lab.training.flight_pictures import (
    count_pictures,
    flights_in,
    labelled_pictures,
)
from mmedge_ros.replay import BagError

BOX = (100.0, 50.0, 120.0, 110.0)


def test_a_set_holds_its_flights_by_name_and_nothing_else(tmp_path: Path) -> None:
    folder = write_painted_set(tmp_path / 'set', flights=2, pictures=1)
    (folder / 'notes').mkdir()
    (folder / 'notes.txt').touch()
    shutil.copytree(folder / 'flight_0', folder / '.flight_2.simulating')
    assert [path.name for path in flights_in(folder)] == ['flight_0', 'flight_1']


def test_a_flight_is_a_set_of_one(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=1)
    assert flights_in(flight) == (flight,)


@pytest.mark.parametrize('name', ['nothing', 'empty'])
def test_a_folder_without_flights_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / 'empty').mkdir()
    with pytest.raises(SimulationError, match='holds no flights; name a folder'):
        flights_in(tmp_path / name)


def test_every_third_picture_comes_with_what_is_true_at_its_stamp(tmp_path: Path) -> None:
    seen = [Seen('person', BOX, 0.7), Seen('dog', (10.0, 20.0, 40.0, 38.0))]
    flight = write_painted_flight(tmp_path / 'flight', pictures=8, seen=seen)
    pictures = list(labelled_pictures(flight, step=3, first=1))
    assert count_pictures([flight, flight]) == 16
    assert len(pictures) == 3  # 1, 4, 7
    assert pictures[0].truth.labels.tolist() == ['person', 'dog']
    np.testing.assert_allclose(pictures[0].truth.boxes[0], BOX)
    assert pictures[0].image.shape == (240, 320, 3)
    # The truth lies where the picture was painted.
    assert pictures[0].image[80, 110, 2] > 200 > pictures[0].image[80, 110, 0]


def test_a_recording_of_the_real_world_cannot_be_learned_from(tmp_path: Path) -> None:
    flight = write_bag(tmp_path / 'real')
    with pytest.raises(TrainingError, match='ground truth is needed, and this recording has none'):
        list(labelled_pictures(flight))


def test_a_recording_without_a_camera_is_refused(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=1)
    with pytest.raises(BagError):
        count_pictures([flight / 'flight.yaml'])

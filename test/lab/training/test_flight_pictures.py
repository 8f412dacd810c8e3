"""Pictures of flights beside their truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from painted_flight import Seen, write_painted_flight

from mmedge_lab.training import TrainingError
from mmedge_lab.training.flight_pictures import count_pictures, labelled_pictures

BOX = (100.0, 50.0, 120.0, 110.0)


def test_every_third_picture_comes_with_what_is_true_at_its_stamp(tmp_path: Path) -> None:
    seen = [Seen('person', BOX, 0.7), Seen('dog', (10.0, 20.0, 40.0, 38.0))]
    flight = write_painted_flight(tmp_path / 'flight', pictures=8, seen=seen)
    pictures = list(labelled_pictures(flight, step=3))
    assert count_pictures([flight, flight]) == 16
    assert len(pictures) == 3  # 0, 3, 6
    assert pictures[0].truth.labels.tolist() == ['person', 'dog']
    np.testing.assert_allclose(pictures[0].truth.boxes[0], BOX)
    assert pictures[0].image.shape == (240, 320, 3)
    # The truth lies where the picture was painted.
    assert pictures[0].image[80, 110, 2] > 200 > pictures[0].image[80, 110, 0]


def test_a_recording_of_the_real_world_cannot_be_learned_from(tmp_path: Path) -> None:
    flight = write_bag(tmp_path / 'real')
    with pytest.raises(TrainingError, match='ground truth is needed, and this recording has none'):
        list(labelled_pictures(flight))

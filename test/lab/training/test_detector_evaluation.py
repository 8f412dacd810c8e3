"""Judging a detector on flights: needs no torch, and counts what was painted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from painted_flight import Seen, write_painted_flight
from tiny_detector import write_tiny_detector

from mmedge_lab.training import TrainingError
from mmedge_lab.training.detector_evaluation import evaluate_detector, labelled_pictures

# The tiny detector calls what is bright in a channel a person; a painted person is red.
PERSON = Seen('person', (100.0, 50.0, 120.0, 110.0))
ELSEWHERE = Seen('person', (200.0, 20.0, 240.0, 40.0))


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    return write_tiny_detector(tmp_path / 'tiny.onnx')


def test_pictures_spread_over_flights_come_with_what_is_true_at_its_stamp(tmp_path: Path) -> None:
    dog = Seen('dog', (10.0, 20.0, 40.0, 38.0))
    flight = write_painted_flight(tmp_path / 'flight', pictures=8, seen=[PERSON, dog])
    pictures = list(labelled_pictures([flight], 2))
    assert len(pictures) == 2  # 0 and 4
    assert pictures[0].truth.labels.tolist() == ['person', 'dog']
    np.testing.assert_allclose(pictures[0].truth.boxes[0], PERSON.box)
    # The truth lies where the picture was painted.
    assert pictures[0].image[80, 110, 2] > 200 > pictures[0].image[80, 110, 0]


def test_a_recording_of_the_real_world_judges_nothing(tmp_path: Path) -> None:
    flight = write_bag(tmp_path / 'real')
    with pytest.raises(TrainingError, match='ground truth is needed, and this recording has none'):
        list(labelled_pictures([flight], 2))


def test_a_detector_that_finds_the_painted_person_is_right(tmp_path: Path, detector: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=4, seen=[PERSON])
    progress: list[float] = []
    accuracy = evaluate_detector(detector, [flight], on_progress=progress.append)
    assert (accuracy.pictures, accuracy.people) == (4, 4)
    assert accuracy.map50_20px == accuracy.recall_20px == 1.0
    assert progress[-1] == 1.0
    assert {s.name for s in accuracy.strata if s.group == 'light'} == {'day'}


def test_one_box_around_two_people_finds_neither(tmp_path: Path, detector: Path) -> None:
    flight = write_painted_flight(tmp_path / 'flight', pictures=2, seen=[PERSON, ELSEWHERE])
    accuracy = evaluate_detector(detector, [flight])
    assert accuracy.people == 4
    assert accuracy.recall_20px == 0.0

"""Judging a detector on flights: needs no torch, and counts what was painted."""

from __future__ import annotations

from pathlib import Path

import pytest
from painted_flight import Seen, write_painted_flight
from tiny_detector import write_tiny_detector

from mmedge_lab.training.detector_evaluation import evaluate_detector

# The tiny detector calls what is bright in a channel a person; a painted person is red.
PERSON = Seen('person', (100.0, 50.0, 120.0, 110.0))
ELSEWHERE = Seen('person', (200.0, 20.0, 240.0, 40.0))


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    return write_tiny_detector(tmp_path / 'tiny.onnx')


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

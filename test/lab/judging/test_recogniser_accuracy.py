"""All looks at an object count together, beside the detector's label and a histogram."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.recogniser_accuracy import (
    ObjectLooks,
    RecogniserUnderTest,
    looks_at_flight,
    recogniser_accuracy,
    torso_histogram,
)
from mmedge_lab.simulation.appearance import COLOURS, MoverLook
from mmedge_lab.simulation.flight import simulate_flight
from mmedge_ros.data_types import Box, Detection, LabelSource
from mmedge_ros.encoding.classifier_description import ClassifierDescription
from mmedge_ros.encoding.crops import CropForm
from mmedge_ros.encoding.detector import DetectorOutput, Image
from mmedge_ros.encoding.tapped_classifier import Look
from mmedge_ros.records.ground_truth import TrueFrame
from mmedge_ros.replay.recorded_truth import read_truth
from mmedge_ros.replay.recording import Recording

CLASSES = ('person red', 'person blue', 'dog red')
LABELS = ('person', 'dog')


def seen(
    label: str,
    colour: str,
    votes: tuple[float, ...],
    detected: str = 'person',
    *,
    light: str = 'day',
    clear: bool = True,
    torso: str = 'grey',
) -> ObjectLooks:
    histogram = np.eye(len(COLOURS))[COLOURS.index(torso)]
    return ObjectLooks(
        'flight',
        '1',
        light,
        MoverLook(label, colour, 'blue' if label == 'person' else ''),
        np.array(votes),
        np.array(votes) if clear else np.zeros(3),
        histogram,
        {detected: 1.0},
        {'backpack': {'no': 0.8, 'yes': 0.2}} if label == 'person' else {},
        1,
    )


def test_a_label_is_what_its_colours_say_together() -> None:
    figures = recogniser_accuracy([seen('person', 'red', (0.3, 0.3, 0.4))], CLASSES, LABELS)
    assert figures['label']['right'] == 1.0
    assert figures['top_colour']['right'] == 1.0


def test_balanced_accuracy_gives_rare_labels_their_say() -> None:
    objects = [seen('person', 'red', (1.0, 0.0, 0.0)) for _ in range(9)]
    objects.append(seen('dog', 'red', (0.0, 0.0, 1.0), 'person'))
    figures = recogniser_accuracy(objects, CLASSES, LABELS)
    assert (figures['label']['right'], figures['label']['balanced']) == (1.0, 1.0)
    assert figures['label_of_detector']['right'] == 0.9
    assert figures['label_of_detector']['balanced'] == 0.5


def test_colours_are_judged_of_people_by_day_who_are_seen_clearly() -> None:
    objects = [
        seen('person', 'blue', (0.1, 0.9, 0.0), torso='blue'),
        seen('person', 'blue', (0.9, 0.1, 0.0)),
        seen('person', 'blue', (0.1, 0.9, 0.0), light='night'),
        seen('person', 'blue', (0.1, 0.9, 0.0), clear=False),
        seen('dog', 'red', (0.0, 0.0, 1.0)),
    ]
    figures = recogniser_accuracy(objects, CLASSES, LABELS)
    assert figures['people_by_day_40px'] == 2
    assert figures['top_colour']['right'] == 0.5
    assert figures['top_colour_of_histogram']['right'] == 0.5
    assert figures['attributes']['backpack']['right'] == 1.0


def test_without_objects_there_are_no_shares() -> None:
    figures = recogniser_accuracy([], CLASSES, LABELS)
    assert figures['objects'] == 0
    assert figures['label']['right'] is None


def test_a_histogram_counts_the_torso_and_not_what_is_around_it() -> None:
    picture = np.full((100, 100, 3), (30, 200, 30), np.uint8)
    picture[20:50, 35:65] = (30, 30, 220)
    counts = torso_histogram(picture, Box(20.0, 0.0, 80.0, 100.0))
    assert counts[COLOURS.index('red')] > 0.85
    assert counts.sum() == pytest.approx(1.0)


def test_a_torso_outside_the_picture_counts_nothing() -> None:
    outside = Box(200.0, 200.0, 240.0, 280.0)
    assert torso_histogram(np.zeros((10, 10, 3), np.uint8), outside).sum() == 0.0


class TrueDetector:
    """Finds what is true in one picture after the other, and calls everything a dog."""

    labels = ('dog',)
    input_size = (640, 480)

    def __init__(self, frames: list[TrueFrame]) -> None:
        self._frames = iter(frames)

    def detect(self, image: Image) -> DetectorOutput:
        boxes = next(self._frames).boxes
        return DetectorOutput(tuple(Detection(Box(*box), 0.9, 'dog') for box in boxes.tolist()))

    def warm_up(self) -> None: ...


class RedClassifier:
    """Calls everything a person in red."""

    def look(self, blob: np.ndarray) -> Look:
        shares = np.array([1.0, 0.0, 0.0])
        return Look(0, 1.0, LabelSource.FULL, 2, np.zeros(0, np.float32), shares)


@pytest.fixture(scope='module')
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('flights') / 'street_day_near_4006'
    simulate_flight(folder, 'street_day_near', 4006, 0.5)
    return folder


def subject(detector: TrueDetector) -> RecogniserUnderTest:
    description = ClassifierDescription(CLASSES, CropForm((32, 48)), ())
    return RecogniserUnderTest(RedClassifier(), description, detector)  # type: ignore[arg-type]


def test_objects_of_a_flight_are_met_by_what_covers_them_whatever_its_label(flight: Path) -> None:
    with Recording(flight) as recording:
        truth = read_truth(recording.bag)
        stamps = [unit.stamp_ns for unit in recording.units() if unit.modality == 'camera']
    assert truth is not None
    frames = [frame for frame in map(truth.frame_at, stamps[::2]) if frame is not None]
    shares: list[float] = []
    found = looks_at_flight(flight, subject(TrueDetector(frames)), 2, shares.append)
    assert {one.truth.label for one in found} >= {'person'}
    assert all(one.detected.keys() == {'dog'} for one in found)
    assert max(one.looks for one in found) == len(frames)
    assert shares == sorted(shares)


def test_a_recording_that_is_not_simulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match='mmedge simulate'):
        looks_at_flight(tmp_path, subject(TrueDetector([])))

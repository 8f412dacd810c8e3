"""Tracks are recognised in the picture and at the box of the detection that they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_recogniser import write_tiny_recogniser

from mmedge_ros.core.data_types import (
    NS_PER_S,
    Box,
    Decision,
    Detection,
    DetectionKey,
    LabelSource,
    Track,
)
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.recent_pictures import KeptPicture, RecentPictures
from mmedge_ros.encoding.track_recogniser import (
    TrackRecogniser,
    open_track_recogniser,
)
from mmedge_ros.encoding.track_recognition import RecogniserParameters

LEFT, RIGHT = Box(10.0, 10.0, 30.0, 50.0), Box(60.0, 10.0, 80.0, 50.0)
BLUE, RED = (250, 10, 10), (10, 10, 250)
DETECTIONS = (Detection(LEFT, 0.9, 'person'), Detection(RIGHT, 0.9, 'person'))


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_recogniser(tmp_path_factory.mktemp('bundle') / 'tiny')


@pytest.fixture
def recogniser(bundle: Path) -> TrackRecogniser:
    made = open_track_recogniser(bundle, RecogniserParameters('bundle', memory=True))
    assert made is not None
    made.warm_up()
    return made


def painted(left: tuple[int, int, int], right: tuple[int, int, int]) -> np.ndarray:
    picture = np.full((60, 100, 3), 90, np.uint8)
    for box, colour in ((LEFT, left), (RIGHT, right)):
        picture[int(box.y0) : int(box.y1), int(box.x0) : int(box.x1)] = colour
    return picture


def track(number: int, box: Box, unit: int = 1, place: int = 0) -> Track:
    key = DetectionKey(unit, place)
    zero = np.zeros(3)
    return Track(
        number, 'person', 0.9, box, zero, zero, np.eye(6), ('camera',), 0.0, detection=key
    )


def decision(*tracks: Track, seconds: float = 1.0) -> Decision:
    end_ns = round(seconds * NS_PER_S)
    return Decision(end_ns, end_ns, 'odom', tracks, {'camera': end_ns})


def test_each_track_is_looked_at_where_its_detection_is(recogniser: TrackRecogniser) -> None:
    recogniser.pictures.keep(KeptPicture(1, painted(BLUE, RED), DETECTIONS))
    found = recogniser.recognise(decision(track(1, LEFT), track(2, RIGHT, place=1)))
    first, second = found.labels
    assert (first.track_id, first.label, first.attributes[0]) == (1, 'person', 'blue')
    assert (second.track_id, second.label, second.attributes[0]) == (2, 'dog', 'red')
    assert first.source is second.source is LabelSource.FULL
    assert found.looks == 2


def test_the_picture_is_that_of_the_detection_not_the_newest(recogniser: TrackRecogniser) -> None:
    recogniser.pictures.keep(KeptPicture(1, painted(BLUE, RED), DETECTIONS))
    recogniser.pictures.keep(KeptPicture(2, painted(RED, BLUE), DETECTIONS))
    (label,) = recogniser.recognise(decision(track(1, LEFT, unit=1))).labels
    assert label.attributes[0] == 'blue'


def test_a_class_that_was_just_met_is_recalled_for_the_next_track(
    recogniser: TrackRecogniser,
) -> None:
    recogniser.pictures.keep(KeptPicture(1, painted(BLUE, BLUE), DETECTIONS))
    found = recogniser.recognise(decision(track(1, LEFT), track(2, RIGHT, place=1)))
    assert [label.source for label in found.labels] == [LabelSource.FULL, LabelSource.MEMORY]
    figures = recogniser.figures()
    assert (figures['labels_from_memory'], figures['exits']) == (1, '1')
    assert figures['hot_classes'] == 'person blue'


def test_something_new_is_told_once_with_its_label_marked(recogniser: TrackRecogniser) -> None:
    told = []
    for tenth in range(6):
        recogniser.pictures.keep(KeptPicture(tenth, painted(RED, RED), DETECTIONS))
        now = decision(track(1, LEFT, unit=tenth), seconds=1.0 + tenth / 10)
        found = recogniser.recognise(now)
        told += found.novelties
    assert [(novelty.label, novelty.frame_id) for novelty in told] == [('dog', 'odom')]
    assert found.labels[0].is_novel


def test_a_detection_that_does_not_lie_at_the_track_is_not_taken_for_its_own() -> None:
    pictures = RecentPictures()
    pictures.keep(KeptPicture(1, painted(BLUE, RED), DETECTIONS))
    # Feature fusion numbers its detections in another way.
    found = pictures.find(track(1, RIGHT, place=0))
    assert found is not None
    assert found.box == RIGHT
    moved = Box(31.0, 10.0, 51.0, 50.0)
    found = pictures.find(track(1, moved, place=7))
    assert found is not None
    assert found.box == moved
    assert pictures.find(replace(track(1, LEFT), box=None)) is None
    assert pictures.find(replace(track(1, LEFT), detection=None)) is None


def test_a_box_outside_of_its_picture_is_a_problem_and_the_others_are_recognised(
    recogniser: TrackRecogniser,
) -> None:
    outside = Box(200.0, 10.0, 220.0, 50.0)
    recogniser.pictures.keep(KeptPicture(1, painted(BLUE, RED), DETECTIONS))
    found = recogniser.recognise(decision(track(1, outside, place=9), track(2, LEFT)))
    assert [label.track_id for label in found.labels] == [2]
    assert 'outside' in found.problems[0]


def test_a_bundle_without_a_recogniser_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / 'manifest.yaml').write_text('name: other\n')
    for model in ('bundle', str(tmp_path), str(tmp_path / 'missing')):
        with pytest.raises(EncodingError, match='train recogniser'):
            open_track_recogniser(tmp_path, RecogniserParameters(model=model))


def test_a_track_whose_picture_is_gone_is_left_for_later(recogniser: TrackRecogniser) -> None:
    for unit in range(2, 20):
        recogniser.pictures.keep(KeptPicture(unit, painted(BLUE, RED), DETECTIONS))
    assert recogniser.recognise(decision(track(1, LEFT, unit=1))).labels == ()

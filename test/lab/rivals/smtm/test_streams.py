"""Streams have the shares of classes that they say, and are the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.rivals.smtm.streams import DRIFT, FOUR, KINDS, SCENES, VISIT, make_stream
from mmedge_lab.rivals.smtm.subject import LabelledCrops

CLASSES, LOOKS = 12, 30_000


@pytest.fixture(scope='module')
def crops() -> LabelledCrops:
    """Twelve classes of five objects, with seven crops each, and one that has hardly any."""
    objects = np.append(np.repeat(np.arange(CLASSES * 5), 7), CLASSES * 5)
    return LabelledCrops(np.zeros((len(objects), 1, 1, 3), np.uint8), objects // 5, objects)


def shares(crops: LabelledCrops, kind: str, seed: int = 3) -> list[float]:
    stream = make_stream(crops, KINDS[kind], LOOKS, seed)
    counts = np.bincount(crops.labels[stream.rows], minlength=CLASSES)
    assert len(counts) == CLASSES, 'the class with one crop does not come'
    return sorted((counts / LOOKS).tolist(), reverse=True)


def test_a_long_tail_has_its_ratio(crops: LabelledCrops) -> None:
    found = shares(crops, 'long tail 10:1')
    assert found[0] / found[-1] == pytest.approx(10.0, rel=0.35)
    steep = shares(crops, 'long tail 100:1')
    assert steep[0] / steep[6] == pytest.approx(100.0 ** (6 / 11), rel=0.35)


def test_scenes_switch_to_other_classes(crops: LabelledCrops) -> None:
    stream = make_stream(crops, KINDS[SCENES], 900, 0)
    scenes = [set(part.tolist()) for part in np.split(crops.labels[stream.rows], 3)]
    assert all(len(classes) <= 4 for classes in scenes)
    assert not scenes[0] & scenes[1]
    assert not scenes[1] & scenes[2]


def test_the_light_drifts_in_steps_and_stays_elsewhere(crops: LabelledCrops) -> None:
    assert make_stream(crops, KINDS[DRIFT], 10, 0).levels.tolist() == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
    ]
    assert not make_stream(crops, KINDS[FOUR], 10, 0).levels.any()


def test_a_track_is_one_object_and_shows_no_crop_twice(crops: LabelledCrops) -> None:
    stream = make_stream(crops, KINDS[FOUR], 10 * VISIT, 1)
    for track in range(10):
        rows = stream.rows[stream.tracks == track]
        assert len(rows) == VISIT
        assert len(np.unique(crops.objects[rows])) == 1
        assert len(np.unique(rows)) == VISIT

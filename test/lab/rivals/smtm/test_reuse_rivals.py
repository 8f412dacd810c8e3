"""What the rivals of object memory do with the pictures that are not encoded."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hand_made_units import FakeEncoder, person, unit

from mmedge_lab.rivals.smtm.reuse_rivals import (
    CHEAPER,
    HELD,
    PREDICTED,
    TURNED,
    RivalEncoder,
    ViewAt,
    turned_detections,
)
from mmedge_ros.core.data_types import CAMERA, ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.geometry.camera_turn import CameraView
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.rotations import rotation_by
from mmedge_ros.geometry.sensor_poses import OPTICAL_TO_BODY

HALF = ModalityConfiguration(CAMERA, level='medium', reuse=2)
CAMERA_MODEL = CameraModel(
    640, 480, np.array([[450.0, 0, 320], [0, 450, 240], [0, 0, 1]]), np.zeros(0), 'none'
)
PICTURES = [unit(1000.0 * number / 30.0, sequence=number) for number in range(30)]


def view(degrees: float) -> CameraView:
    """A camera that has turned to the left."""
    return CameraView(CAMERA_MODEL, rotation_by(np.radians([0.0, 0.0, degrees])) @ OPTICAL_TO_BODY)


def walker(of: Unit) -> dict[str, object]:
    return {'detections': (person(100.0 + of.sequence, 200.0),), 'image_size': (640, 480)}


def encoded(
    between: str, view_at: ViewAt = lambda stamp_ns: view(0.0)
) -> tuple[FakeEncoder, list[UnitFeatures]]:
    full = FakeEncoder(work=walker)
    rival = RivalEncoder(full, between, view_at)
    return full, [rival.encode(picture, HALF, 1) for picture in PICTURES]


@pytest.mark.parametrize('between', [HELD, TURNED, PREDICTED])
def test_every_second_picture_is_encoded_once_the_rate_is_known(between: str) -> None:
    full, features = encoded(between)
    assert [f.followed for f in features[10:14]] in ([False, True] * 2, [True, False] * 2)
    assert len(full.calls) == sum(not f.followed for f in features)
    assert [f.sequence for f in features] == [p.sequence for p in PICTURES]


def test_held_boxes_are_those_of_the_encoded_picture_before() -> None:
    _, features = encoded(HELD)
    for before, after in pairwise(features[9:]):
        if after.followed:
            assert after.detections == before.detections
            assert after.detections[0].item > 0
            assert after.image_size == (640, 480)


def test_the_other_pictures_are_encoded_at_the_cheaper_level() -> None:
    full, features = encoded(CHEAPER)
    levels = [configuration.level for _, configuration, _ in full.calls]
    assert len(levels) == len(PICTURES)
    assert levels[10:12] in (['medium', 'small'], ['small', 'medium'])
    assert not any(f.followed for f in features)


def test_boxes_go_right_by_the_angle_that_the_camera_turns_left() -> None:
    (moved,) = turned_detections((person(320.0, 240.0),), view(0.0), view(2.0))
    before = person(320.0, 240.0).box
    assert moved.box.x0 - before.x0 == pytest.approx(450.0 * np.tan(np.radians(2.0)))
    assert moved.box.width == pytest.approx(before.width)
    assert moved.box.y0 == pytest.approx(before.y0)


def test_boxes_turn_with_the_views_at_both_stamps() -> None:
    first_ns = PICTURES[0].stamp_ns

    def turning(stamp_ns: int) -> CameraView:
        return view(30.0 * (stamp_ns - first_ns) / 1e9)

    _, features = encoded(TURNED, turning)
    for before, after in pairwise(features[9:]):
        if after.followed:
            # About a degree between two pictures.
            assert 7.0 < after.detections[0].box.x0 - before.detections[0].box.x0 < 10.0

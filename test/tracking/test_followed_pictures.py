"""Fused detections move with the remembered objects they lie on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_units import features, unit

from mmedge_ros.core.data_types import CAMERA, Box, Detection, UnitFeatures
from mmedge_ros.tracking.followed_pictures import FollowedPictures

LEFT, RIGHT = Box(100.0, 100.0, 140.0, 200.0), Box(400.0, 120.0, 430.0, 210.0)


def picture(ms: float, *seen: tuple[int, Box], followed: bool = False) -> UnitFeatures:
    detections = tuple(Detection(box, 0.9, 'person', item=item) for item, box in seen)
    return features(unit(ms, CAMERA), detections=detections, followed=followed)


def shifted(box: Box, x: float, y: float = 0.0) -> Box:
    return Box(box.x0 + x, box.y0 + y, box.x1 + x, box.y1 + y)


def fused(box: Box, distance: float = 10.0, deviation: float = 1.0) -> Detection:
    return Detection(box, 0.5, 'person', distance, deviation)


def knowing(*detections: Detection) -> FollowedPictures:
    pictures = FollowedPictures()
    pictures.add(picture(0, (1, LEFT), (2, RIGHT)), detections)
    return pictures


def test_a_fused_box_moves_with_the_object_it_lies_on() -> None:
    near = shifted(LEFT, 3.0, -2.0)
    seen = picture(33, (1, shifted(LEFT, 10.0)), (2, shifted(RIGHT, -4.0)), followed=True)
    moved = knowing(fused(near), fused(RIGHT)).moved(seen)
    assert moved is not None
    np.testing.assert_allclose(moved[0].box, shifted(near, 10.0))
    np.testing.assert_allclose(moved[1].box, shifted(RIGHT, -4.0))
    assert (moved[0].score, moved[0].label) == (0.5, 'person')


def test_a_fused_box_on_no_object_moves_as_the_picture_does() -> None:
    alone = Box(250.0, 10.0, 270.0, 60.0)
    seen = picture(33, (1, shifted(LEFT, 6.0, 2.0)), (2, shifted(RIGHT, 4.0, 2.0)), followed=True)
    moved = knowing(fused(alone)).moved(seen)
    assert moved is not None
    np.testing.assert_allclose(moved[0].box, shifted(alone, 5.0, 2.0))


def test_what_grows_is_nearer() -> None:
    grown = Box(99.0, 97.5, 141.0, 202.5)
    moved = knowing(fused(LEFT)).moved(picture(33, (1, grown), (2, RIGHT), followed=True))
    assert moved is not None
    np.testing.assert_allclose(moved[0].box, grown)
    assert moved[0].distance == pytest.approx(10.0 / 1.05)


def test_the_range_is_less_sure_the_longer_it_was_followed() -> None:
    pictures = knowing(fused(LEFT))
    seen = [picture(ms, (1, LEFT), (2, RIGHT), followed=True) for ms in (33, 66, 132)]
    deviations = [(pictures.moved(s) or ())[0].distance_deviation for s in seen]
    assert 1.0 < deviations[0] < deviations[1] < deviations[2]


def test_an_unknown_range_stays_unknown() -> None:
    moved = knowing(fused(LEFT, math.nan, math.nan)).moved(
        picture(33, (1, LEFT), (2, RIGHT), followed=True)
    )
    assert moved is not None
    assert math.isnan(moved[0].distance)
    assert math.isnan(moved[0].distance_deviation)


def test_a_picture_followed_from_one_that_was_not_fused_is_left_alone() -> None:
    assert knowing(fused(LEFT)).moved(picture(33, (3, LEFT), followed=True)) is None
    assert FollowedPictures().moved(picture(33, followed=True)) is None


def test_the_last_encoded_picture_before_it_counts() -> None:
    pictures = knowing(fused(LEFT))
    pictures.add(picture(100, (7, RIGHT)), (fused(RIGHT),))
    earlier = pictures.moved(picture(66, (1, LEFT), (2, RIGHT), followed=True))
    later = pictures.moved(picture(133, (7, RIGHT), followed=True))
    assert earlier is not None
    assert later is not None
    assert [d.box for d in (*earlier, *later)] == [LEFT, RIGHT]


def test_what_only_fusion_saw_stays_where_nothing_moved() -> None:
    pictures = FollowedPictures()
    pictures.add(picture(0), (fused(LEFT),))
    moved = pictures.moved(picture(33, followed=True))
    assert moved is not None
    assert moved[0].box == LEFT


@pytest.mark.parametrize('box', [Box(math.nan, 0, 1, 1), Box(5, 5, 5, 5), Box(9, 9, 1, 1)])
def test_an_object_without_a_box_moves_nothing(box: Box) -> None:
    pictures = FollowedPictures()
    pictures.add(picture(0, (1, box)), (fused(LEFT),))
    moved = pictures.moved(picture(33, (1, shifted(box, 50.0)), followed=True))
    assert moved is not None
    assert all(map(math.isfinite, moved[0].box))


def test_after_a_reset_nothing_is_known() -> None:
    pictures = knowing(fused(LEFT))
    pictures.reset()
    assert pictures.moved(picture(33, (1, LEFT), (2, RIGHT), followed=True)) is None

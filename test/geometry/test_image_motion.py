"""Boxes follow the image from one picture to the next."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.geometry import GeometryError
from mmedge_ros.geometry.image_motion import Grey, ImageMotion, box_motion, moved_boxes

SIZE = (320, 240)
BOXES = np.array([[60.0, 40.0, 90.0, 120.0], [200.0, 100.0, 212.0, 130.0]])


def texture(seed: int = 0) -> Grey:
    """Return a picture with structure at several sizes, as images of things have."""
    rng = np.random.default_rng(seed)
    layers = [
        cv2.resize(rng.uniform(0, 255, (SIZE[1] // n, SIZE[0] // n)), SIZE) for n in (4, 8, 16)
    ]
    return np.mean(layers, axis=0).astype(np.uint8)


def warped(picture: Grey, shift: tuple[float, float], scale: float = 1.0) -> Grey:
    """Shift the picture by pixels after it grew by ``scale`` about the origin."""
    matrix = np.array([[scale, 0.0, shift[0]], [0.0, scale, shift[1]]])
    return np.asarray(
        cv2.warpAffine(picture, matrix, SIZE, borderMode=cv2.BORDER_REFLECT), np.uint8
    )


@pytest.mark.parametrize('shift', [(0.0, 0.0), (2.5, -1.25), (-9.0, 6.0), (18.0, 12.0)])
def test_boxes_move_with_the_picture(shift: tuple[float, float]) -> None:
    picture = texture()
    motion = box_motion(picture, warped(picture, shift), BOXES)
    np.testing.assert_allclose(motion.shift, [shift, shift], atol=0.15)
    np.testing.assert_allclose(moved(motion), BOXES + np.tile(shift, 2), atol=0.5)
    assert (motion.followed > 0.8).all()


@pytest.mark.parametrize('scale', [0.98, 1.02])
def test_boxes_grow_and_shrink_with_the_picture(scale: float) -> None:
    picture = texture()
    motion = box_motion(picture, warped(picture, (0.0, 0.0), scale), BOXES)
    np.testing.assert_allclose(motion.scale, scale, atol=0.006)
    np.testing.assert_allclose(moved(motion), BOXES * scale, atol=0.6)


def moved(motion: ImageMotion, boxes: FloatArray = BOXES) -> FloatArray:
    return moved_boxes(boxes, motion.shift, motion.scale)


def test_the_change_of_size_is_limited() -> None:
    picture = texture()
    larger = warped(picture, (-14.0, -15.0), 1.2)
    assert box_motion(picture, larger, BOXES[:1]).scale[0] == pytest.approx(1.03)


def test_each_box_follows_what_is_in_it() -> None:
    picture = texture()
    after = picture.copy()
    after[30:130, 50:110] = picture[30:130, 47:107]
    motion = box_motion(picture, after, BOXES)
    np.testing.assert_allclose(motion.shift, [(3.0, 0.0), (0.0, 0.0)], atol=0.1)


def test_nothing_is_followed_in_flat_pictures() -> None:
    flat = np.full(SIZE[::-1], 90, np.uint8)
    motion = box_motion(flat, flat, BOXES)
    assert (motion.followed == 0.0).all()
    np.testing.assert_array_equal(moved(motion), BOXES)


def test_an_image_that_is_gone_is_not_followed() -> None:
    motion = box_motion(texture(0), texture(1), BOXES)
    assert (motion.followed < 0.5).all()


@pytest.mark.parametrize(
    'box',
    [
        (np.nan, 10.0, 50.0, 60.0),
        (np.inf, np.inf, np.inf, np.inf),
        (-np.inf, 0.0, np.inf, 200.0),
        (50.0, 50.0, 50.0, 90.0),
        (90.0, 90.0, 50.0, 40.0),
        (400.0, 300.0, 450.0, 380.0),
        (-60.0, -90.0, -1.0, -1.0),
    ],
)
def test_a_box_without_an_image_stays_and_disturbs_no_other(box: tuple[float, ...]) -> None:
    picture = texture()
    boxes = np.array([box, BOXES[0]])
    motion = box_motion(picture, warped(picture, (4.0, 2.0)), boxes)
    assert motion.followed[0] == 0.0
    np.testing.assert_array_equal(moved(motion, boxes)[0], boxes[0])
    np.testing.assert_allclose(motion.shift[1], (4.0, 2.0), atol=0.1)


def test_pictures_of_two_sizes_are_refused() -> None:
    with pytest.raises(GeometryError, match=r'\(240, 320\) and \(120, 160\)'):
        box_motion(texture(), texture()[::2, ::2], BOXES)


@pytest.mark.parametrize(
    'picture', [np.zeros((0, 5), np.uint8), np.zeros((4, 5, 3), np.uint8), np.zeros((4, 5))]
)
def test_what_is_no_grey_picture_is_refused(picture: np.ndarray) -> None:
    with pytest.raises(GeometryError, match='grey picture'):
        box_motion(picture, picture, BOXES)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40))),
    arrays(float, st.tuples(st.integers(0, 4), st.just(4)), elements=st.floats(width=32)),
)
def test_any_picture_and_any_boxes_give_boxes(picture: Grey, boxes: np.ndarray) -> None:
    motion = box_motion(picture, picture, boxes)
    after = moved(motion, boxes)
    assert after.shape == boxes.shape
    assert ((motion.followed >= 0.0) & (motion.followed <= 1.0)).all()
    assert np.isfinite(motion.shift).all()
    finite = np.isfinite(boxes).all(axis=1)
    assert np.isfinite(after[finite]).all()

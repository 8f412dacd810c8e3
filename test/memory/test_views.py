"""Thumbnails are small, and only our own are decoded."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.memory.views import (
    KEY_FRAME_SIDE,
    OBJECT_SIDE,
    key_frame_thumbnail,
    object_thumbnail,
    picture_of,
)


def picture() -> np.ndarray:
    """Red on the left, blue on the right."""
    made = np.zeros((480, 640, 3), np.uint8)
    made[:, :320, 2] = 220
    made[:, 320:, 0] = 220
    return made


def test_an_object_comes_back_in_its_colours_and_its_shape() -> None:
    back = picture_of(object_thumbnail(picture(), Box(20.0, 20.0, 120.0, 220.0)))
    assert back is not None
    height, width = back.shape[:2]
    assert max(height, width) == OBJECT_SIDE
    assert height / width == pytest.approx(2.0, rel=0.1)
    np.testing.assert_allclose(back.reshape(-1, 3).mean(axis=0), [0.0, 0.0, 220.0], atol=12.0)


def test_a_small_object_is_not_made_larger_and_a_thin_one_keeps_a_pixel() -> None:
    small = picture_of(object_thumbnail(picture(), Box(100.0, 100.0, 110.0, 120.0)))
    assert small is not None
    assert small.shape == (24, 12, 3)
    thin = picture_of(object_thumbnail(picture(), Box(100.0, 10.0, 100.4, 470.0)))
    assert thin is not None
    assert thin.shape[1] == 1


def test_a_key_frame_shows_the_whole_picture() -> None:
    back = picture_of(key_frame_thumbnail(picture()))
    assert back is not None
    assert back.shape == (96, KEY_FRAME_SIDE, 3)
    assert back[:, :50, 2].mean() > 200
    assert back[:, -50:, 0].mean() > 200


def test_an_object_outside_of_the_picture_has_none() -> None:
    with pytest.raises(EncodingError, match='outside'):
        object_thumbnail(picture(), Box(700.0, 10.0, 800.0, 100.0))


def test_what_is_no_thumbnail_of_ours_is_not_decoded() -> None:
    large = cv2.imencode('.jpg', np.zeros((129, 20, 3), np.uint8))[1].tobytes()
    other = cv2.imencode('.png', np.zeros((20, 20, 3), np.uint8))[1].tobytes()
    whole = key_frame_thumbnail(picture())
    for content in (b'', b'\xff\xd8', large, other, whole[:40]):
        assert picture_of(content) is None


@given(st.data())
def test_damaged_thumbnails_do_no_harm(data: st.DataObject) -> None:
    content = bytearray(object_thumbnail(picture(), Box(270.0, 20.0, 370.0, 220.0)))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    back = picture_of(bytes(content))
    assert back is None or max(back.shape[:2]) <= KEY_FRAME_SIDE

"""Pictures into network inputs and boxes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.letterbox import Canvas, InputStyle, Letterbox, place

YOLOX = InputStyle(centred=False, rgb=False, scale=1.0)
ULTRALYTICS = InputStyle(centred=True, rgb=True, scale=1.0 / 255.0)
SIZE = (416, 320)
BLUE, GREEN, RED = 10, 20, 30


def picture(height: int, width: int) -> np.ndarray:
    return np.full((height, width, 3), (BLUE, GREEN, RED), np.uint8)


def test_yolox_gets_blue_green_red_as_it_is_in_the_top_left() -> None:
    letterbox = Letterbox(SIZE, YOLOX, np.float32)
    letterbox.fill(picture(100, 200))
    blob = letterbox.blob[0]
    assert [float(plane[0, 0]) for plane in blob] == [BLUE, GREEN, RED]
    assert (blob[:, :208] == np.array([BLUE, GREEN, RED])[:, None, None]).all()
    assert (blob[:, 208:] == 114).all()


def test_ultralytics_gets_red_green_blue_of_one_in_the_middle() -> None:
    letterbox = Letterbox(SIZE, ULTRALYTICS, np.float32)
    placement = letterbox.fill(picture(100, 200))
    blob = letterbox.blob[0]
    assert (placement.x_offset, placement.y_offset) == (0, 56)
    expected = np.array([RED, GREEN, BLUE])[:, None, None] / 255
    np.testing.assert_allclose(blob[:, 56:264], np.broadcast_to(expected, (3, 208, 416)), 1e-6)
    np.testing.assert_allclose(blob[:, :56], 114 / 255, 1e-6)
    np.testing.assert_allclose(blob[:, 264:], 114 / 255, 1e-6)


def test_a_float16_input_holds_the_same_values() -> None:
    single, half = (Letterbox(SIZE, ULTRALYTICS, kind) for kind in (np.float32, np.float16))
    image = np.random.default_rng(0).integers(0, 256, (333, 222, 3), np.uint8)
    single.fill(image)
    half.fill(image)
    assert half.blob.dtype == np.float16
    np.testing.assert_array_equal(half.blob, single.blob.astype(np.float16))


sides = st.one_of(st.integers(1, 700), st.sampled_from([1, 2, 3000, 40000]))


@given(width=sides, height=sides, centred=st.booleans())
def test_the_corners_of_any_picture_come_back_from_inside_the_input(
    width: int, height: int, centred: bool
) -> None:
    placement = place(width, height, SIZE, centred)
    x1 = placement.x_offset + width * placement.x_scale
    y1 = placement.y_offset + height * placement.y_scale
    assert placement.x_offset >= 0
    assert placement.y_offset >= 0
    assert x1 <= SIZE[0] + 1e-6
    assert y1 <= SIZE[1] + 1e-6
    corners = np.array([[placement.x_offset, placement.y_offset, x1, y1]], np.float32)
    back = placement.to_picture(corners)[0]
    np.testing.assert_allclose(back, [0, 0, width, height], rtol=1e-5, atol=1e-3)


@settings(deadline=None, max_examples=40)
@given(
    shapes=st.lists(
        st.tuples(*[st.one_of(st.integers(1, 700), st.just(3000))] * 2), min_size=1, max_size=4
    ),
    style=st.sampled_from([YOLOX, ULTRALYTICS]),
)
def test_nothing_of_earlier_pictures_is_left_when_the_size_changes(
    shapes: list[tuple[int, int]], style: InputStyle
) -> None:
    used = Letterbox(SIZE, style, np.float32)
    for height, width in shapes:
        used.fill(np.full((height, width, 3), 255, np.uint8))
        image = picture(height, width)
        used.fill(image)
        fresh = Letterbox(SIZE, style, np.float32)
        fresh.fill(image)
        np.testing.assert_array_equal(used.blob, fresh.blob)


@pytest.mark.parametrize(
    'view',
    [
        np.zeros((40, 60, 3), np.uint8)[::-1],
        np.zeros((40, 60, 3), np.uint8)[..., ::-1],
        np.zeros((60, 40, 3), np.uint8).transpose(1, 0, 2),
    ],
    ids=['upside down', 'reversed channels', 'transposed'],
)
def test_a_picture_that_is_a_view_is_read_as_it_looks(view: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    view[...] = rng.integers(0, 256, view.shape)
    from_view, from_copy = (Letterbox(SIZE, YOLOX, np.float32) for _ in range(2))
    from_view.fill(view)
    from_copy.fill(view.copy(order='C'))
    np.testing.assert_array_equal(from_view.blob, from_copy.blob)


@pytest.mark.parametrize(
    'image',
    [
        np.zeros((10, 10), np.uint8),
        np.zeros((10, 10, 4), np.uint8),
        np.zeros((10, 10, 3), np.float32),
        np.zeros((0, 10, 3), np.uint8),
    ],
)
def test_anything_but_an_8_bit_colour_picture_is_refused(image: np.ndarray) -> None:
    with pytest.raises(EncodingError, match=r'must be \(height, width, 3\) uint8'):
        Letterbox(SIZE, YOLOX, np.float32).fill(image)


CANVAS = (640, 480)


@pytest.mark.parametrize(
    ('width', 'height', 'offset', 'shown'),
    [
        (640, 480, (0, 4), (416, 312)),
        (1920, 1080, (0, 43), (416, 234)),
        (480, 480, (52, 4), (312, 312)),  # fitted directly it would fill the height of 320
        (1, 9999, (208, 4), (1, 312)),
    ],
)
def test_by_way_of_a_canvas_pictures_lie_where_the_canvas_does(
    width: int, height: int, offset: tuple[int, int], shown: tuple[int, int]
) -> None:
    placement = Canvas.in_input(CANVAS, SIZE).place(width, height)
    assert (placement.x_offset, placement.y_offset) == offset
    assert (width * placement.x_scale, height * placement.y_scale) == pytest.approx(shown)

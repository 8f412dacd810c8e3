"""Crops hold the object, its margin, and nothing from outside the picture."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.crops import CropForm, crop_input, cut

PICTURE = np.zeros((60, 80, 3), np.uint8)
PICTURE[20:40, 30:50] = (255, 128, 0)
OBJECT = Box(30.0, 20.0, 50.0, 40.0)
PLAIN = CropForm((8, 10), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), margin=0.0)


def test_a_margin_is_a_share_of_the_box_on_each_side() -> None:
    assert cut(PICTURE, OBJECT, 0.25).shape == (30, 30, 3)


def test_a_box_at_the_edge_is_cut_off_there() -> None:
    assert cut(PICTURE, Box(70.0, 50.0, 100.0, 90.0)).shape == (10, 10, 3)


def test_an_input_has_the_channels_in_the_wanted_order_and_scale() -> None:
    red_first = crop_input(PICTURE, OBJECT, PLAIN)
    assert red_first.shape == (1, 3, 10, 8)
    np.testing.assert_allclose(red_first[0, :, 5, 4], (0.0, 128 / 255, 1.0), atol=1e-6)
    blue_first = crop_input(
        PICTURE, OBJECT, PLAIN._replace(rgb=False, mean=(0.5,) * 3, deviation=(0.5,) * 3)
    )
    np.testing.assert_allclose(blue_first[0, :, 5, 4], (1.0, 256 / 255 - 1.0, -1.0), atol=1e-6)


@pytest.mark.parametrize(
    'box',
    [
        Box(90.0, 10.0, 95.0, 20.0),
        Box(10.0, 10.0, 10.0, 20.0),
        Box(20.0, 10.0, 10.0, 20.0),
        Box(float('nan'), 0.0, 1.0, 1.0),
    ],
)
def test_a_box_that_shows_nothing_is_refused(box: Box) -> None:
    with pytest.raises(EncodingError):
        cut(PICTURE, box)


@given(
    st.tuples(*[st.floats(-1e7, 1e7)] * 4),
    st.floats(0.0, 1.0),
)
def test_any_box_gives_an_input_or_a_sentence(
    sides: tuple[float, float, float, float], margin: float
) -> None:
    try:
        made = crop_input(PICTURE, Box(*sides), PLAIN._replace(margin=margin))
    except EncodingError:
        return
    assert made.shape == (1, 3, 10, 8)
    assert np.isfinite(made).all()


def test_a_square_cut_is_as_wide_as_high() -> None:
    assert cut(PICTURE, Box(35.0, 20.0, 45.0, 40.0), square=True).shape == (20, 20, 3)

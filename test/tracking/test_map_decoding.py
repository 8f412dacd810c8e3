"""Boxes written into maps by hand come back as detections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hand_made_maps import Cell, maps_with, written
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import Box
from mmedge_ros.encoding.feature_grid import (
    GRID_CLASSES,
    MAP_SHAPE,
    canvas_placement,
    empty_semantics,
)
from mmedge_ros.tracking.map_decoding import DecodingParameters, decode_maps

PARAMETERS = DecodingParameters(0.1)
VGA = (640, 480)

sizes = st.tuples(st.integers(16, 4000), st.integers(16, 4000))


@st.composite
def pictures_with_a_box(draw):
    """A picture size and a box inside that is at least two pixels wide and high."""
    width, height = draw(sizes)
    x0 = draw(st.floats(0, width - 2.0))
    y0 = draw(st.floats(0, height - 2.0))
    x1 = draw(st.floats(x0 + 2.0, width))
    y1 = draw(st.floats(y0 + 2.0, height))
    return (width, height), Box(x0, y0, x1, y1)


@given(
    pictures_with_a_box(),
    st.sampled_from((8, 16, 32)),
    st.sampled_from(GRID_CLASSES),
    st.floats(0.3, 0.999),
    st.floats(0.5, 500.0),
)
def test_any_box_on_any_scale_of_any_picture_comes_back(picture, stride, label, score, distance):
    size, box = picture
    maps = maps_with([Cell(box, stride, label, score, distance)], size)
    (result,) = decode_maps(maps, size, PARAMETERS)
    placement = canvas_placement(*size)
    tolerance = 1e-2 + 1e-3 / min(placement.x_scale, placement.y_scale)
    assert result.box == pytest.approx(box, abs=min(tolerance, 1.0))
    assert (result.label, result.score) == (label, pytest.approx(score, abs=1e-5))
    assert result.distance == pytest.approx(distance, rel=1e-5)
    assert result.distance_deviation == pytest.approx(0.15 * distance, rel=1e-5)


def test_of_overlapping_boxes_of_one_label_the_best_stays() -> None:
    box, near = Box(100, 100, 200, 300), Box(104, 98, 203, 297)
    cells = [
        Cell(box, 8, 'person', 0.7, 5.0),
        Cell(near, 16, 'person', 0.9, 6.0),
        Cell(box, 32, 'car', 0.5, 7.0),
    ]
    result = decode_maps(maps_with(cells, VGA), VGA, PARAMETERS)
    assert [(d.label, round(d.score, 3)) for d in result] == [('person', 0.9), ('car', 0.5)]
    assert result[0].distance == pytest.approx(6.0)


def test_a_repeated_coarse_cell_is_read_once() -> None:
    maps = maps_with([Cell(Box(100, 100, 300, 300), 32, 'person', 0.9, 5.0)], VGA)
    apart = DecodingParameters(0.1, iou_threshold=1.0)
    assert len(decode_maps(maps, VGA, apart)) == 1


def test_only_the_kept_labels_are_found_and_only_the_best_of_them() -> None:
    cells = [
        Cell(Box(10, 10, 60, 60), 16, 'person', 0.5, 5.0),
        Cell(Box(110, 10, 160, 60), 16, 'dog', 0.8, 5.0),
        Cell(Box(210, 10, 260, 60), 16, 'person', 0.7, 5.0),
    ]
    maps = maps_with(cells, VGA)
    people = decode_maps(maps, VGA, DecodingParameters(0.1, labels=('person',)))
    assert [round(d.score, 3) for d in people] == [0.7, 0.5]
    best = decode_maps(maps, VGA, DecodingParameters(0.1, maximum_detections=1))
    assert [d.label for d in best] == ['dog']


def test_a_cell_that_leans_towards_another_label_still_counts_for_the_kept_one() -> None:
    maps = maps_with([Cell(Box(10, 10, 60, 60), 16, 'person', 0.5, 5.0)], VGA)
    row, column = written(Box(10, 10, 60, 60), 16, VGA)
    maps[32 + GRID_CLASSES.index('dog'), row, column] = 3.0
    (result,) = decode_maps(maps, VGA, DecodingParameters(0.1, labels=('person',)))
    assert (result.label, result.score) == ('person', pytest.approx(0.5))
    (result,) = decode_maps(maps, VGA, PARAMETERS)
    assert result.label == 'dog'


def test_a_box_in_the_padding_is_none_and_one_that_reaches_into_it_is_cut() -> None:
    wide = (640, 240)
    maps = np.concatenate([empty_semantics(), np.zeros((6, 30, 40), np.float32)])
    for row in (1, 9):
        maps[32, row, 10] = 2.0
        maps[36:40, row, 10] = 2.0
    (result,) = decode_maps(maps, wide, PARAMETERS)
    assert result.box == pytest.approx((136.0, 0.0, 200.0, 64.0))


@given(st.integers(0, 2**32 - 1), st.sampled_from((math.nan, math.inf, -math.inf, 1e38, -1e38)))
def test_broken_maps_make_no_broken_detections(seed: int, value: float) -> None:
    rng = np.random.default_rng(seed)
    maps = rng.normal(0.0, 3.0, MAP_SHAPE).astype(np.float32)
    maps[rng.random(MAP_SHAPE) < 0.3] = value
    for result in decode_maps(maps, (333, 222), DecodingParameters(0.0)):
        assert np.isfinite(result.box).all()
        assert 0.0 <= result.box.x0 < result.box.x1 <= 333
        assert 0.0 <= result.box.y0 < result.box.y1 <= 222
        assert 0.0 <= result.score <= 1.0
        assert math.isnan(result.distance) or 0.1 < result.distance < 1100

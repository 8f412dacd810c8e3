"""Labels cover neither what they name nor each other, and others only where they must."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.viewing.label_placement import Area, place_labels

WIDTH, HEIGHT = 480, 360
SIZES = [(90, 14), (50, 14), (14, 14)]

edges = st.integers(-600, 1200)
boxes = st.builds(lambda x, y, w, h: Area(x, y, x + w, y + h), edges, edges, edges, edges)
small = st.builds(
    lambda x, y: Area(x, y, x + 20, y + 40), st.integers(0, WIDTH), st.integers(0, HEIGHT)
)


@given(st.lists(boxes | small, max_size=12), st.lists(small, max_size=6))
def test_labels_lie_in_the_picture_off_their_boxes_and_off_each_other(
    named: list[Area], others: list[Area]
) -> None:
    labels = place_labels(WIDTH, HEIGHT, named, [SIZES] * len(named), others)
    placed = [(box, label) for box, label in zip(named, labels, strict=True) if label]
    for box, label in placed:
        area = label.area
        assert 0 <= area.x0 < area.x1 <= WIDTH
        assert 0 <= area.y0 < area.y1 <= HEIGHT
        assert (area.x1 - area.x0, area.y1 - area.y0) == SIZES[label.text]
        assert area.shared(box) == 0
    for (_, first), (_, second) in combinations(placed, 2):
        assert first.area.shared(second.area) == 0


@given(st.lists(small, min_size=1, max_size=4), st.lists(small, max_size=4))
def test_with_room_every_label_is_there_and_covers_nobody(
    named: list[Area], others: list[Area]
) -> None:
    labels = place_labels(WIDTH, HEIGHT, named, [SIZES] * len(named), others)
    assert all(labels)
    # Eight little boxes cannot take all the places around one of them, but edges can.
    for box, label in zip(named, labels, strict=True):
        if 130 < box.x0 < WIDTH - 150 and 130 < box.y0 < HEIGHT - 150:
            assert label is not None
            assert sum(label.area.shared(other) for other in [*named, *others]) == 0


def test_a_label_lies_right_above_its_box_where_nothing_is_in_the_way() -> None:
    box = Area(100, 100, 140, 200)
    (label,) = place_labels(WIDTH, HEIGHT, [box], [SIZES])
    assert label is not None
    assert label.area == Area(100, 86, 190, 100)


def test_a_shorter_text_comes_before_covering_another_person() -> None:
    box = Area(0, 0, 40, HEIGHT)  # a person from the upper to the lower edge
    beside = Area(100, 0, 140, HEIGHT)
    (label,) = place_labels(WIDTH, HEIGHT, [box], [SIZES], [beside])
    assert label is not None
    assert SIZES[label.text] == (50, 14)


def test_where_every_place_covers_somebody_the_label_covers_as_little_as_can_be() -> None:
    box = Area(200, 150, 240, 250)
    whole, upper = Area(0, 0, WIDTH, HEIGHT), Area(0, 0, WIDTH, 200)
    (label,) = place_labels(WIDTH, HEIGHT, [box], [SIZES], [whole, upper])
    assert label is not None
    assert (SIZES[label.text], label.area.y0 >= 200) == ((14, 14), True)

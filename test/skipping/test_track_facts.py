"""What is read of a tracker's state."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_states import boxed, state, track
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.data_types import Box
from mmedge_ros.geometry.box_overlap import overlap
from mmedge_ros.skipping.track_facts import state_facts
from mmedge_ros.tracking.data_association import intersection_over_union

EDGES = st.integers(-20, 20).map(float)
BOXES = st.tuples(EDGES, EDGES, EDGES, EDGES)


def upright(edges: tuple[float, float, float, float]) -> Box:
    """The box with these edges, in whichever order they are."""
    one, two, other, four = edges
    return Box(min(one, other), min(two, four), max(one, other), max(two, four))


def test_a_track_is_shown_as_the_tracker_would_show_it() -> None:
    facts = state_facts(
        state(
            5,
            track(1, boxed()),
            track(2, boxed(), confirmed=False),
            track(3, boxed(), support=1),
            track(4),
            track(5, confirmed=False),
            track(6),
        )
    )
    assert [t.id for t in facts.with_box] == [1, 2, 3]
    assert [t.id for t in facts.people] == [1]
    assert (facts.stamp_ns, facts.unseen, facts.emerging) == (5, 2, 1)


@given(st.floats(-50.0, 700.0), st.floats(-5.0, 300.0), st.floats(-5.0, 300.0))
def test_the_corners_are_those_of_the_tracker(x: float, width: float, height: float) -> None:
    box = boxed(x, 100.0, width, height, (3.0, 4.0, 0.0, 0.0))
    (facts,) = state_facts(state(0, track(1, box))).people
    assert facts.corners == box.box()
    assert facts.area == box.box().width * box.box().height
    left, top, half_width, half_height, right, down = facts.moving
    assert (left - half_width, top - half_height) == facts.corners[:2]
    assert (right, down) == (3.0, 4.0)


def test_a_flood_of_tracks_is_read_in_part_but_counted_in_full() -> None:
    crowd = [track(number, boxed()) for number in range(100)]
    facts = state_facts(state(0, *crowd, *[track(number) for number in range(100, 130)]))
    assert len(facts.with_box) == 40
    assert facts.unseen == 30


@given(BOXES, BOXES)
def test_the_overlap_is_that_of_arrays(one: tuple, other: tuple) -> None:
    first, second = upright(one), upright(other)
    expected = intersection_over_union(np.array([first]), np.array([second]))[0, 0]
    assert overlap(first, second) == pytest.approx(expected)
    assert overlap(second, first) == overlap(first, second)


@given(BOXES, BOXES)
def test_a_box_turned_inside_out_overlaps_nothing(one: tuple, other: tuple) -> None:
    turned = (max(one[0], one[2]), one[1], min(one[0], one[2]), one[3])
    assert overlap(turned, other) == overlap(other, turned) == 0.0

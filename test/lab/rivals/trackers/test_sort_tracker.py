"""SORT as it was published: boxes go on at their speed, and come in and out by rules."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.rivals.trackers.sort_tracker import MAX_AGE, MIN_HITS, SortTracker, TrackedBox

NOTHING = np.zeros((0, 4)), np.zeros(0)


def walk(tracker: SortTracker, x: float) -> list[TrackedBox]:
    return tracker.update(np.array([[x, 100.0, x + 40.0, 200.0]]), np.array([0.9]))


def test_a_walker_keeps_the_id_while_hidden_and_not_longer() -> None:
    for hidden, kept in ((MAX_AGE, True), (MAX_AGE + 1, False)):
        tracker = SortTracker()
        before = [walk(tracker, 5.0 * picture) for picture in range(20)][-1]
        for _ in range(hidden):
            assert tracker.update(*NOTHING) == []
        after = [walk(tracker, 5.0 * (20 + hidden + picture)) for picture in range(MIN_HITS + 1)][
            -1
        ]
        assert len(before) == len(after) == 1
        assert (before[0].id == after[0].id) is kept


def test_a_box_is_shown_when_found_again_three_times_except_in_the_first_pictures() -> None:
    tracker = SortTracker()
    assert len(walk(tracker, 0.0)) == 1
    for _ in range(MIN_HITS):
        tracker.update(*NOTHING)
    shown = [len(tracker.update(np.array([[500.0, 0, 540, 90]]), np.ones(1))) for _ in range(4)]
    assert shown == [0, 0, 0, 1]


def test_what_is_shown_lies_at_the_box_with_its_score() -> None:
    tracker = SortTracker()
    shown = [walk(tracker, 3.0 * picture) for picture in range(30)][-1]
    np.testing.assert_allclose(shown[0].box, [87, 100, 127, 200], atol=1.0)
    assert shown[0].score == 0.9


edges = st.floats(-1e4, 1e4)
boxes = st.lists(st.tuples(edges, edges, st.floats(0, 1e4), st.floats(0, 1e4)), max_size=5)


@given(st.lists(boxes, max_size=8))
def test_any_boxes_give_finite_tracks_once_each(pictures: list[list[tuple[float, ...]]]) -> None:
    tracker = SortTracker()
    for picture in pictures:
        table = np.array([(x, y, x + w, y + h) for x, y, w, h in picture]).reshape(-1, 4)
        shown = tracker.update(table, np.ones(len(table)))
        assert len({t.id for t in shown}) == len(shown) <= len(table)
        assert all(np.isfinite(t.box).all() for t in shown)

"""What is lost where one decision's boxes are shown in place of another's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import NS_PER_S, Box, Decision, Track
from mmedge_ros.tracking.data_association import intersection_over_union
from mmedge_ros.windows.box_loss import box_loss, decision_loss

END = 10 * NS_PER_S
LEFT, RIGHT = Box(100.0, 100.0, 140.0, 200.0), Box(400.0, 100.0, 440.0, 200.0)


def track(number: int, box: Box | None, velocity: tuple[float, float] = (0.0, 0.0)) -> Track:
    return Track(
        number, 'person', 0.9, box, np.zeros(3), np.zeros(3), np.eye(6), (), 0.0, velocity
    )


def decision(*tracks: Track, state_ns: int = END) -> Decision:
    return Decision(END, state_ns, 'odom', tracks, {})


def test_the_same_people_lose_nothing_whatever_their_ids_and_order() -> None:
    one = decision(track(1, LEFT), track(2, RIGHT))
    assert decision_loss(one, decision(track(7, RIGHT), track(8, LEFT))) == 0.0


def test_nothing_shown_on_both_sides_loses_nothing_and_on_one_side_all() -> None:
    assert decision_loss(decision(), decision(track(1, None))) == 0.0
    assert decision_loss(decision(), decision(track(1, LEFT))) == 1.0


def test_a_box_loses_what_it_moved_and_one_that_is_missing_its_share() -> None:
    moved = Box(LEFT.x0 + 10.0, LEFT.y0, LEFT.x1 + 10.0, LEFT.y1)
    assert decision_loss(decision(track(1, LEFT)), decision(track(1, moved))) == pytest.approx(0.4)
    both = decision(track(1, LEFT), track(2, RIGHT))
    assert decision_loss(both, decision(track(1, LEFT))) == pytest.approx(0.5)


def test_one_box_cannot_stand_for_two_people() -> None:
    twice = np.array([LEFT, LEFT])
    assert box_loss(np.array([LEFT, RIGHT]), twice) == pytest.approx(0.5)
    assert box_loss(twice, twice) == 0.0


def test_both_are_predicted_to_the_end_of_the_window() -> None:
    then = Box(LEFT.x0 - 20.0, LEFT.y0, LEFT.x1 - 20.0, LEFT.y1)
    early = decision(track(1, then, (100.0, 0.0)), state_ns=END - NS_PER_S // 5)
    standing = decision(track(1, then), state_ns=END - NS_PER_S // 5)
    assert decision_loss(early, decision(track(1, LEFT))) == pytest.approx(0.0)
    assert decision_loss(standing, decision(track(1, LEFT))) > 0.5


def test_a_person_who_has_left_the_picture_by_then_is_not_in_it() -> None:
    leaving = Box(600.0, 100.0, 639.0, 200.0)
    early = decision(track(1, leaving, (1000.0, 0.0)), state_ns=END - NS_PER_S // 10)
    assert decision_loss(early, decision(), (640, 480)) == 0.0
    assert decision_loss(early, decision()) == 1.0


_BOX = st.builds(
    lambda x, y, w, h: np.array([[x, y, x + w, y + h]]),
    *[st.floats(0.0, 50.0)] * 2,
    *[st.floats(5.0, 60.0)] * 2,
)


@given(_BOX, _BOX, _BOX)
def test_no_iou_with_the_truth_falls_by_more(shown: object, full: object, true: object) -> None:
    one, other, truth = (np.asarray(box) for box in (shown, full, true))
    fell = intersection_over_union(other, truth) - intersection_over_union(one, truth)
    assert fell.item() <= box_loss(one, other) + 1e-9

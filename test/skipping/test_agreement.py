"""When two decisions are the same."""

from __future__ import annotations

import numpy as np

from mmedge_ros.data_types import NS_PER_S, Box, Decision, Track
from mmedge_ros.skipping.agreement import boxes_agree, decisions_agree

END = 10 * NS_PER_S


def track(number: int, box: Box | None, velocity: tuple[float, float] = (0.0, 0.0)) -> Track:
    return Track(
        number, 'person', 0.9, box, np.zeros(3), np.zeros(3), np.eye(6), (), 0.0, velocity
    )


def decision(*tracks: Track, state_ns: int = END) -> Decision:
    return Decision(END, state_ns, 'odom', tracks, {})


LEFT, RIGHT = Box(100.0, 100.0, 140.0, 200.0), Box(400.0, 100.0, 440.0, 200.0)


def test_the_same_people_agree_whatever_their_ids_and_order() -> None:
    assert decisions_agree(
        decision(track(1, LEFT), track(2, RIGHT)), decision(track(7, RIGHT), track(8, LEFT))
    )


def test_empty_decisions_agree_with_each_other_only() -> None:
    assert decisions_agree(decision(), decision(track(1, None)))
    assert not decisions_agree(decision(), decision(track(1, LEFT)))


def test_a_box_that_moved_too_far_is_another_persons() -> None:
    near = Box(LEFT.x0 + 5.0, LEFT.y0, LEFT.x1 + 5.0, LEFT.y1)
    far = Box(LEFT.x0 + 9.0, LEFT.y0, LEFT.x1 + 9.0, LEFT.y1)
    assert decisions_agree(decision(track(1, LEFT)), decision(track(1, near)))
    assert not decisions_agree(decision(track(1, LEFT)), decision(track(1, far)))


def test_one_box_cannot_stand_for_two_people() -> None:
    twice = np.array([LEFT, LEFT])
    assert not boxes_agree(np.array([LEFT, RIGHT]), twice)
    assert boxes_agree(twice, twice)


def test_both_are_predicted_to_the_end_of_the_window() -> None:
    then = Box(LEFT.x0 - 20.0, LEFT.y0, LEFT.x1 - 20.0, LEFT.y1)
    early = decision(track(1, then, (100.0, 0.0)), state_ns=END - NS_PER_S // 5)
    standing = decision(track(1, then), state_ns=END - NS_PER_S // 5)
    assert decisions_agree(early, decision(track(1, LEFT)))
    assert not decisions_agree(standing, decision(track(1, LEFT)))


def test_a_person_who_has_left_the_picture_by_then_is_not_in_it() -> None:
    leaving = Box(600.0, 100.0, 639.0, 200.0)
    early = decision(track(1, leaving, (1000.0, 0.0)), state_ns=END - NS_PER_S // 10)
    assert decisions_agree(early, decision(), (640, 480))
    assert not decisions_agree(early, decision())

"""Questions about simulated flights have exact answers, whatever is judged by them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hand_made_observations import STAMPS_NS, hovering, observed, walked

from mmedge_lab.judging.question_maker import true_questions
from mmedge_lab.judging.question_truth import (
    Expected,
    Sort,
    TrueQuestion,
    is_right,
    known_when,
    owners_of,
    track_of,
    true_observations,
)
from mmedge_ros.data_types import NS_PER_S, Box
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.questions.answering import KnownFlight, ask
from mmedge_ros.questions.observations import Observations
from mmedge_ros.questions.question import Kind
from mmedge_ros.records.ground_truth import GroundTruth, TrueObject, TrueScene


def street() -> Observations:
    return observed(
        walked(1, place=(30.0, 4.0), velocity=(-2.0, 0.1), deviation=0.0),
        walked(2, place=(12.0, 8.0), deviation=0.0),
        walked(3, place=(10.0, -5.0), velocity=(0.5, -1.0), span=(3.0, 9.0), deviation=0.0),
        walked(4, 'car', place=(14.0, 9.0), velocity=(0.0, -3.0), deviation=0.0),
        drone=hovering(0.4),
    )


def known() -> dict[int, np.ndarray]:
    return known_when(street(), {number: number for number in (1, 2, 3, 4)})


def test_questions_are_balanced_over_the_kinds_and_the_same_every_time() -> None:
    made = true_questions(street(), known(), 'street', 8)
    assert Counter(question.kind for question in made) == dict.fromkeys(Kind, 8)
    assert made == true_questions(street(), known(), 'street', 8)
    assert made != true_questions(street(), known(), 'park', 8)


def test_with_true_tracks_nearly_all_are_answered_rightly() -> None:
    flight = KnownFlight(street(), is_exact=True)
    made = true_questions(street(), known(), 'street', 40)
    answers = [ask(one.text.format(*one.objects), flight) for one in made]
    right = [is_right(one.expected, got.value) for one, got in zip(made, answers, strict=True)]
    assert np.mean(right) >= 0.98


def test_only_what_is_known_by_a_number_is_asked_for_by_it() -> None:
    made = true_questions(street(), {2: known()[2][:40]}, 'street', 20)
    assert {number for one in made for number in one.objects} == {2}
    asked = [one for one in made if one.objects]
    assert max(one.begin_ns for one in asked) <= STAMPS_NS[39]


@pytest.mark.parametrize(
    ('expected', 'right', 'wrong'),
    [
        (Expected(Sort.SAME, True), True, False),
        (Expected(Sort.SAME, 3), 3, 4),
        (Expected(Sort.NUMBER, 10.0, 1.0), 10.9, 11.1),
        (Expected(Sort.ANGLE, 170.0, 45.0), -160.0, 120.0),
        (Expected(Sort.ANGLE, 'still'), 'still', 10.0),
        (Expected(Sort.ANGLE, 10.0, 45.0), 20.0, 'still'),
        (Expected(Sort.PLACE, [1.0, 2.0], 2.0), (1.0, 3.0), (4.0, 2.0)),
        (Expected(Sort.OBJECT, 7), 1, 2),
        (Expected(Sort.OBJECTS, [7, 8]), (1, 2, 3), (1,)),
        (Expected(Sort.SAME, 3), 3, None),
    ],
)
def test_an_answer_is_right_by_its_sort(expected: Expected, right: object, wrong: object) -> None:
    owners = {1: 7, 2: 8, 3: 8}
    assert is_right(expected, right, owners)
    assert not is_right(expected, wrong, owners)


def test_tracks_are_of_the_object_they_were_nearest_to_most_of_the_time() -> None:
    ours = observed(
        walked(11, place=(29.0, 4.0), velocity=(-2.0, 0.1), span=(0.0, 2.0)),
        walked(12, place=(30.5, 4.0), velocity=(-2.0, 0.1), span=(2.5, 10.0)),
        walked(13, place=(90.0, 0.0)),
    )
    owners = owners_of(ours, street())
    assert owners == {11: 1, 12: 1}
    stamps = ours.stamps_ns
    asked = TrueQuestion(
        Kind.STATUS, '', '', Expected(Sort.SAME, 0), int(stamps[10]), int(stamps[10]), (1,)
    )
    assert track_of(ours, owners, asked, 1) == 11
    later = asked._replace(begin_ns=int(stamps[50]), end_ns=int(stamps[60]))
    assert track_of(ours, owners, later, 1) == 12
    with pytest.raises(KeyError):
        track_of(ours, owners, asked, 2)


def test_what_is_in_view_is_seen_and_where_nothing_is_known_the_camera_is_blind() -> None:
    def scene(number: int) -> TrueScene:
        place, still = np.array([5.0, 0.0, 0.0]), np.zeros(3)
        objects = (
            TrueObject(1, 'person', Box(0.0, 0.0, 10.0, 30.0), 1.0, place, still),
            TrueObject(2, 'person', Box(0.0, 0.0, 10.0, 30.0), 0.4, place, still),
            TrueObject(3, 'person', Box(0.0, 0.0, 5.0, 10.0), 1.0, place, still),
            TrueObject(4, 'person', None, 0.0, place, still),
        )
        stamp_ns = number * NS_PER_S // 10
        ego = EgoState(stamp_ns, Transform.identity())
        return TrueScene(stamp_ns, 'odom', objects, ego=ego)

    truth = GroundTruth([scene(number) for number in range(4)])
    true = true_observations(truth, np.array([0, NS_PER_S // 10, 5 * NS_PER_S]))
    assert [track.id for track in true.tracks] == [1]
    assert true.camera.tolist() == [True, True, False]
    assert true.drone is not None
    assert true.drone.positions.tolist() == [[0.0, 0.0, 0.0]] * 2
